#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Echo, with the core, in Python: a server for several clients, which waits for all of them without spinning."""
import argparse
import asyncio
import contextlib

from viaduct import core

ROOM = 4096
TIMEOUT = 10.0
MESSAGES = 100


async def serve(device, request):
    """Echoes the messages of one client until it disconnects."""
    with device.endpoint() as endpoint, device.register(2 * ROOM, core.Access.NONE) as memory:
        endpoint.post_receive(memory[:ROOM])  # before the client can send
        request.accept(endpoint)
        with contextlib.suppress(core.RequestError):  # flushed: the client has disconnected
            while True:
                length = (await endpoint.wait_receive_async()).nbytes
                memory.view[ROOM:ROOM + length] = memory.view[:length]
                # The receive is posted again before the echo is sent, because the next message may follow at once.
                endpoint.post_receive(memory[:ROOM])
                endpoint.post_send(memory[ROOM:ROOM + length])
                await endpoint.wait_send_async()


async def server(port, clients):
    """One thread waits for everything, with the event loop."""
    with core.Device() as device, device.listen(port) as listener:
        async with asyncio.TaskGroup() as guests:
            for _ in range(clients):
                guests.create_task(serve(device, await listener.next_request_async()))
    print(f"{clients} clients")


async def connect_to(endpoint, address, port):
    """While nobody listens, the client asks again."""
    async with asyncio.timeout(TIMEOUT):
        while True:
            try:
                return await endpoint.connect_async(address, port, timeout=TIMEOUT)
            except core.Error as error:
                if error.code != core.Code.NO_LISTENER:
                    raise
            await asyncio.sleep(0.01)


async def client(address, port, text):
    message = text.encode()[:ROOM]
    with core.Device() as device, device.endpoint() as endpoint:
        memory = device.register(2 * ROOM, core.Access.NONE)
        await connect_to(endpoint, address, port)
        memory.view[ROOM:ROOM + len(message)] = message
        for _ in range(MESSAGES):
            endpoint.post_receive(memory[:ROOM])  # for the echo, before it can come
            endpoint.post_send(memory[ROOM:ROOM + len(message)])
            await endpoint.wait_send_async()
            length = (await endpoint.wait_receive_async()).nbytes
            if memory.view[:length] != message:
                raise SystemExit("the echo differs from the message")
        print(f"{MESSAGES} echoes")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("role", choices=["server", "client"])
    parser.add_argument("address")
    parser.add_argument("port", type=int)
    parser.add_argument("text", help="of the client; the number of clients of the server")
    arguments = parser.parse_args()
    if arguments.role == "server":
        asyncio.run(server(arguments.port, int(arguments.text)))
    else:
        asyncio.run(client(arguments.address, arguments.port, arguments.text))


if __name__ == "__main__":
    main()
