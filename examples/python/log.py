#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A log that is appended remotely, with the core, in Python: the client writes a text to the end of the
server's file with RDMA, and makes it persistent before the new length. The server has one client at a time."""
import argparse
import mmap
import struct
import time

from viaduct import core

ROOM = 4096
TIMEOUT = 10.0
LOG_SIZE = 1 << 20
TAIL = struct.Struct("<Q")  # the file: the number of bytes of text, and the text
COMMIT = struct.Struct("<QQ")  # a request to make a part of the log persistent, for APIs without a flush
# Where a peer's memory is, as a message: the 21 bytes of a librpma descriptor: address, size, key, usage. VIPL has no
# private data, so that the keys travel in messages.
DESCRIPTOR = struct.Struct("<QQIB")
USAGE = 1 | 8 | 32  # of librpma: READ_SRC, WRITE_DST, FLUSH_TYPE_PERSISTENT


class End:
    """An endpoint and the memory of its messages. Calls that fail raise core.Error, whose text says why."""

    def __init__(self):
        self.device = core.Device()
        self.memory = self.device.register(2 * ROOM, core.Access.NONE)
        self.incoming, self.outgoing = self.memory.view[:ROOM], self.memory.view[ROOM:]
        self.endpoint = self.device.endpoint()  # reliable delivery, the level of DAT and librpma

    def post_receive(self):
        """A message that comes before its receive waits, unless the sender is a program of VIPL."""
        self.endpoint.post_receive(self.memory[:ROOM])

    def connect_to(self, address, port):
        """While nobody listens, the client asks again."""
        deadline = time.monotonic() + TIMEOUT
        while True:
            try:
                return self.endpoint.connect(address, port, timeout=TIMEOUT)
            except core.Error as error:
                if error.code != core.Code.NO_LISTENER or time.monotonic() > deadline:
                    raise
            time.sleep(0.01)

    def accept_client(self, port):
        self.post_receive()  # before the client can send
        with self.device.listen(port) as listener:
            listener.accept(self.endpoint)

    def send_message(self, message):
        self.outgoing[:len(message)] = message
        self.endpoint.post_send(self.memory[ROOM:ROOM + len(message)])
        self.endpoint.wait_send()

    def wait_receive(self):
        """Waits without spinning and returns the message."""
        return bytes(self.incoming[:self.endpoint.wait_receive().nbytes])

    def register_shared(self, buffer):
        self.shared = self.device.register(buffer, core.Access.REMOTE_WRITE | core.Access.REMOTE_READ)
        return DESCRIPTOR.pack(*self.shared[:][:2], self.shared.key, USAGE)

    def learn_key(self, message):
        address, size, key, _ = DESCRIPTOR.unpack(message)
        if size < ROOM:
            raise SystemExit("not the descriptor of enough memory")
        self.remote = core.Remote(address, key)

    def rdma_read(self, offset, length):
        """RDMA between `outgoing` and the peer's memory."""
        self.endpoint.post_read(self.memory[ROOM:ROOM + length], self.remote + offset)
        self.endpoint.wait_send()
        return bytes(self.outgoing[:length])

    def rdma_write(self, offset, data):
        self.outgoing[:len(data)] = data
        self.endpoint.post_write(self.memory[ROOM:ROOM + len(data)], self.remote + offset)
        self.endpoint.wait_send()

    def flush(self, offset, length):
        """When the flush has completed, the earlier writes to this part survive a loss of power of the server. Its
        program has no part in this."""
        self.endpoint.post_flush(self.remote + offset, length, persistent=True)
        self.endpoint.wait_send()

    def wait_disconnect(self):
        """When the client disconnects, there is an event."""
        event = self.endpoint.next_event(timeout=None)
        if event.kind != core.ConnectionEventKind.DISCONNECTED:
            raise SystemExit(f"{event.kind.name} instead of DISCONNECTED")

    def disconnect(self):
        self.endpoint.disconnect()
        self.device.close()  # and everything that was created on it


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
    key = end.register_shared(log)
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


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("role", choices=["server", "client"])
    parser.add_argument("address")
    parser.add_argument("port", type=int)
    parser.add_argument("text", help="of the client; the file of the server")
    arguments = parser.parse_args()
    if arguments.role == "server":
        server(arguments.port, arguments.text)
    else:
        client(arguments.address, arguments.port, arguments.text)


if __name__ == "__main__":
    main()
