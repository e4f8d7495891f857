#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What the package for Python costs; prints one figure. tests/bench/bench.py runs it.

    python_perf.py rate API                8 B RDMA writes, each posted and polled for, per second; both ends are in
                                           this process, and the initiator does all the work
    python_perf.py bandwidth MEMORY        1 MiB RDMA writes through numpy arrays, bytes per second, to a second process;
                                           MEMORY: heap (numpy's own) or shareable (that of viaduct.alloc)
"""
from __future__ import annotations

import argparse
import multiprocessing
import multiprocessing.connection
import os
import time
import typing

import numpy
import viaduct
from viaduct import core
from viaduct.pytest_plugin import connected

MEGABYTE = 1 << 20
WINDOW = 128  # requests under way at once, as vi-perf has it
SECONDS = 0.5  # of each measurement, after as long a warm-up
TIMEOUT = 20.0

Step = typing.Callable[[], None]


def per_second(step: Step, batch: int) -> float:
    """How often a second step() does what it does `batch` times a call."""
    for seconds in (SECONDS, SECONDS):
        count, start = 0, time.perf_counter()
        while (passed := time.perf_counter() - start) < seconds:
            step()
            count += batch
    return count / passed


# ---- Rates: each function connects two ends and gives a step of 100 requests. Loops stand where users have them. --------


def core_step() -> Step:
    device = core.Device()
    client = connected(device).client
    memory = device.register(viaduct.alloc(16))
    piece, remote, queue = memory[:8], memory.remote + 8, client.send_queue

    def step() -> None:
        for _ in range(100):
            client.post_write(piece, remote)
            while not queue.poll(1):
                pass
    return step


STEPS: dict[str, typing.Callable[[], Step]] = {"core": core_step}


# ---- Bandwidth ----------------------------------------------------------------------------------------------------------


def array(memory: str) -> numpy.ndarray:
    return numpy.frombuffer(viaduct.alloc(MEGABYTE)) if memory == "shareable" else numpy.ones(MEGABYTE // 8)


def serve(link: multiprocessing.connection.Connection, memory: str, cpu: int | None) -> None:
    """The other process: shows an array, until the writer disconnects."""
    pin(cpu)
    service = os.getpid() % 60000 + 1024
    with core.Device() as device, device.endpoint() as endpoint, device.listen(service) as listener:
        region = device.register(array(memory))
        link.send((service, region.remote))
        listener.accept(endpoint, timeout=TIMEOUT)
        endpoint.next_event(None)


def bandwidth(memory: str, server_cpu: int | None) -> float:
    spawn = multiprocessing.get_context("spawn")
    link, theirs = multiprocessing.Pipe()
    server = spawn.Process(target=serve, args=(theirs, memory, server_cpu), daemon=True)
    server.start()
    with core.Device() as device, device.endpoint(send_depth=WINDOW) as endpoint:
        service, remote = link.recv()
        endpoint.connect(device.host, service, timeout=TIMEOUT)
        region, queue = device.register(array(memory)), endpoint.send_queue
        piece = region[:]

        def step() -> None:
            for _ in range(WINDOW):
                endpoint.post_write(piece, remote)
            done = 0
            while done < WINDOW:
                completions = queue.poll()
                assert all(completion.ok for completion in completions), completions
                done += len(completions)
        figure = per_second(step, WINDOW) * MEGABYTE
    server.join()
    return figure


def pin(cpu: int | None) -> None:
    if cpu is not None:
        os.sched_setaffinity(0, [cpu])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("test", choices=["rate", "bandwidth"])
    parser.add_argument("subject", choices=[*STEPS, "heap", "shareable"])
    parser.add_argument("--cpu", type=int, help="run on this CPU")
    parser.add_argument("--server-cpu", type=int, help="and the other process on this one")
    arguments = parser.parse_args()
    pin(arguments.cpu)
    if arguments.test == "rate":
        print(per_second(STEPS[arguments.subject](), 100))
    else:
        print(bandwidth(arguments.subject, arguments.server_cpu))


if __name__ == "__main__":
    main()
