#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A key-value store whose clients read without the help of the server.

The server publishes a table of fixed-size slots, in which clients look up keys with RDMA reads. To store a value,
clients send messages, which the server processes one after the other. With the checksum in each slot, a client detects
that it has read a slot while the server was writing to it.

    kv_store.py serve
    kv_store.py put KEY VALUE
    kv_store.py get KEY
"""
from __future__ import annotations

import argparse
import asyncio
import contextlib
import struct
import zlib

from viaduct import rpma

SLOTS = 1024
SLOT = struct.Struct("< I 60p 190p")  # checksum of the rest, key, value; an empty slot is all zeros
MESSAGE = SLOT.size
INBOXES = 4


def pack(key: bytes, value: bytes) -> bytes:
    rest = SLOT.pack(0, key, value)[4:]
    return struct.pack("<I", zlib.crc32(rest)) + rest


def unpack(slot: memoryview) -> tuple[bytes, bytes] | None:
    """Key and value, both empty for an empty slot; None if the slot is being written."""
    checksum, key, value = SLOT.unpack(slot)
    return (key, value) if checksum == (zlib.crc32(slot[4:]) if any(slot) else 0) else None


def places(key: bytes) -> list[int]:
    """The slots where a key may be, in search order."""
    first = zlib.crc32(key) % SLOTS
    return [(first + step) % SLOTS * SLOT.size for step in range(SLOTS)]


class Server:
    def __init__(self, address: str, port: int) -> None:
        self.peer = rpma.Peer(rpma.get_ibv_context(address))
        self.table = self.peer.mr_reg(SLOTS * SLOT.size, rpma.MrUsage.READ_SRC)
        self.ep = self.peer.ep_listen(address, port)

    def put(self, message: memoryview) -> bool:
        """Writes the slot in the message. Returns False if the table is full."""
        key = SLOT.unpack(message)[1]
        for place in places(key):
            slot = self.table.view[place:place + SLOT.size]
            if SLOT.unpack(slot)[1] in (b"", key):
                slot[:] = message
                return True
        return False

    async def serve(self, conn: rpma.Conn, inbox: rpma.MrLocal) -> None:
        with conn, inbox:
            while (received := await conn.cq.next_wc_async()).ok:
                if received.opcode != rpma.WcOpcode.RECV:
                    continue
                place = received.wr_id
                done = received.byte_len == MESSAGE and self.put(inbox[place:place + MESSAGE].view)
                conn.recv(inbox[place:place + MESSAGE], context=place)
                conn.send_with_imm(None, int(done))

    async def run(self) -> None:
        tasks = set()
        while True:
            request = await self.ep.next_conn_req_async()
            inbox = self.peer.mr_reg(INBOXES * MESSAGE, rpma.MrUsage.RECV)
            for place in range(0, INBOXES * MESSAGE, MESSAGE):
                request.recv(inbox[place:place + MESSAGE], context=place)
            conn = request.connect(self.table.descriptor)
            tasks.add(task := asyncio.create_task(self.serve(conn, inbox)))
            task.add_done_callback(tasks.discard)


class Client:
    def __init__(self, address: str, port: int) -> None:
        self.peer = rpma.Peer(rpma.get_ibv_context(address, rpma.IbvContextType.REMOTE))
        self.conn = self.peer.connect(address, port, timeout=60)
        self.table = rpma.MrRemote.from_descriptor(self.conn.private_data)
        self.slot = self.peer.mr_reg(SLOT.size, rpma.MrUsage.READ_DST | rpma.MrUsage.SEND)

    def get(self, key: bytes) -> bytes | None:
        for place in places(key):
            found = self.read(place)
            while found is None:
                found = self.read(place)
            if found[0] in (b"", key):
                return found[1] if found[0] else None
        return None

    def read(self, place: int) -> tuple[bytes, bytes] | None:
        self.conn.read(self.slot[:], self.table, place)
        self.conn.cq.next_wc(10).check()
        return unpack(self.slot.view)

    def put(self, key: bytes, value: bytes) -> None:
        self.slot.view[:] = pack(key, value)
        self.conn.recv()
        self.conn.send(self.slot[:])
        ends = [self.conn.cq.next_wc(10).check() for _ in range(2)]
        if 0 in [end.imm for end in ends if end.opcode == rpma.WcOpcode.RECV]:
            raise MemoryError("the table is full")

    def close(self) -> None:
        self.peer.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--host", default="127.0.0.1", help="the server's address (%(default)s)")
    parser.add_argument("--service", type=int, default=7205, help="the port (%(default)s)")
    parser.add_argument("what", nargs="+", metavar="serve | put KEY VALUE | get KEY")
    arguments = parser.parse_args()
    match [word.encode() for word in arguments.what]:
        case [b"serve"]:
            server = Server(arguments.host, arguments.service)
            print("listening", flush=True)
            with contextlib.suppress(KeyboardInterrupt):
                asyncio.run(server.run())
        case [b"put", key, value]:
            Client(arguments.host, arguments.service).put(key, value)
        case [b"get", key]:
            value = Client(arguments.host, arguments.service).get(key)
            if value is None:
                raise SystemExit("no such key")
            print(value.decode())
        case _:
            parser.error("serve, put or get?")


if __name__ == "__main__":
    main()
