#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Draws what vi-perf measured: plot.py FILE, with a JSON document on standard input. An empty one: only checks whether
it can.

vi-perf has this file built in, so it may use nothing but Python and matplotlib.
"""
import json
import os
import sys


def fail(reason):
    sys.exit(f"vi-perf: --plot: {reason}")


try:
    import matplotlib
except ImportError as error:
    fail(f"{error}; install the package python3-matplotlib")
matplotlib.use("Agg")  # works without a display
matplotlib.rcParams["svg.fonttype"] = "none"  # text stays text
from matplotlib import pyplot, ticker  # noqa: E402


def size_text(size):
    for unit, bytes_of_unit in ("MiB", 1 << 20), ("KiB", 1 << 10):
        if size >= bytes_of_unit and size % bytes_of_unit == 0:
            return f"{size // bytes_of_unit} {unit}"
    return f"{size} B"


def plot_distribution(axes, results):
    """A line for each size; the axis of percentiles gives each further nine the same room."""
    for result in results:
        axes.plot([1 / (1 - share) for share, _ in result["latency"]], [ns / 1000 for _, ns in result["latency"]],
                  label=size_text(result["size"]) if result["size"] else None)
    axes.set(xscale="log", yscale="log", xlabel="percentile", ylabel="latency [µs]")
    last = max(1 / (1 - result["latency"][-1][0]) for result in results)
    shares = [share for share in (0, 50, 90, 99, 99.9, 99.99, 99.999, 99.9999) if 100 / (100 - share) <= last * 1.01]
    axes.set_xticks([100 / (100 - share) for share in shares], [f"{share} %" for share in shares])
    axes.xaxis.set_minor_locator(ticker.NullLocator())
    if results[0]["size"]:
        axes.legend(title="size")


def plot_by_size(axes, results, key, label):
    axes.plot([result["size"] for result in results], [result[key] / 1e6 for result in results], marker="o")
    axes.set_xscale("log", base=2)
    axes.set(yscale="log", xlabel="size of the message", ylabel=label)
    axes.xaxis.set_major_formatter(ticker.FuncFormatter(lambda size, _: size_text(int(size))))
    axes.xaxis.set_minor_locator(ticker.NullLocator())


def main():
    path, = sys.argv[1:]
    figure, axes = pyplot.subplots(figsize=(9, 5), layout="constrained")
    types = figure.canvas.get_supported_filetypes()
    if os.path.splitext(path)[1][1:] not in types:
        fail(f"the name of the file must end in one of: {', '.join('.' + each for each in sorted(types))}")
    text = sys.stdin.read()
    try:
        if not text:
            is_new = not os.path.lexists(path)
            open(path, "ab").close()
            if is_new:
                os.remove(path)
            return
        document = json.loads(text)
        results = document["results"]
        if "latency" in results[0]:
            plot_distribution(axes, results)
        elif document["test"] == "rate":
            plot_by_size(axes, results, "messages_per_second", "rate [million messages/s]")
        else:
            plot_by_size(axes, results, "bytes_per_second", "bandwidth [MB/s]")
        for axis in axes.xaxis, axes.yaxis:
            axis.grid(alpha=0.3)
        axes.yaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_formatter(ticker.NullFormatter())
        axes.set_title(document["title"], fontsize="medium", wrap=True)
        figure.savefig(path)
    except OSError as error:
        fail(f"cannot write {path}: {error.strerror}")


main()
