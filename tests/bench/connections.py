#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measures many connections between two processes: what each takes, and what those in use cost.

vi-perf --connections runs with one connection and with many, one after the other in several rounds. The tables show
medians; docs/performance.md explains them.
"""

import argparse
import functools
import json
import pathlib
import statistics
import sys
from typing import Any

from bench import two_cpus
from harness import PROBLEMS, Failed, heading, markdown, number, parse, run, show_progress, write_page

SIZES = [1, 100, 1_000, 10_000]
Run = dict[str, Any]  # what vi-perf prints


def vi_perf(build: pathlib.Path, cpus: tuple[int, int], connections: int, duration: float) -> Run:
    options = ["--connections", connections, "--json", "--duration", duration]
    options += ["--cpu", cpus[0], "--server-cpu", cpus[1]]
    return json.loads(run([str(word) for word in [build / "tools/vi-perf", *options]]))


def median_of(runs: list[Run], *path: str | int) -> float | None:
    values = [functools.reduce(lambda part, key: part[key], path, one) for one in runs]
    return statistics.median(values) if values else None


def scaled(value: float | None, unit: float) -> str:
    return number(None if value is None else value / unit)


def round_trip_ratio(runs: list[Run], alone: list[Run], row: int) -> float | None:
    """Uses pairs of the same round, when the machine was in the same state."""
    pairs = zip(runs, alone)
    ratios = [
        many["results"][row]["round_trip_ns"] / one["results"][0]["round_trip_ns"]
        for many, one in pairs
        if many and one
    ]
    return statistics.median(ratios) if ratios else None


def costs_table(runs: dict[int, list[Run]]) -> str:
    head = ["connections open", "opened, 1/s", "memory, client, KiB", "memory, server, KiB", "descriptors",
            "message to wake-up, us", "registration of 4 KiB, us"]  # fmt: skip
    rows = [head]
    for size, done in runs.items():
        figures = functools.partial(median_of, [one for one in done if one])
        rows.append([
            f"{size:,}", number(figures("connections_per_second")), scaled(figures("client", "memory_bytes"), 1024),
            scaled(figures("server", "memory_bytes"), 1024), number(figures("client", "descriptors")),
            scaled(figures("wakeup_ns"), 1000), scaled(figures("registration_ns"), 1000),
        ])  # fmt: skip
    return markdown(rows)


def active_table(runs: dict[int, list[Run]]) -> str:
    rows = [["connections in use, in turn", "round trip, us", "to 1 of 1", "round trips, M/s"]]
    for size in (SIZES[0], SIZES[-1]):
        done = [one for one in runs[size] if one]
        for row in range(len(done[0]["results"]) if done else 0):
            figures = functools.partial(median_of, done, "results", row)
            rows.append([
                f"{done[0]['results'][row]['active']:,} of {size:,}", scaled(figures("round_trip_ns"), 1000),
                number(round_trip_ratio(runs[size], runs[SIZES[0]], row)),
                scaled(figures("round_trips_per_second"), 1e6),
            ])  # fmt: skip
    return markdown(rows)


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev bench connections", description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--duration", type=float, default=0.5, help="seconds for each figure")
    parser.add_argument("--write", action="store_true", help="write the tables to docs/performance.md")
    arguments = parse(parser, "vi-perf")
    cpus = two_cpus()
    runs: dict[int, list[Run]] = {size: [] for size in SIZES}
    for turn in range(1, arguments.rounds + 1):
        for size in SIZES:
            show_progress(f"round {turn} of {arguments.rounds}: {size} connections")
            try:
                runs[size].append(vi_perf(arguments.build, cpus, size, arguments.duration))
            except PROBLEMS as problem:
                runs[size].append({})
                print(f"{size} connections: {problem!r}", file=sys.stderr)
    show_progress("")
    report = "\n\n".join([heading(cpus, arguments.rounds), costs_table(runs), active_table(runs)])
    print(report)
    if arguments.write:
        write_page(report, "connections")
    return 0 if all(any(done) for done in runs.values()) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (Failed, OSError) as problem:
        sys.exit(f"bench: {problem}")
