#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares Viaduct with perftest and the stock librpma between the two hosts of a guest with Soft-RoCE devices.

All programs run in one guest, pinned to the same two CPUs, one after the other and round after round. What the guest
measures comes out of it as JSON; docs/performance.md explains the table.
"""

import argparse
import dataclasses
import datetime
import json
import math
import os
import pathlib
import platform
import re
import statistics
import subprocess
import sys

from harness import (
    PROBLEMS, ROOT, Failed, Measure, Samples, background, collect, markdown, median, number, pinned, ratio, run, server,
    write_page
)  # fmt: skip

CLIENT, SERVER = "10.0.0.1", "10.0.0.2"  # the hosts of the guest, see tests/vm/README.md
CLIENT_CPU, SERVER_CPU = 0, 1
PORT = 7300
WINDOW = 32  # messages under way in a stream; rpma_perf has the same
KIB = 1024
MAX_COST = 1.02  # of ours over the stock librpma


@dataclasses.dataclass(frozen=True)
class Row:
    """A line of the table. Iterations are what takes some tens of milliseconds there."""

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
        """Of a latency in ns, or of the time that one message of a stream takes."""
        return ns / 1000 if self.test == "latency" else 1000 * self.size / ns


ROWS = [
    Row("send", 8, "latency", 200),
    Row("write", 8, "latency", 200),
    Row("send", 64 * KIB, "latency", 5),
    Row("write", 64 * KIB, "latency", 5),
    Row("send", 64 * KIB, "bandwidth", 64),
    Row("write", 64 * KIB, "bandwidth", 64),
]
STOCK, SAME = "stock librpma", "ours, same program"  # two columns of one program
APIS = {"core": "core", "vipl": "VIPL", "rpma": "rpma"}  # as vi-perf and as people call them
COLUMNS = ["perftest", STOCK, SAME, *APIS.values()]


def name_of(column: str, row: Row) -> str:
    return f"{column}: {row.what}"


# ---- In the guest -----------------------------------------------------------------------------------------------------


class Pair:
    """A server and a client of rpma_perf that stay connected, so that two libraries can take turns."""

    def __init__(self, program: pathlib.Path, port: int, library: pathlib.Path | None) -> None:
        self.env = os.environ | ({"LD_LIBRARY_PATH": str(library)} if library else {})
        self.server = self.start(SERVER_CPU, program, port, SERVER)
        if self.server.stdout.readline() != "listening\n":
            raise Failed("rpma_perf does not listen")
        self.client = self.start(CLIENT_CPU, program, port, CLIENT, SERVER)

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
                raise Failed(f"rpma_perf: exit code {process.returncode}")


def perftest(row: Row) -> float:
    program = f"ib_{row.operation}_{'lat' if row.test == 'latency' else 'bw'}"
    command = [program, "-F", "-p", PORT, "-x", 1, "-s", row.size, "-n", 10 * row.iterations]
    if row.test == "bandwidth":
        command += ["-t", WINDOW]
    with server(pinned(SERVER_CPU, *command, "-d", "rxe2"), PORT):
        output = run(pinned(CLIENT_CPU, *command, "-d", "rxe1", SERVER))
    values = re.search(rf"^ *{row.size} .*", output, re.MULTILINE)[0].split()
    # Behind size and iterations are: the least, the largest and the median latency; or the best and the mean bandwidth.
    value = float(values[4]) if row.test == "latency" else float(values[3]) * KIB * KIB / 1e6
    if not math.isfinite(value):
        raise Failed(f"{program} could not measure its clock")
    return value


def vi_perf(build: pathlib.Path, api: str, row: Row) -> float:
    command = [build / "tools/vi-perf", "--api", api, "--backend", "verbs", "--quiet"]
    options = ["--test", row.test, "--op", row.operation, "--sizes", row.size, "--iterations", 10 * row.iterations]
    listener = pinned(SERVER_CPU, *command, "--listen", PORT, "--count", 1)
    client = pinned(CLIENT_CPU, *command, *options, "--window", WINDOW, "--json", f"{SERVER}:{PORT}")
    with background(listener, {"VIADUCT_DEVICE": "rxe2"}):  # the client tries again until it listens
        result = json.loads(run(client, {"VIADUCT_DEVICE": "rxe1"}))["results"][0]
    return result["p50_ns"] / 1000 if row.test == "latency" else result["bytes_per_second"] / 1e6


def hurry_interrupts() -> None:
    """Soft-RoCE works in soft interrupts, which a program that polls may hold up until the next tick of the scheduler:
    milliseconds, now and then. With priority they run at once."""
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        if (process / "comm").read_text().startswith("ksoftirqd"):
            os.sched_setscheduler(int(process.name), os.SCHED_FIFO, os.sched_param(50))


def measure_all(build: pathlib.Path, rounds: int, turns: int) -> Samples:
    hurry_interrupts()
    program = build / "tests/bench/rpma_perf"
    pairs = {STOCK: Pair(program, PORT + 1, None), SAME: Pair(program, PORT + 2, build / "api/rpma")}
    measures: list[tuple[str, Measure]] = []
    for row in ROWS:
        measures.append((name_of("perftest", row), lambda row=row: perftest(row)))
        for api, column in APIS.items():
            measures.append((name_of(column, row), lambda row=row, api=api: vi_perf(build, api, row)))
        for _ in range(turns):
            for column, pair in pairs.items():
                measures.append((name_of(column, row), lambda row=row, pair=pair: pair.measure(row)))
    samples = collect(measures, rounds)
    for pair in pairs.values():
        pair.close()
    return samples


# ---- Outside ----------------------------------------------------------------------------------------------------------


def measure_in_guest(build: pathlib.Path, rounds: int, turns: int) -> Samples:
    guest = [ROOT / "tests/vm/run", "-m", 3000, "-e", "VIADUCT_BACKEND=verbs", "--"]
    here = ["python3", __file__, "--in-guest", "--build", build, "--rounds", rounds, "--turns", turns]
    done = subprocess.run(list(map(str, guest + here)), stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise Failed(f"the guest: exit code {done.returncode}")
    return json.loads(done.stdout)


def cost(row: Row, value: float | None, base: float | None) -> float | None:
    """How much more time one takes than the other, below 1 where it takes less."""
    return ratio(value, base) if row.test == "latency" else ratio(base, value)


def spread(samples: Samples, name: str) -> float | None:
    """The distance between the quartiles, as a share of the median."""
    values = samples[name]
    if len(values) < 2:
        return None
    first, middle, third = statistics.quantiles(values, n=4)
    return (third - first) / middle


def table(samples: Samples) -> str:
    def cells(row: Row) -> list[str]:
        figures = {column: median(samples, name_of(column, row)) for column in COLUMNS}
        spreads = [spread(samples, name_of(column, row)) for column in (STOCK, SAME)]
        return [
            row.what, *map(number, figures.values()),
            number(cost(row, figures[SAME], figures[STOCK])),
            *("–" if share is None else f"{share:.0%}" for share in spreads),
            number(cost(row, figures["core"], figures["perftest"])),
        ]  # fmt: skip

    head = ["what", *COLUMNS, "ours / stock", "spread of stock", "of ours", "core / perftest"]
    return markdown([head, *map(cells, ROWS)])


def verdict(samples: Samples) -> str:
    costs = {
        row.what: cost(row, median(samples, name_of(SAME, row)), median(samples, name_of(STOCK, row))) for row in ROWS
    }
    missed = [f"{what} ({number(value)})" for what, value in costs.items() if value is None or value > MAX_COST]
    return f"Ours through rpma costs at most {MAX_COST} × stock librpma: " + (
        f"**no**: {'; '.join(missed)}." if missed else "yes."
    )


def heading(rounds: int) -> str:
    models = re.findall(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text()) or [platform.machine()]
    return f"{datetime.date.today():%d %B %Y}, a guest on {models[0]}, {os.cpu_count()} CPUs; medians of {rounds} rounds."


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev bench vm", description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release", help=argparse.SUPPRESS)
    parser.add_argument("--in-guest", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--turns", type=int, default=5, help="of the two librpma in each round")
    parser.add_argument("--write", action="store_true", help="keep the table in docs/performance.md")
    arguments = parser.parse_args()
    if arguments.in_guest:
        json.dump(measure_all(arguments.build, arguments.rounds, arguments.turns), sys.stdout)
        return 0
    samples = measure_in_guest(arguments.build.resolve(), arguments.rounds, arguments.turns)
    report = "\n\n".join([heading(arguments.rounds), table(samples), verdict(samples)])
    print(report)
    if arguments.write:
        write_page(report, "bench vm")
    return 0 if all(samples.values()) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except PROBLEMS as problem:
        sys.exit(f"bench vm: {problem}")
