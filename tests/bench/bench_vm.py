#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares Viaduct with perftest, the stock librpma and the stock DAT between the two hosts of a guest with Soft-RoCE
devices.

All programs run in the same guest, pinned to the same two CPUs, one after another in several rounds. The guest
prints its measurements as JSON; docs/performance.md explains the table.
"""

import argparse
import contextlib
import dataclasses
import datetime
import itertools
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator

from harness import (
    PROBLEMS, Failed, Measure, Samples, background, collect, is_complete, markdown, median, median_ratio, number, parse,
    pinned, processor, run, run_in_guest, server, write_page
)  # fmt: skip

CLIENT, SERVER = "10.0.0.1", "10.0.0.2"  # the hosts of the guest, see tests/vm/README.md
CLIENT_CPU, SERVER_CPU = 0, 1
PORT = 7300
WINDOW = 32  # messages in progress in a stream; same as in library_perf.h
KIB = 1024
MAX_COST = 1.02  # of our library relative to the stock library


@dataclasses.dataclass(frozen=True)
class Row:
    """A row of the table. The iterations are chosen to take some tens of milliseconds in the guest."""

    operation: str  # send or write
    size: int
    test: str  # latency or bandwidth
    iterations: int

    @property
    def what(self) -> str:
        size = f"{self.size} B" if self.size < KIB else f"{self.size // KIB} KiB"
        kind = "send" if self.operation == "send" else "RDMA write"
        return f"{size} {kind}, " + ("one way, us" if self.test == "latency" else "MB/s")

    def figure(self, ns: float) -> float:
        """Converts a latency in ns, or the time per message of a stream."""
        return ns / 1000 if self.test == "latency" else 1000 * self.size / ns


ROWS = [
    Row("send", 8, "latency", 200),
    Row("write", 8, "latency", 200),
    Row("send", 64 * KIB, "latency", 5),
    Row("write", 64 * KIB, "latency", 5),
    Row("send", 64 * KIB, "bandwidth", 64),
    Row("write", 64 * KIB, "bandwidth", 64),
]
APIS = {"core": "core", "vipl": "VIPL", "dat": "DAT", "rpma": "rpma"}  # the names in vi-perf and in the table
COLUMNS = ["perftest", *APIS.values()]
STOCK, OUR = "stock", "our"


@dataclasses.dataclass(frozen=True)
class Library:
    """An interface with a stock library and ours, for the same program."""

    name: str
    program: str  # in tests/bench
    directory: str  # of our library, in the build
    server: str  # the program's name for the host that it runs on
    client: str

    def column(self, kind: str) -> str:
        return f"{kind} {self.name}"


LIBRARIES = [
    Library("librpma", "rpma_perf", "api/rpma", SERVER, CLIENT),
    Library("DAT", "dat_perf", "api/udat", "viaduct-veth2", "viaduct-veth1"),
]

# Debian's provider under the names of our adapters.
STOCK_DAT_CONF = "".join(
    f'viaduct-{netdev} u2.0 nonthreadsafe default libdaplofa.so.2 dapl.2.0 "{netdev} 0" ""\n'
    for netdev in ("veth1", "veth2")
)


def name_of(column: str, row: Row) -> str:
    return f"{column}: {row.what}"


# ---- In the guest ----------------------------------------------------------------------------------------------------


class Pair:
    """A server and a client that stay connected, so that two libraries can be measured alternately."""

    def __init__(self, build: pathlib.Path, library: Library, port: int, env: dict[str, str]) -> None:
        program = build / "tests/bench" / library.program
        self.env = os.environ | env
        self.server = self.start(SERVER_CPU, program, port, library.server)
        if self.server.stdout.readline() != "listening\n":
            raise Failed(f"{library.program} does not listen")
        self.client = self.start(CLIENT_CPU, program, port, library.client, SERVER)

    def start(self, cpu: int, *command: object) -> subprocess.Popen:
        return subprocess.Popen(
            pinned(cpu, *command), env=self.env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def measure(self, row: Row) -> float:
        for process in (self.server, self.client):
            print(f"{row.operation}-{row.test} {row.size} {row.iterations}", file=process.stdin, flush=True)
        self.server.stdout.readline()
        return row.figure(float(self.client.stdout.readline()))

    def close(self) -> None:
        for process in (self.server, self.client):
            process.stdin.close()
        for process in (self.server, self.client):
            if process.wait(10) != 0:
                raise Failed(f"{process.args}: exit code {process.returncode}")


@contextlib.contextmanager
def open_pairs(build: pathlib.Path) -> Iterator[list[dict[str, Pair]]]:
    """Opens a pair for each library, by column name, and another one in the opposite order, because the first of two
    pairs of the same library is a few per cent faster."""
    with tempfile.NamedTemporaryFile("w", suffix="dat.conf") as stock_dat_conf:
        stock_dat_conf.write(STOCK_DAT_CONF)
        stock_dat_conf.flush()
        ports = itertools.count(PORT + 1)
        orders: list[dict[str, Pair]] = []
        for kinds in ((STOCK, OUR), (OUR, STOCK)):
            orders.append({})
            for library, kind in itertools.product(LIBRARIES, kinds):
                stock = {"DAT_OVERRIDE": stock_dat_conf.name}
                ours = {"LD_LIBRARY_PATH": str(build / library.directory)}
                env = stock if kind == STOCK else ours
                orders[-1][library.column(kind)] = Pair(build, library, next(ports), env)
        yield orders
        for pair in itertools.chain(*map(dict.values, orders)):
            pair.close()


def perftest(row: Row) -> float:
    program = f"ib_{row.operation}_{'lat' if row.test == 'latency' else 'bw'}"
    command = [program, "-F", "-p", PORT, "-x", 1, "-s", row.size, "-n", 10 * row.iterations]
    if row.test == "bandwidth":
        command += ["-t", WINDOW]
    with server(pinned(SERVER_CPU, *command, "-d", "rxe2"), PORT):
        output = run(pinned(CLIENT_CPU, *command, "-d", "rxe1", SERVER))
    values = re.search(rf"^ *{row.size} .*", output, re.MULTILINE)[0].split()
    # The values after size and iterations are the minimum, maximum and median latency, or the peak and average
    # bandwidth.
    value = float(values[4]) if row.test == "latency" else float(values[3]) * KIB * KIB / 1e6
    if not math.isfinite(value):
        raise Failed(f"{program} could not measure its clock")
    return value


def vi_perf(build: pathlib.Path, api: str, row: Row) -> float:
    command = [build / "tools/vi-perf", "--api", api, "--backend", "verbs", "--quiet"]
    options = ["--test", row.test, "--op", row.operation, "--sizes", row.size, "--iterations", 10 * row.iterations]
    listener = pinned(SERVER_CPU, *command, "--listen", PORT, "--count", 1)
    client = pinned(CLIENT_CPU, *command, *options, "--window", WINDOW, "--json", f"{SERVER}:{PORT}")
    with background(listener, {"VIADUCT_DEVICE": "rxe2"}):  # the client retries until it listens
        result = json.loads(run(client, {"VIADUCT_DEVICE": "rxe1"}))["results"][0]
    return result["p50_ns"] / 1000 if row.test == "latency" else result["bytes_per_second"] / 1e6


def hurry_interrupts() -> None:
    """Soft-RoCE works in soft interrupts. A program that polls may delay them until the next tick of the scheduler,
    which sometimes takes milliseconds. With priority they run immediately."""
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        if (process / "comm").read_text().startswith("ksoftirqd"):
            os.sched_setscheduler(int(process.name), os.SCHED_FIFO, os.sched_param(50))


def measure_all(build: pathlib.Path, orders: list[dict[str, Pair]], rounds: int, turns: int) -> Samples:
    hurry_interrupts()
    measures: list[tuple[str, Measure]] = []
    for row in ROWS:
        measures.append((name_of("perftest", row), lambda row=row: perftest(row)))
        for api, column in APIS.items():
            measures.append((name_of(column, row), lambda row=row, api=api: vi_perf(build, api, row)))
        for pairs in turns * orders:
            for column, pair in pairs.items():
                measures.append((name_of(column, row), lambda row=row, pair=pair: pair.measure(row)))
    return collect(measures, rounds)


# ---- Outside ---------------------------------------------------------------------------------------------------------


def measure_in_guest(build: pathlib.Path, rounds: int, turns: int) -> Samples:
    return run_in_guest(__file__, "--build", build, "--rounds", rounds, "--turns", turns)


def cost(samples: Samples, row: Row, column: str, base: str) -> float | None:
    """The time of one relative to the other, below 1 if it is faster."""
    names = name_of(column, row), name_of(base, row)
    return median_ratio(samples, *(names if row.test == "latency" else reversed(names)))


def cost_of_order(samples: Samples, row: Row, column: str) -> float | None:
    """The time of the second pair of a library relative to the first, an effect that the table does not show
    separately."""
    values = samples[name_of(column, row)]
    apart = {"second": values[1::2], "first": values[0::2]}
    return median_ratio(apart, *(("second", "first") if row.test == "latency" else ("first", "second")))


def table(samples: Samples) -> str:
    def cells(row: Row) -> list[str]:
        figures = {column: median(samples, name_of(column, row)) for column in COLUMNS}
        return [row.what, *map(number, figures.values()), number(cost(samples, row, "core", "perftest"))]

    return markdown([["what", *COLUMNS, "core / perftest"], *map(cells, ROWS)])


def library_cost(samples: Samples, library: Library, row: Row) -> float | None:
    return cost(samples, row, library.column(OUR), library.column(STOCK))


def library_table(samples: Samples, library: Library) -> str:
    columns = [library.column(kind) for kind in (STOCK, OUR)]

    def cells(row: Row) -> list[str]:
        figures = [number(median(samples, name_of(column, row))) for column in columns]
        noise = [number(cost_of_order(samples, row, column)) for column in columns]
        return [row.what, *figures, number(library_cost(samples, library, row)), *noise]

    return markdown([["what", *columns, "ours / stock", "stock / stock", "ours / ours"], *map(cells, ROWS)])


def verdict(samples: Samples, library: Library) -> str:
    costs = {row.what: library_cost(samples, library, row) for row in ROWS}
    missed = [f"{what} ({number(value)})" for what, value in costs.items() if value is None or value > MAX_COST]
    return f"Our {library.name} costs at most {MAX_COST} × the stock one: " + (
        f"**no**: {'; '.join(missed)}." if missed else "yes."
    )


def heading(rounds: int) -> str:
    today = f"{datetime.date.today():%d %B %Y}"
    return f"{today}, a guest on {processor()}, {os.cpu_count()} CPUs; medians of {rounds} rounds."


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev bench vm", description=__doc__.splitlines()[0])
    parser.add_argument("--in-guest", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--turns", type=int, default=3, help="of two pairs of each library in each round")
    parser.add_argument("--write", action="store_true", help="write the table to docs/performance.md")
    arguments = parse(parser, "vi-perf", "rpma_perf", "dat_perf")
    if arguments.in_guest:
        with open_pairs(arguments.build) as orders:
            json.dump(measure_all(arguments.build, orders, arguments.rounds, arguments.turns), sys.stdout)
        return 0
    samples = measure_in_guest(arguments.build.resolve(), arguments.rounds, arguments.turns)
    parts = [heading(arguments.rounds), table(samples)]
    for library in LIBRARIES:
        parts += [library_table(samples, library), verdict(samples, library)]
    report = "\n\n".join(parts)
    print(report)
    if arguments.write:
        write_page(report, "bench vm")
    return 0 if is_complete(samples) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except PROBLEMS as problem:
        sys.exit(f"bench vm: {problem}")
