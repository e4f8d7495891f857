# SPDX-License-Identifier: BSD-3-Clause
"""usage: python.py DIRECTORY    uses the package installed there: each API must find its library and a device"""
import pathlib
import sys

import viaduct
from viaduct import core, dat, rpma, vipl

if pathlib.Path(sys.argv[1]).resolve() not in pathlib.Path(viaduct.__file__).resolve().parents:
    sys.exit(f"imported {viaduct.__file__}")

with core.Device() as device:
    client, server = device.endpoint(), device.endpoint()
    memory = device.register(bytearray(b"hello, receiver") + bytearray(15))
    server.post_receive(memory[15:])
    with device.listen(b"installed") as listener:
        client.start_connect(device.host, b"installed", timeout=5)
        listener.accept(server, timeout=5)
    client.next_event(timeout=5)
    client.post_send(memory[:15])
    received = server.wait_receive(timeout=5)
    if (received.nbytes, bytes(memory.view[15:])) != (15, b"hello, receiver"):
        sys.exit(f"received {received}, {bytes(memory.view)}")
    name, host = device.name, ".".join(map(str, device.host))

with vipl.open_nic(name) as nic, dat.ia_open(name) as ia, rpma.Peer(rpma.get_ibv_context(host)) as peer:
    print(nic.register_mem(64), ia.pz_create(), peer.mr_reg(64))
