#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A log that is appended remotely: the client writes a text to the end of the server's file with RDMA, and makes it
persistent before the new length. The server has one client at a time."""
import mmap
import struct

from end import PERSISTENT, READ_AND_WRITE, ROOM, End, run

LOG_SIZE = 1 << 20
TAIL = struct.Struct("<Q")  # the file: the number of bytes of text, and the text
COMMIT = struct.Struct("<QQ")  # a request to make a part of the log persistent, from clients of APIs without a flush


def make_persistent(log, offset, length):
    """msync takes whole pages."""
    if offset + length > LOG_SIZE:
        raise SystemExit("the client asked for more than the log")
    begin = offset // mmap.PAGESIZE * mmap.PAGESIZE
    log.flush(begin, offset + length - begin)


def server(port, path):
    end = End()
    with open(path, "a+b") as file:
        file.truncate(LOG_SIZE)
        log = mmap.mmap(file.fileno(), LOG_SIZE)
    key = end.register_shared(log, READ_AND_WRITE | PERSISTENT)
    end.accept_client(port)
    end.wait_receive()  # the client asks for the key
    end.post_receive()
    end.send_message(key)
    # Until the client sends an empty message, each one is a request to make a part persistent.
    while message := end.wait_receive():
        make_persistent(log, *COMMIT.unpack(message))
        end.post_receive()
        end.send_message(b"")
    (tail,) = TAIL.unpack_from(log)
    print(log[TAIL.size:TAIL.size + tail].decode(), end="")
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
    (tail,) = TAIL.unpack(end.rdma_read(0, TAIL.size))
    line = text.encode()[:ROOM - 1] + b"\n"
    if tail + len(line) > LOG_SIZE - TAIL.size:
        raise SystemExit("the log is full")
    # First the text and then its length: if the power fails between, the log ends before this text.
    end.rdma_write(TAIL.size + tail, line)
    end.flush(TAIL.size + tail, len(line))
    tail += len(line)
    end.rdma_write(0, TAIL.pack(tail))
    end.flush(0, TAIL.size)
    print(f"{tail} bytes")
    end.post_receive()
    end.send_message(b"")  # the end
    end.wait_receive()
    end.disconnect()
    end.close_device()


if __name__ == "__main__":
    run(__doc__, server, client, "FILE")
