# SPDX-License-Identifier: BSD-3-Clause
"""usage: python.py DIRECTORY    imports the package that is installed there, and sends a message with it"""
import sys

import viaduct
from viaduct import core

if not viaduct.__file__.startswith(sys.argv[1]):
    sys.exit(f"imported {viaduct.__file__}")

with core.Device() as device:
    client, server = device.endpoint(), device.endpoint()
    memory = device.register(bytearray(b"over the valley") + bytearray(15))
    server.post_receive(memory[15:])
    with device.listen(b"installed") as listener:
        client.start_connect(device.host, b"installed", timeout=5)
        listener.accept(server, timeout=5)
    client.next_event(timeout=5)
    client.post_send(memory[:15])
    received = server.wait_receive(timeout=5)
    if (received.nbytes, bytes(memory.view[15:])) != (15, b"over the valley"):
        sys.exit(f"received {received}, {bytes(memory.view)}")
