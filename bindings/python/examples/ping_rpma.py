#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Ping over librpma: an echo server, and a client that measures the round-trip time.

    ping_rpma.py --listen                 the server
    ping_rpma.py [--count N] [--size N]   the client
"""
from __future__ import annotations

import argparse
import statistics
import time

from viaduct import rpma

PATIENCE = 60  # seconds


def serve(arguments: argparse.Namespace) -> None:
    """Returns the messages of one client until it disconnects."""
    with rpma.Peer(rpma.get_ibv_context(arguments.host)) as peer:
        memory = peer.mr_reg(arguments.size)
        with peer.ep_listen(arguments.host, arguments.service) as ep:
            print("listening", flush=True)
            request = ep.next_conn_req()
        request.recv(memory[:])
        conn = request.connect()
        while True:
            completion = conn.cq.next_wc()
            if not completion.ok:
                break  # flushed: the client has disconnected
            if completion.opcode == rpma.WcOpcode.RECV:
                conn.recv(memory[:])
                conn.send(memory[:completion.byte_len], flags=rpma.Flags.COMPLETION_ON_ERROR)
    print("done")


def ping(arguments: argparse.Namespace) -> None:
    context = rpma.get_ibv_context(arguments.host, rpma.IbvContextType.REMOTE)
    with rpma.Peer(context) as peer, peer.mr_reg(2 * arguments.size) as memory:
        question, answer = memory[:arguments.size], memory[arguments.size:]
        question.view[:] = bytes(index % 251 for index in range(arguments.size))
        conn = peer.connect(arguments.host, arguments.service, timeout=PATIENCE)
        cq = conn.cq
        times = []
        for _ in range(arguments.count):
            started = time.perf_counter()
            conn.recv(answer)
            conn.send(question)
            for _ in range(2):  # the send and the answer
                cq.next_wc(PATIENCE).check()
            times.append(time.perf_counter() - started)
            if answer.view != question.view:
                raise SystemExit("the answer is not the question")
        conn.disconnect()
    print(f"{len(times)} round trips of {arguments.size} bytes: median {statistics.median(times) * 1e6:.1f} us")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--listen", action="store_true", help="run as the server")
    parser.add_argument("--host", default="127.0.0.1", help="the server's address (%(default)s)")
    parser.add_argument("--service", type=int, default=7204, help="the port (%(default)s)")
    parser.add_argument("--size", type=int, default=64, help="message size in bytes (%(default)s)")
    parser.add_argument("--count", type=int, default=1000, help="number of round trips (%(default)s)")
    arguments = parser.parse_args()
    (serve if arguments.listen else ping)(arguments)


if __name__ == "__main__":
    main()
