#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Hello, with the core, in Python: the client sends a text; the server prints it and sends it back."""
import argparse
import time

from viaduct import core

ROOM = 4096
TIMEOUT = 10.0


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

    def wait_disconnect(self):
        """When the client disconnects, there is an event."""
        event = self.endpoint.next_event(timeout=None)
        if event.kind != core.ConnectionEventKind.DISCONNECTED:
            raise SystemExit(f"{event.kind.name} instead of DISCONNECTED")

    def disconnect(self):
        self.endpoint.disconnect()
        self.device.close()  # and everything that was created on it


def server(port):
    end = End()
    end.accept_client(port)
    message = end.wait_receive()
    print(message.decode())
    end.send_message(message)
    end.wait_disconnect()
    end.disconnect()


def client(address, port, text):
    end = End()
    end.connect_to(address, port)
    end.post_receive()  # for the answer, before it can come
    end.send_message(text.encode()[:ROOM])
    print(end.wait_receive().decode())
    end.disconnect()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("role", choices=["server", "client"])
    parser.add_argument("address")
    parser.add_argument("port", type=int)
    parser.add_argument("text", nargs="?", default="hello")
    arguments = parser.parse_args()
    if arguments.role == "server":
        server(arguments.port)
    else:
        client(arguments.address, arguments.port, arguments.text)


if __name__ == "__main__":
    main()
