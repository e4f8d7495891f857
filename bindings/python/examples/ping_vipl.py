#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Ping over VIPL: an echo server, and a client that measures the round-trip time.

    ping_vipl.py --listen           the server
    ping_vipl.py                    the client, on the same host or on another with an RDMA device (--host)
"""
from __future__ import annotations

import argparse
import statistics
import time

from viaduct import vipl

PATIENCE = 60  # seconds


def serve(nic: vipl.Nic, service: int, size: int) -> None:
    """Answers one client until it disconnects."""
    vi, memory = nic.create_vi(), nic.register_mem(2 * size)
    incoming, outgoing = memory[:size], memory[size:]
    nic.error_callback(lambda error: None)  # the receive also reports the end of the connection
    vi.post_recv(incoming)
    print("listening", flush=True)
    nic.connect_wait(service).accept(vi)
    try:
        while True:
            message = vi.recv_wait().data
            outgoing.view[:len(message)] = message
            vi.post_recv(incoming)  # before the answer, after which the next message arrives
            vi.post_send(memory[size:size + len(message)])
            vi.send_wait(PATIENCE)
    except vipl.DescriptorError:
        print("done")


def connect(vi: vipl.Vi, server: vipl.NetAddress) -> None:
    """Retries while there is no listener: a VIPL server listens only inside connect_wait()."""
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
    options.add_argument("--listen", action="store_true", help="run as the server")
    options.add_argument("--host", help="the server's address (default: this host's NIC)")
    options.add_argument("--service", type=int, default=7204, help="the two-byte discriminator (%(default)s)")
    options.add_argument("--size", type=int, default=64, help="message size in bytes (%(default)s)")
    options.add_argument("--count", type=int, default=1000, help="number of round trips (%(default)s)")
    chosen = options.parse_args()
    with vipl.open_nic() as nic:
        if chosen.listen:
            serve(nic, chosen.service, chosen.size)
        else:
            ping(nic, nic.net_address(chosen.service, chosen.host), chosen.size, chosen.count)


if __name__ == "__main__":
    main()
