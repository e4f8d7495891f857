#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Hello: the client sends a text; the server prints it and sends it back."""
from end import ROOM, End, run


def server(port, _):
    end = End()
    end.accept_client(port)
    message = end.wait_receive()
    print(message.decode())
    end.send_message(message)
    end.wait_disconnect()
    end.disconnect()
    end.close_device()


def client(address, port, text):
    end = End()
    end.connect_to(address, port)
    end.post_receive()  # for the answer, before it can come
    end.send_message(text.encode()[:ROOM])
    print(end.wait_receive().decode())
    end.disconnect()
    end.close_device()


if __name__ == "__main__":
    run(__doc__, server, client)
