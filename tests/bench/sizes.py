#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares VIPL and the core with UCX over message sizes: latency and bandwidth of sends, as a table and as curves.

For each size, all programs run one after the other, in several rounds. The table and the curves show medians;
docs/performance.md explains them.
"""

import argparse
import functools
import pathlib
import sys

from bench import MEGABYTE, STREAM_WINDOW, Machine, two_cpus, ucx, vi_perf
from harness import (
    PAGE, ROOT, Failed, Measure, Samples, collect, heading, is_complete, markdown, median, median_ratio, number, parse,
    write_page
)  # fmt: skip

SIZES = [1, 8, 12, 44, 45, 64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20]
PROGRAMS = {"core": "core", "vipl": "VIPL", "ucx": "UCX"}
CURVES = PAGE.with_name("performance-sizes.svg")
DURATION = "0.3"  # seconds, of each measurement of Viaduct
UCX_BYTES, UCX_MESSAGES = 2 << 30, 200_000  # at most, of each measurement of UCX


def size_text(size: int) -> str:
    for unit, scale in ("MiB", MEGABYTE), ("KiB", 1 << 10):
        if size >= scale:
            return f"{size // scale} {unit}"
    return f"{size} B"


def latency_us(machine: Machine, program: str, size: int) -> float:
    if program != "ucx":
        return vi_perf(machine, program, "latency", "mean_ns", size=size, duration=DURATION) / 1e3
    return ucx(machine, "tag_lat", size, min(UCX_MESSAGES, UCX_BYTES // size), "overall_lat")


def bandwidth_gb_s(machine: Machine, program: str, size: int) -> float:
    if program != "ucx":
        window = max(STREAM_WINDOW, min(128, STREAM_WINDOW * MEGABYTE // size))
        return vi_perf(machine, program, "bandwidth", "bytes_per_second", size=size, window=window,
                       duration=DURATION) / 1e9
    return ucx(machine, "tag_bw", size, min(10 * UCX_MESSAGES, UCX_BYTES // size), "overall_bw") * MEGABYTE / 1e9


FIGURES = {"one way, us": latency_us, "stream, GB/s": bandwidth_gb_s}


def measures(machine: Machine) -> list[tuple[str, Measure]]:
    return [
        (f"{program} {figure} {size}", functools.partial(measure, machine, program, size))
        for figure, measure in FIGURES.items()
        for size in SIZES
        for program in PROGRAMS
    ]


def table(samples: Samples) -> str:
    head = ["size"]
    for figure in FIGURES:
        head += [f"{name}, {figure}" for name in PROGRAMS.values()] + ["VIPL / UCX"]
    rows = [head]
    for size in SIZES:
        row = [size_text(size)]
        for figure in FIGURES:
            row += [number(median(samples, f"{program} {figure} {size}")) for program in PROGRAMS]
            row += [number(median_ratio(samples, f"vipl {figure} {size}", f"ucx {figure} {size}"))]
        rows.append(row)
    return markdown(rows)


def draw(samples: Samples, path: pathlib.Path) -> None:
    import matplotlib

    matplotlib.use("Agg")  # works without a display
    matplotlib.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "viaduct"}  # text stays text; no random names
    from matplotlib import pyplot, ticker

    figure, panels = pyplot.subplots(1, len(FIGURES), figsize=(11, 4.5), layout="constrained")
    for axes, what in zip(panels, FIGURES):
        for program, name in PROGRAMS.items():
            points = [(size, median(samples, f"{program} {what} {size}")) for size in SIZES]
            axes.plot(*zip(*[point for point in points if point[1] is not None]), marker=".", label=name)
        axes.set_xscale("log", base=2)
        axes.set(yscale="log", xlabel="size of the message", ylabel=what)
        axes.xaxis.set_major_locator(ticker.FixedLocator([1 << power for power in range(0, 23, 4)]))
        axes.xaxis.set_major_formatter(ticker.FuncFormatter(lambda size, _: size_text(int(size))))
        axes.xaxis.set_minor_locator(ticker.NullLocator())
        axes.grid(alpha=0.3)
        axes.legend()
    figure.savefig(path, metadata={"Date": None})
    path.write_text("\n".join(line.rstrip() for line in path.read_text().splitlines()) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev bench sizes", description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write", action="store_true", help=f"write the table and {CURVES.relative_to(ROOT)}")
    arguments = parse(parser, "vi-perf")
    machine = Machine(*two_cpus(), arguments.build)
    samples = collect(measures(machine), arguments.rounds)
    report = f"{heading((machine.cpu, machine.peer_cpu), arguments.rounds)}\n\n{table(samples)}"
    print(report)
    if arguments.write:
        draw(samples, CURVES)
        write_page(report, "bench sizes")
    return 0 if is_complete(samples) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (Failed, OSError) as problem:
        sys.exit(f"bench: {problem}")
