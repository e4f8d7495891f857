#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Ping over DAT: an echo server, and a client that measures the round-trip time.

    ping_dat.py --listen            the server
    ping_dat.py                     the client, on the same host or on another with an RDMA device (--host)
"""
import argparse
import statistics
import time

from viaduct import dat

PATIENCE = 60  # seconds
ESTABLISHED = dat.EventNumber.CONNECTION_EVENT_ESTABLISHED


class End:
    """An endpoint, memory for one message in each direction, and an EVD for all events."""

    def __init__(self, ia, size):
        pz = ia.pz_create()
        self.evd = ia.evd_create(16)
        self.ep = ia.ep_create(pz, self.evd, self.evd, self.evd)
        self.memory = ia.lmr_create(bytearray(2 * size), pz)
        self.outgoing, self.incoming = self.memory[:size], self.memory[size:]

    def next_event(self, kind):
        """Returns the next event of this kind. The completion of a send may precede it."""
        while True:
            event = self.evd.wait(PATIENCE)
            if isinstance(event, kind):
                return event

    def receive(self):
        """Waits for a message and returns its bytes."""
        while True:
            event = self.next_event((dat.DtoCompletionEvent, dat.ConnectionEvent))
            if isinstance(event, dat.ConnectionEvent):
                raise EOFError("the other end has gone")
            if not event.ok:
                raise EOFError(f"a transfer failed: {event.status.name}")
            if event.operation is dat.Dtos.RECEIVE:
                return self.incoming.view[:event.transfered_length]


def serve(ia, conn_qual, size):
    end = End(ia, size)
    with ia.psp_create(conn_qual, end.evd):
        print("listening", flush=True)
        end.ep.post_recv(end.incoming)
        end.next_event(dat.CrArrivalEvent).cr.accept(end.ep)
        assert end.next_event(dat.ConnectionEvent).event_number is ESTABLISHED
    try:
        while True:
            message = end.receive()
            answer = end.outgoing.view[:len(message)]
            answer[:] = message
            end.ep.post_recv(end.incoming)
            end.ep.post_send(end.memory[:len(message)])
    except EOFError:
        print("done")


def ping(ia, host, conn_qual, size, count):
    end = End(ia, size)
    end.ep.connect(host, conn_qual, PATIENCE)
    event = end.next_event(dat.ConnectionEvent)
    if event.event_number is not ESTABLISHED:
        raise SystemExit(f"not connected: {event.event_number.name}")
    times = []
    for number in range(count):
        end.outgoing.view[:] = bytes([number % 256]) * size
        started = time.perf_counter()
        end.ep.post_recv(end.incoming)
        end.ep.post_send(end.outgoing)
        answer = end.receive()
        times.append(time.perf_counter() - started)
        assert answer == end.outgoing.view
    print(f"{count} round trips of {size} bytes: median {statistics.median(times) * 1e6:.1f} us")
    end.ep.disconnect()


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--listen", action="store_true", help="run as the server")
    options.add_argument("--host", help="the server's address (default: this host)")
    options.add_argument("--service", type=int, default=7204, help="the connection qualifier (%(default)s)")
    options.add_argument("--size", type=int, default=64, help="message size in bytes (%(default)s)")
    options.add_argument("--count", type=int, default=1000, help="number of round trips (%(default)s)")
    chosen = options.parse_args()
    with dat.ia_open() as ia:
        if chosen.listen:
            serve(ia, chosen.service, chosen.size)
        else:
            ping(ia, chosen.host or ia.address, chosen.service, chosen.size, chosen.count)


if __name__ == "__main__":
    main()
