#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""measures_test.py BUILD: the measurements of `./dev bench` and of its hosts, sizes and connections that run programs
of Viaduct give figures, of whatever size."""
import os
import pathlib
import sys

import bench
import connections
import hosts
import sizes

SKIPPED = 77


def figures(build):
    """Returns pairs of a name and a figure."""
    cpus = bench.two_cpus()
    machine = bench.Machine(*cpus, build)
    for row in bench.ROWS:
        yield row.what, row.ours(machine, "core")
    for name, measure in bench.python_measures(machine):
        yield name, measure()
    for figure, measure in sizes.FIGURES.items():
        yield figure, measure(machine, "core", sizes.SIZES[-1])
    network = hosts.loopback()
    for measurement in hosts.measurements(["core"]):
        if measurement.subject == "core":
            taken = measurement.take(hosts.Machine(*cpus, build, "tcp"), network)
            yield from zip(measurement.rows, taken, strict=True)
    yield "one of ten connections", connections.vi_perf(build, cpus, 10, 0.1)["connections_per_second"]


def main(build):
    if len(os.sched_getaffinity(0)) < 2:
        print("one processor: nothing is compared here")
        return SKIPPED
    for name, figure in figures(pathlib.Path(build).resolve()):
        print(name, figure)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
