#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measures the cost of the Python package and prints one value. tests/bench/bench.py runs it.

    python_perf.py rate API                8 B RDMA writes per second, each posted and polled; both ends are in
                                           this process, and the initiator does all the work
    python_perf.py bandwidth MEMORY        bytes per second of 1 MiB RDMA writes through numpy arrays to a second
                                           process;
                                           MEMORY: heap (allocated by numpy) or shareable (by viaduct.alloc)
"""
from __future__ import annotations

import argparse
import multiprocessing
import multiprocessing.connection
import os
import pathlib
import sys
import time
import typing
from functools import partial

import numpy
import viaduct
from viaduct import core
from viaduct.pytest_plugin import connected

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "python"))  # the connected pairs for each API

MEGABYTE = 1 << 20
WINDOW = 128  # requests in progress, same as in vi-perf
SECONDS = 0.5  # of each measurement, and of its warm-up
TIMEOUT = 20.0

Step = typing.Callable[[], None]


def per_second(step: Step, batch: int) -> float:
    """Returns how often per second step() does its work, which it does `batch` times per call."""
    for seconds in (SECONDS, SECONDS):
        count, start = 0, time.perf_counter()
        while (passed := time.perf_counter() - start) < seconds:
            step()
            count += batch
    return count / passed


# ---- Rates -----------------------------------------------------------------------------------------------------------


class Lane(typing.NamedTuple):
    """Functions that write the first 8 bytes of one registered region to another and poll for the completion."""
    post: typing.Callable[[], object]
    poll: typing.Callable[[], object]
    source: typing.Any
    target: typing.Any
    server: object  # keeps the other end alive


def core_lane() -> Lane:
    device = core.Device()
    client, server = connected(device)
    source, target = device.register(8), device.register(8)
    post = partial(client.post_write, source[:], target.remote)
    return Lane(post, partial(client.send_queue.poll, 1), source, target, server)


def vipl_lane() -> Lane:
    import vipl_pair
    from viaduct import vipl
    nic = vipl.open_nic()
    client, server = vipl_pair.connected(nic)
    source, target = nic.register_mem(8), nic.register_mem(8, vipl.MemAttributes(enable_rdma_write=True))
    descriptor = nic.ptag.descriptor(source[:], vipl.Operation.RDMAWRITE, target.remote)
    return Lane(partial(client.post_send, descriptor), client.send_done, source, target, server)


def dat_lane() -> Lane:
    import dat_pair
    from viaduct import dat
    pair = dat_pair.Pair(dat.ia_open(core.devices()[0])).connect()
    source, target = pair.client.lmr, pair.server.lmr
    post = partial(pair.client.ep.post_rdma_write, source[:8], target.target(0, 8))
    return Lane(post, pair.client.requested.dequeue, source, target, pair.server)


def rpma_lane() -> Lane:
    import rpma_pair
    pair = rpma_pair.Pair(rpma_pair.new_peer())
    post = partial(pair.client.write, pair.at_server, 0, pair.client_memory[:8])
    return Lane(post, pair.client.cq.get_wc, pair.client_memory, pair.server_memory, pair.server)


LANES = {"core": core_lane, "vipl": vipl_lane, "dat": dat_lane, "rpma": rpma_lane}


def rate(api: str) -> float:
    post, poll, source, target, _server = LANES[api]()
    source.view[:8] = b"sentinel"

    def step() -> None:
        for _ in range(100):
            post()
            while not poll():
                pass
    figure = per_second(step, 100)
    assert bytes(target.view[:8]) == b"sentinel"
    return figure


# ---- Bandwidth -------------------------------------------------------------------------------------------------------


def array(memory: str) -> numpy.ndarray:
    return numpy.frombuffer(viaduct.alloc(MEGABYTE)) if memory == "shareable" else numpy.ones(MEGABYTE // 8)


def serve(link: multiprocessing.connection.Connection, memory: str, cpu: int | None) -> None:
    """Runs in the other process: shares an array until the writer disconnects."""
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
    parser.add_argument("subject", choices=[*LANES, "heap", "shareable"])
    parser.add_argument("--cpu", type=int, help="run on this CPU")
    parser.add_argument("--server-cpu", type=int, help="and the other process on this one")
    arguments = parser.parse_args()
    pin(arguments.cpu)
    if arguments.test == "rate":
        print(rate(arguments.subject))
    else:
        print(bandwidth(arguments.subject, arguments.server_cpu))


if __name__ == "__main__":
    main()
