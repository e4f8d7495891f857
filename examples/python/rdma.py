#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""RDMA write and read: the client reads the server's memory and then writes to it.
The server sends the address and the key of its memory when the client asks."""
from end import READ_AND_WRITE, ROOM, End, run


def server(port, _):
    end = End()
    table = bytearray(ROOM)
    key = end.register_shared(table, READ_AND_WRITE)
    table[:20] = b"read from the server"
    end.accept_client(port)
    end.wait_receive()  # the client asks for the key
    end.post_receive()
    end.send_message(key)
    end.wait_receive()  # the client has written; what was written before a message is there when it arrives
    print(bytes(table).rstrip(b"\0").decode())
    end.send_message(b"")
    end.wait_disconnect()
    end.disconnect()
    end.close_device()


def client(address, port, text):
    end = End()
    end.connect_to(address, port)
    end.post_receive()
    end.send_message(b"")  # asks for the key
    end.learn_key(end.wait_receive())
    end.post_receive()
    print(end.rdma_read(0, ROOM).rstrip(b"\0").decode())
    end.rdma_write(0, text.encode()[:ROOM].ljust(ROOM, b"\0"))
    end.send_message(b"")  # tells the server, which RDMA does not
    end.wait_receive()
    end.disconnect()
    end.close_device()


if __name__ == "__main__":
    run(__doc__, server, client)
