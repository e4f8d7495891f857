#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Echo: a server for several clients, which waits for all of them without spinning."""
import asyncio

from end import ROOM, End, run, serve_clients

MESSAGES = 100


async def echo(guest, message):
    """The receive is posted again before the echo is sent, because the next message may follow at once."""
    guest.post_receive()
    guest.post_send(message)
    await guest.endpoint.wait_send_async()


def server(port, clients):
    asyncio.run(serve_clients(int(clients), port, echo))
    print(f"{clients} clients")


def client(address, port, text):
    message = text.encode()[:ROOM]
    end = End()
    end.connect_to(address, port)
    for _ in range(MESSAGES):
        end.post_receive()  # for the echo, before it can come
        end.send_message(message)
        if end.wait_receive() != message:
            raise SystemExit("the echo differs from the message")
    print(f"{MESSAGES} echoes")
    end.disconnect()
    end.close_device()


if __name__ == "__main__":
    run(__doc__, server, client, "CLIENTS")
