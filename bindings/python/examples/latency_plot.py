#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Plots latency against message size, for each API and each available backend, to a PNG file.

    latency_plot.py latency.png
    latency_plot.py latency.png --sizes 8..1M --duration 1 --op write

vi-perf measures the latency between two processes on this host, so the plot does not include the overhead of Python.
"""
from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import typing

import matplotlib

matplotlib.use("Agg")  # works without a display
from matplotlib import pyplot  # noqa: E402

APIS = {"core": "core", "vipl": "VIPL", "dat": "DAT", "rpma": "librpma"}
BACKENDS = {"loopback": "-", "verbs": "--"}  # and their line styles

Points = typing.List[typing.Tuple[int, float]]


def has_device(backend: str) -> bool:
    """Uses another process for the check, because a process has only one backend."""
    look = "from viaduct import core; raise SystemExit(not core.devices())"
    return subprocess.run([sys.executable, "-c", look], env={**os.environ, "VIADUCT_BACKEND": backend}).returncode == 0


def measure(program: str, api: str, backend: str, options: argparse.Namespace) -> Points:
    """Returns sizes in bytes and median one-way latencies in microseconds."""
    command = [program, "--local", "--json", "--quiet", "--test", "latency", "--api", api, "--backend", backend,
               "--op", options.op, "--sizes", options.sizes, "--duration", str(options.duration)]
    output = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
    return [(result["size_bytes"], result["p50_ns"] / 1000) for result in json.loads(output)["results"]]


def plot(lines: dict[tuple[str, str], Points], operation: str, path: str) -> None:
    figure, axes = pyplot.subplots(figsize=(8, 5), layout="constrained")
    for (api, backend), points in lines.items():
        axes.plot(*zip(*points), BACKENDS[backend], marker=".", color=f"C{list(APIS).index(api)}",
                  label=f"{APIS[api]}, {backend}")
    axes.set(xscale="log", yscale="log", xlabel="size of the message, bytes", ylabel="one way, median, µs",
             title=f"Latency: {operation}")
    axes.set_xscale("log", base=2)
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("png", help="the file to write")
    parser.add_argument("--sizes", default="8,64,512,4K,32K,256K,1M", help="as for vi-perf (%(default)s)")
    parser.add_argument("--duration", type=float, default=0.3, metavar="SECONDS", help="per size (%(default)s)")
    parser.add_argument("--op", default="send", choices=["send", "write", "read"])
    parser.add_argument("--backends", nargs="+", default=list(BACKENDS), choices=BACKENDS, help="default: both")
    parser.add_argument("--vi-perf", default=shutil.which("vi-perf"), metavar="PROGRAM", help="default: from PATH")
    options = parser.parse_args()
    if not options.vi_perf:
        parser.error("vi-perf is not in PATH; --vi-perf says where it is")
    backends = [backend for backend in options.backends if has_device(backend)]
    lines = {(api, backend): measure(options.vi_perf, api, backend, options) for backend in backends for api in APIS}
    if not lines:
        raise SystemExit("there is no device")
    plot(lines, options.op, options.png)
    for (api, backend), points in lines.items():
        print(f"{api:5} {backend:9}", *(f"{size}: {latency:.3g} µs" for size, latency in points), sep="  ")


if __name__ == "__main__":
    main()
