#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares Viaduct with UCX and libfabric over shared memory on this machine.

All programs run in the same session, pinned to the same two CPUs, one after another in several rounds, so that
changes of the machine's speed affect all of them. The table shows medians over the rounds and ratios;
docs/performance.md explains it.
"""

import argparse
import dataclasses
import functools
import json
import os
import pathlib
import shutil
import socket
import sys
from collections.abc import Callable

from harness import (
    ROOT, Failed, Measure, Samples, collect, heading, is_complete, markdown, median, median_ratio, number, parse,
    pinned, run, server, write_page
)  # fmt: skip

MEGABYTE = 1 << 20
APIS = {"core": "core", "vipl": "VIPL", "dat": "DAT", "rpma": "librpma"}  # the names in vi-perf and in the table
MAX_SPREAD = 1.10  # of the slowest to the fastest interface
STREAM_WINDOW = 4  # the peers send from and receive into one buffer again and again; more would not stay in a cache
UCX = {"UCX_TLS": "shm,self,cma", "UCX_LOG_LEVEL": "error"}


# ---- Running programs ------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Machine:
    cpu: int
    peer_cpu: int
    build: pathlib.Path


def siblings(cpu: int) -> str:
    path = pathlib.Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
    return path.read_text().strip() if path.exists() else str(cpu)


def two_cpus() -> tuple[int, int]:
    """Selects two available CPUs, on different cores if possible."""
    allowed = sorted(os.sched_getaffinity(0))
    if len(allowed) < 2:
        raise Failed("needs two CPUs")
    other = next((cpu for cpu in allowed[1:] if siblings(cpu) != siblings(allowed[0])), allowed[1])
    return allowed[0], other


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("", 0))
        return probe.getsockname()[1]


# ---- The programs ----------------------------------------------------------------------------------------------------


def ucx(machine: Machine, test: str, size: int, iterations: int, column: str) -> float:
    port = free_port()
    with server(pinned(machine.peer_cpu, "ucx_perftest", "-p", port), port, UCX):
        options = ["-p", port, "-t", test, "-s", size, "-n", iterations, "-w", iterations // 10, "-f", "-v"]
        output = run(pinned(machine.cpu, "ucx_perftest", "127.0.0.1", *options), UCX)
    names, *_, values = output.split()
    return float(dict(zip(names.split(","), values.split(",")))[column])


def ucx_latency_ns(machine: Machine, test: str) -> float:
    return 1000 * ucx(machine, test, 8, 500_000, "overall_lat")


def ucx_rate(machine: Machine, test: str) -> float:
    return ucx(machine, test, 8, 2_000_000, "overall_mr")


def ucx_bandwidth(machine: Machine, test: str, iterations: int) -> float:
    """In GB/s; UCX counts in units of 2^20 bytes."""
    return ucx(machine, test, MEGABYTE, iterations, "overall_bw") * MEGABYTE / 1e9


def libfabric_latency_ns(machine: Machine, size: int) -> float:
    port = free_port()
    options = ["-p", "shm", "-e", "rdm", "-S", size, "-I", 200_000]
    with server(pinned(machine.peer_cpu, "fi_pingpong", *options, "-B", port), port):
        output = run(pinned(machine.cpu, "fi_pingpong", *options, "-P", port, "127.0.0.1"))
    names, values = output.strip().splitlines()[-2:]
    return 1000 * float(dict(zip(names.split(), values.split()))["usec/xfer"])


def raw_limits(machine: Machine) -> dict[str, float | None]:
    return json.loads(run([str(machine.build / "tests/bench/raw_limits"), str(machine.cpu), str(machine.peer_cpu)]))


def cpu_options(machine: Machine) -> list[str]:
    return ["--cpu", str(machine.cpu), "--server-cpu", str(machine.peer_cpu)]


def vi_perf(
    machine: Machine, api: str, test: str, column: str, operation: str = "send", size: int | None = 8,
    memory: str = "shareable", window: int = 128, duration: str = "1"
) -> float:
    command = [machine.build / "tools/vi-perf", "--local", "--json", "--quiet", "--api", api, *cpu_options(machine)]
    options = ["--test", test, "--op", operation, "--mode", "polling", "--memory", memory, "--window", window,
               "--duration", duration]
    options += ["--sizes", size] if size is not None else []
    output = run([str(word) for word in command + options])
    return json.loads(output)["results"][0][column]


def viaduct_latency_ns(operation: str, size: int) -> Callable[[Machine, str], float]:
    return lambda machine, api: vi_perf(machine, api, "latency", "mean_ns", operation, size)


def viaduct_bandwidth(operation: str) -> Callable[[Machine, str], float]:
    def measure(machine: Machine, api: str) -> float:
        column = "bytes_per_second"
        return vi_perf(machine, api, "bandwidth", column, operation, MEGABYTE, window=STREAM_WINDOW) / 1e9

    return measure


def viaduct_rate(machine: Machine, api: str) -> float:
    return vi_perf(machine, api, "rate", "messages_per_second") / 1e6


def viaduct_connect_rate(machine: Machine, api: str) -> float:
    return vi_perf(machine, api, "connect", "connections_per_second", size=None)


def python_perf(machine: Machine, test: str, subject: str) -> float:
    command = ["/usr/bin/python3", str(ROOT / "tests/bench/python_perf.py"), test, subject, *cpu_options(machine)]
    return float(run(command, {"PYTHONPATH": str(machine.build / "bindings/python")}))


def python_rate(machine: Machine, api: str) -> float:
    return python_perf(machine, "rate", api) / 1e3


def lone_rate(machine: Machine) -> float:
    """With one request in progress at a time."""
    return vi_perf(machine, "core", "rate", "messages_per_second", "write", window=1) / 1e3


def python_bandwidth(machine: Machine, memory: str) -> float:
    return python_perf(machine, "bandwidth", memory) / 1e9


def memory_bandwidth(machine: Machine, memory: str) -> float:
    return vi_perf(machine, "core", "bandwidth", "bytes_per_second", "write", MEGABYTE, memory=memory) / 1e9


# ---- What is measured ------------------------------------------------------------------------------------------------

PEERS: dict[str, Callable[[Machine], float]] = {
    "UCX `tag_lat`": lambda machine: ucx_latency_ns(machine, "tag_lat"),
    "UCX `ucp_put_lat`": lambda machine: ucx_latency_ns(machine, "ucp_put_lat"),
    "libfabric `fi_pingpong` 64 B": lambda machine: libfabric_latency_ns(machine, 64),
    "libfabric `fi_pingpong` 4 KiB": lambda machine: libfabric_latency_ns(machine, 4096),
    "UCX `tag_bw`": lambda machine: ucx_bandwidth(machine, "tag_bw", 5_000),
    "UCX `ucp_put_bw`": lambda machine: ucx_bandwidth(machine, "ucp_put_bw", 20_000),
    "UCX `tag_bw` 8 B": lambda machine: ucx_rate(machine, "tag_bw") / 1e6,
}


@dataclasses.dataclass
class Row:
    """A row of the table. Target and goal are ratios to the peer, or absolute values if there is no peer."""

    what: str
    unit: str
    peer: str | None
    ours: Callable[[Machine, str], float]
    lower_is_better: bool
    target: float | None = None
    goal: float | None = None
    alike: bool = True  # every interface must have the same cost

    def reaches(self, value: float, limit: float) -> bool:
        return value <= limit if self.lower_is_better else value >= limit

    def limit_text(self, limit: float | None) -> str:
        if limit is None:
            return "–"
        return f"{'≤' if self.lower_is_better else '≥'} {limit:,g}{' ×' if self.peer else ''}"


# fmt: off
ROWS = [
    Row("8 B send to receive, one way", "ns", "UCX `tag_lat`", viaduct_latency_ns("send", 8), True, 1.0, 0.65),
    Row("8 B RDMA write, one way", "ns", "UCX `ucp_put_lat`", viaduct_latency_ns("write", 8), True, 1.2, 1.0),
    Row("8 B RDMA read", "ns", None, viaduct_latency_ns("read", 8), True),
    Row("64 B send to receive, one way", "ns", "libfabric `fi_pingpong` 64 B", viaduct_latency_ns("send", 64), True,
        alike=False),
    Row("4 KiB send to receive, one way", "ns", "libfabric `fi_pingpong` 4 KiB", viaduct_latency_ns("send", 4096), True,
        alike=False),
    Row("1 MiB send", "GB/s", "UCX `tag_bw`", viaduct_bandwidth("send"), False, 1.0, 3.0),
    Row("1 MiB RDMA write", "GB/s", "UCX `ucp_put_bw`", viaduct_bandwidth("write"), False, None, 1.0),
    Row("1 MiB RDMA read", "GB/s", None, viaduct_bandwidth("read"), False),
    Row("8 B send rate", "M/s", "UCX `tag_bw` 8 B", viaduct_rate, False, 1.0, 5.0),
    Row("connections", "1/s", None, viaduct_connect_rate, False, 5_000, 10_000, alike=False),
]
# fmt: on


PYTHON_RATE = "8 B RDMA write, posted and polled for, thousands/s"
PYTHON_BANDWIDTH = {
    "heap": "1 MiB RDMA write between numpy arrays, GB/s",
    "shareable": "1 MiB RDMA write between numpy arrays in `viaduct.alloc()`, GB/s",
}
PYTHON_GOAL = 0.9  # of the bandwidth of C


def python_measures(machine: Machine) -> list[tuple[str, Measure]]:
    """What the Python package achieves, and C with the same kind of memory and as many requests in progress."""
    measures = [(f"{api} {PYTHON_RATE}", functools.partial(python_rate, machine, api)) for api in APIS]
    measures += [(f"C {PYTHON_RATE}", functools.partial(lone_rate, machine))]
    for memory, what in PYTHON_BANDWIDTH.items():
        measures += [(f"core {what}", functools.partial(python_bandwidth, machine, memory))]
        measures += [(f"C {what}", functools.partial(memory_bandwidth, machine, memory))]
    return measures


def all_measures(machine: Machine) -> list[tuple[str, Measure]]:
    """Compared measurements are adjacent."""
    measures: list[tuple[str, Measure]] = []
    for row in ROWS:
        if row.peer is not None:
            measures.append((row.peer, functools.partial(PEERS[row.peer], machine)))
        measures += [(f"{api} {row.what}", functools.partial(row.ours, machine, api)) for api in APIS]
    return measures + python_measures(machine)


# ---- The table -------------------------------------------------------------------------------------------------------


def verdict(row: Row, value: float | None) -> str:
    if value is None:
        return "not measured"
    if row.goal is not None and row.reaches(value, row.goal):
        return "goal"
    if row.target is not None:
        return "target" if row.reaches(value, row.target) else "**missed**"
    return "–" if row.goal is None else "below the goal"


def spread(samples: Samples, row: Row) -> float | None:
    """The cost of the slowest interface relative to the fastest, each relative to the core."""
    costs = [median_ratio(samples, f"{api} {row.what}", f"core {row.what}") for api in APIS]
    return None if None in costs else max(costs) / min(costs)


def too_wide(samples: Samples, row: Row) -> bool:
    width = spread(samples, row)
    return row.alike and width is not None and width > MAX_SPREAD


def table(samples: Samples) -> str:
    def cells(row: Row) -> list[str]:
        figures = {api: median(samples, f"{api} {row.what}") for api in APIS}
        peer = median(samples, row.peer)
        to_peer = median_ratio(samples, f"vipl {row.what}", row.peer)
        judged = figures["vipl"] if row.peer is None else to_peer
        return [
            f"{row.what}, {row.unit}", *map(number, figures.values()), row.peer or "–", number(peer), number(to_peer),
            row.limit_text(row.target), row.limit_text(row.goal), verdict(row, judged),
            number(spread(samples, row)) + (" **missed**" if too_wide(samples, row) else ""),
        ]  # fmt: skip

    head = ["what", *APIS.values(), "peer", "its figure", "VIPL / peer", "target", "goal", "reached", "spread"]
    return markdown([head, *map(cells, ROWS)])


def python_table(samples: Samples) -> str:
    def cells(what: str, goal: float | None) -> list[str]:
        figures = {api: median(samples, f"{api} {what}") for api in APIS}
        of_c = median(samples, f"C {what}")
        share = median_ratio(samples, f"core {what}", f"C {what}")
        reached = "–" if goal is None or share is None else "goal" if share >= goal else "below the goal"
        goal_text = "–" if goal is None else f"≥ {goal:g} ×"
        return [what, *map(number, figures.values()), number(of_c), number(share), goal_text, reached]

    head = ["from Python", *APIS.values(), "core in C++", "core / C++", "goal", "reached"]
    bandwidths = [cells(what, PYTHON_GOAL) for what in PYTHON_BANDWIDTH.values()]
    return markdown([head, cells(PYTHON_RATE, None), *bandwidths])


def comparison(samples: Samples) -> str:
    """Describes in one line whether the interfaces have the same cost."""
    rows = [row for row in ROWS if row.alike]
    names = ", ".join(APIS.values())
    line = f"{names} within {MAX_SPREAD - 1:.0%} of each other at 8 B and 1 MiB: "
    if any(spread(samples, row) is None for row in rows):
        return line + "not measured."
    missed = [f"{row.what} ({number(spread(samples, row))})" for row in rows if too_wide(samples, row)]
    return line + (f"**no**: {'; '.join(missed)}." if missed else "yes.")


def limits_table(limits: dict[str, float | None]) -> str:
    names = {
        "cache_line_ns": "a cache line from core to core, one way, ns",
        "memcpy_1mib_gb_s": "`memcpy` of 1 MiB, GB/s",
        "process_vm_writev_8b_ns": "`process_vm_writev` of 8 B, ns",
        "process_vm_writev_1mib_gb_s": "`process_vm_writev` of 1 MiB, GB/s",
        "eventfd_wake_ns": "waking a process with an eventfd, one way, ns",
    }
    return markdown([["raw limit of the machine", "figure"], *([names[key], number(limits[key])] for key in names)])


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev bench", description=__doc__.splitlines()[0])
    parser.add_argument("--cpus", help="the two CPUs, for example 0,1; by default two different cores")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--write", action="store_true", help="write the table to docs/performance.md")
    arguments = parse(parser, "vi-perf", "raw_limits", "bindings/python/all")
    cpus = map(int, arguments.cpus.split(",")) if arguments.cpus else two_cpus()
    machine = Machine(*cpus, arguments.build)
    for program in ("taskset", "ucx_perftest", "fi_pingpong"):
        if shutil.which(program) is None:
            raise Failed(f"{program} is not installed")
    limits = raw_limits(machine)
    samples = collect(all_measures(machine), arguments.rounds)
    parts = [heading((machine.cpu, machine.peer_cpu), arguments.rounds), table(samples), comparison(samples),
             python_table(samples), limits_table(limits)]
    report = "\n\n".join(parts)
    print(report)
    if arguments.write:
        write_page(report, "bench")
    return 0 if is_complete(samples) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (Failed, OSError) as problem:
        sys.exit(f"bench: {problem}")
