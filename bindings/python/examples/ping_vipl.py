#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Ping over VIPL: a server that sends back what it gets, and a client that measures how long that takes.

    ping_vipl.py --listen           in one process,
    ping_vipl.py                    in another, of the same host or of one that an RDMA device reaches (--host)
"""
from __future__ import annotations

import argparse
import statistics
import time

from viaduct import vipl

PATIENCE = 60  # seconds


def serve(nic: vipl.Nic, service: int, size: int) -> None:
    """Answers one client until it hangs up."""
    vi, memory = nic.create_vi(), nic.register_mem(2 * size)
    incoming, outgoing = memory[:size], memory[size:]
    nic.error_callback(lambda error: None)  # that the connection has ended the receive tells, too
    vi.post_recv(incoming)
    print("listening", flush=True)
    nic.connect_wait(service).accept(vi)
    try:
        while True:
            message = vi.recv_wait().data
            outgoing.view[:len(message)] = message
            vi.post_recv(incoming)  # before the answer, which brings the next message
            vi.post_send(memory[size:size + len(message)])
            vi.send_wait(PATIENCE)
    except vipl.DescriptorError:
        print("done")


def connect(vi: vipl.Vi, server: vipl.NetAddress) -> None:
    """Asks again while nobody waits there: servers of VIPL are deaf between two calls of connect_wait()."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            vi.connect_request(server, PATIENCE)
            return
        except vipl.Error as error:
            if error.code != vipl.ReturnCode.NO_MATCH or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def ping(nic: vipl.Nic, server: vipl.NetAddress, size: int, count: int) -> None:
    vi, memory = nic.create_vi(), nic.register_mem(2 * size)
    question, answer = memory[:size], memory[size:]
    connect(vi, server)
    times = []
    for number in range(count):
        question.view[:] = bytes([number % 256]) * size
        started = time.perf_counter()
        vi.post_recv(answer)
        vi.post_send(question)
        received = vi.recv_wait(PATIENCE)
        times.append(time.perf_counter() - started)
        vi.send_wait(PATIENCE)
        if received.data != question.view:
            raise SystemExit("the answer is not the question")
    vi.disconnect()
    print(f"{count} round trips of {size} bytes: median {statistics.median(times) * 1e6:.1f} us")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--listen", action="store_true", help="be the server")
    options.add_argument("--host", help="the server's address; without, that of this host's NIC")
    options.add_argument("--service", type=int, default=7204, help="the discriminator, of two bytes (%(default)s)")
    options.add_argument("--size", type=int, default=64, help="bytes of a message (%(default)s)")
    options.add_argument("--count", type=int, default=1000, help="round trips (%(default)s)")
    chosen = options.parse_args()
    with vipl.open_nic() as nic:
        if chosen.listen:
            serve(nic, chosen.service, chosen.size)
        else:
            ping(nic, nic.net_address(chosen.service, chosen.host), chosen.size, chosen.count)


if __name__ == "__main__":
    main()
