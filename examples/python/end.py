# SPDX-License-Identifier: BSD-3-Clause
"""One end of a connection, with the core, in Python. Calls that fail raise core.Error, whose text says why."""
import argparse
import asyncio
import contextlib
import struct
import time

from viaduct import core

ROOM = 4096
TIMEOUT = 10.0
# Where a peer's memory is, as a message: the 21 bytes of a librpma descriptor: address, size, key, usage. VIPL has no
# private data, so that the keys travel in messages.
DESCRIPTOR = struct.Struct("<QQIB")
READ_AND_WRITE, PERSISTENT = 1 | 8, 32  # of librpma: READ_SRC, WRITE_DST; FLUSH_TYPE_PERSISTENT


class End:
    """An endpoint and the memory of its messages."""

    def __init__(self, device=None):
        self.device = device or core.Device()
        self.memory = self.device.register(2 * ROOM, core.Access.NONE)  # the peer may neither read nor write here
        self.incoming, self.outgoing = self.memory.view[:ROOM], self.memory.view[ROOM:]
        self.endpoint = self.device.endpoint()  # reliable delivery, which DAT and librpma join

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

    def accept_request(self, request):
        self.post_receive()  # before the client can send
        request.accept(self.endpoint)

    def accept_client(self, port):
        self.post_receive()  # before the client can send
        with self.device.listen(port) as listener:
            listener.accept(self.endpoint)

    def post_send(self, message):
        self.outgoing[:len(message)] = message
        self.endpoint.post_send(self.memory[ROOM:ROOM + len(message)])

    def send_message(self, message):
        self.post_send(message)
        self.endpoint.wait_send()

    def message(self, completion):
        return bytes(self.incoming[:completion.nbytes])

    def wait_receive(self):
        """Waits without spinning and returns the message."""
        return self.message(self.endpoint.wait_receive())

    def register_shared(self, buffer, usage):
        self.shared = self.device.register(buffer, core.Access.REMOTE_WRITE | core.Access.REMOTE_READ)
        return DESCRIPTOR.pack(*self.shared[:][:2], self.shared.key, usage)

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

    def close_device(self):
        self.device.close()  # and everything that was created on it


async def serve_client(device, request, on_message):
    """Calls on_message(end, message) until the client disconnects."""
    guest = End(device)
    guest.accept_request(request)
    with contextlib.suppress(core.RequestError):  # flushed: the client has disconnected
        while True:
            await on_message(guest, guest.message(await guest.endpoint.wait_receive_async()))


async def serve_clients(clients, port, on_message):
    """A server for several clients. One thread waits for everything, without spinning, with the event loop."""
    with core.Device() as device, device.listen(port) as listener:
        async with asyncio.TaskGroup() as guests:
            for _ in range(clients):
                guests.create_task(serve_client(device, await listener.next_request_async(), on_message))


def run(description, server, client, argument=None):
    """Runs the end that the command line asks for. `argument` is the name of the server's last argument."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("role", choices=["server", "client"])
    parser.add_argument("address")
    parser.add_argument("port", type=int)
    if argument:
        parser.add_argument("last", metavar=f"{argument}|TEXT", help=f"{argument} of the server, TEXT of the client")
    else:
        parser.add_argument("last", metavar="TEXT", help="of the client", nargs="?", default="hello")
    arguments = parser.parse_args()
    if arguments.role == "server":
        server(arguments.port, arguments.last)
    else:
        client(arguments.address, arguments.port, arguments.last)
