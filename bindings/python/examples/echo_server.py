#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""An echo server that serves many clients in one thread, with asyncio over viaduct.core.

    echo_server.py                        the server and 8 clients, in one process
    echo_server.py --listen               only the server, until Ctrl-C
    echo_server.py --host ADDRESS         only the clients, for the server at ADDRESS
"""
from __future__ import annotations

import argparse
import asyncio
import contextlib
import time

from viaduct import core

SIZE = 4096  # maximum message size in bytes
TIMEOUT = 60.0


async def answer(device: core.Device, request: core.ConnectionRequest) -> None:
    """Serves one client until it disconnects."""
    with device.endpoint() as endpoint, device.register(SIZE) as memory:
        endpoint.post_receive(memory[:])  # before accepting, so that no message has to wait
        with contextlib.suppress(core.Error):  # the receive is flushed when the client disconnects
            request.accept(endpoint)
            while True:
                received = await endpoint.wait_receive_async()
                endpoint.post_send(memory[:received.nbytes])
                await endpoint.wait_send_async()
                endpoint.post_receive(memory[:])


async def serve(device: core.Device, listener: core.Listener) -> None:
    """Serves all clients until it is cancelled."""
    async with asyncio.TaskGroup() as clients:
        while True:
            clients.create_task(answer(device, await listener.next_request_async()))


async def talk(device: core.Device, host: str | bytes, service: int, number: int, messages: int) -> None:
    """Runs one client and checks that every message is returned unchanged."""
    with device.endpoint() as endpoint, device.register(2 * SIZE) as memory:
        await endpoint.connect_async(host, service, timeout=TIMEOUT)
        for index in range(messages):
            text = f"message {index} of client {number}".encode()
            memory.view[:len(text)] = text
            endpoint.post_receive(memory[SIZE:])
            endpoint.post_send(memory[:len(text)])
            received = await endpoint.wait_receive_async(TIMEOUT)
            await endpoint.wait_send_async(TIMEOUT)
            echo = bytes(memory.view[SIZE:][:received.nbytes])
            if echo != text:
                raise SystemExit(f"sent {text!r}, got {echo!r}")


async def talk_all(device: core.Device, host: str | bytes, service: int, clients: int, messages: int) -> None:
    start = time.perf_counter()
    await asyncio.gather(*(talk(device, host, service, number, messages) for number in range(clients)))
    seconds = time.perf_counter() - start
    print(f"{clients} clients sent {messages} messages each, and all came back: {clients * messages / seconds:.0f} /s")


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--listen", action="store_true", help="run as the server")
    parser.add_argument("--host", help="address of the server (default: start one here)")
    parser.add_argument("--service", type=int, default=7207, help="service number (%(default)s)")
    parser.add_argument("--clients", type=int, default=8, metavar="N", help="number of clients (%(default)s)")
    parser.add_argument("--messages", type=int, default=100, metavar="N", help="messages per client (%(default)s)")
    arguments = parser.parse_args()
    with core.Device() as device:
        if arguments.host:
            await talk_all(device, arguments.host, arguments.service, arguments.clients, arguments.messages)
            return
        with device.listen(arguments.service) as listener:
            server = asyncio.create_task(serve(device, listener))
            if arguments.listen:
                print(f"listening, service {arguments.service}", flush=True)
                await server
            await talk_all(device, device.host, arguments.service, arguments.clients, arguments.messages)
            server.cancel()
            await asyncio.wait([server])


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(main())
