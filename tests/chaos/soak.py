#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""soak.py BUILD HOURS [DIRECTORY]: a server and a client of each API connect, exchange checked data and disconnect for
hours, over loopback and over tcp between two hosts. What each process uses is sampled, and written as a table (CSV) and
as curves (SVG) to the directory. It fails if anything grows; docs/reliability.md has the rule."""
import collections
import csv
import math
import os
import pathlib
import re
import statistics
import sys
import time

from fleet import APIS, Failed, Fleet
from hosts import FAR, NEAR, Hosts, enter

SAMPLES = 240  # in all
LEAST_INTERVAL_S = 0.1
SERIES = {"rss": "RSS (KiB)", "pss": "PSS (KiB)", "descriptors": "descriptors", "mappings": "mappings",
          "threads": "threads", "latency": "round trips of a batch (µs)"}
# What may be added in the second part of the time, in these units and as a share of the median.
TOLERATED = {"rss": (512, 0.03), "pss": (512, 0.03), "descriptors": (0.5, 0), "mappings": (4, 0), "threads": (0.5, 0),
             "latency": (50, 0.5)}
TIMED_S = 600  # what passes in less time tells of the machine's other work rather than of ours
TREND = 0.6  # Kendall's tau; below it the values go up and down, or have risen once, which makes at most 0.5
DEVIATIONS = 5  # at least, so that few values in random order show no trend
MOST_COMPARED = 120  # samples of the second part


def usage(process):
    """Returns what a process uses: one value for each of SERIES but the last. The PSS is that of memory, shared or not;
    that of a file, such as a library, grows whenever another process that maps it ends."""
    at = pathlib.Path(f"/proc/{process}")
    status = (at / "status").read_text(encoding="ascii")
    rollup = (at / "smaps_rollup").read_text(encoding="ascii")
    return [int(re.search(r"VmRSS:\s+(\d+)", status)[1]),
            sum(int(size) for size in re.findall(r"\nPss_(?:Anon|Shmem):\s+(\d+)", rollup)),
            len(os.listdir(at / "fd")), len((at / "maps").read_text(encoding="utf-8").splitlines()),
            int(re.search(r"Threads:\s+(\d+)", status)[1])]


def least_trend(count):
    """Returns the tau above which so many values rise."""
    return max(TREND, DEVIATIONS * math.sqrt(2 * (2 * count + 5) / (9 * count * (count - 1))))


def trend(points):
    """Returns the median of the slopes between all pairs of points (Theil and Sen), and Kendall's tau of the values."""
    slopes, rises = [], 0
    for i, (t1, v1) in enumerate(points):
        for t2, v2 in points[i + 1:]:
            slopes.append((v2 - v1) / (t2 - t1))
            rises += (v2 > v1) - (v2 < v1)
    return statistics.median(slopes), rises / len(slopes)


class Soak:
    def __init__(self, fleet):
        self.fleet = fleet
        self.samples = collections.defaultdict(list)  # (worker, series): times and values
        self.before = {}  # messages and time of a session at the last sample

    def begin(self):
        for number, worker in enumerate(self.fleet.workers):
            worker.launch(APIS[number // 2 % len(APIS)], number + 1, False)

    def label(self, worker):
        role = "server" if worker.servers else "client"
        return f"{worker.backend} {worker.api} {role}"

    def latency(self, session):
        """The mean in microseconds since the last sample."""
        now = session.messages, session.round_trips_ns
        before = self.before.get(session, (0, 0))
        self.before[session] = now
        return (now[1] - before[1]) / 1000 / max(1, now[0] - before[0])

    def sample(self, at):
        for worker in self.fleet.workers:
            for line in worker.read():
                if not line.startswith(("running", "viaduct: info")):
                    raise worker.failure(line)
            if worker.process.poll() is not None:
                raise worker.failure(f"ended with {worker.process.returncode}")
            values = usage(worker.process.pid)
            if not worker.servers:
                values.append(self.latency(worker.sessions[0]))
            for series, value in zip(SERIES, values):
                self.samples[self.label(worker), series].append((at, value))

    def run(self, seconds):
        interval = max(LEAST_INTERVAL_S, seconds / SAMPLES)
        start = time.monotonic()
        while (at := time.monotonic() - start) < seconds:
            self.sample(at)
            time.sleep(interval)

    def growth(self):
        """Returns for each curve how much it has grown in the second half, by the median slope, and whether that is too
        much."""
        for (label, series), points in self.samples.items():
            points = points[len(points) // 2:]
            points = points[::-(-len(points) // MOST_COMPARED)]
            if len(points) < 4:
                raise Failed(f"{label}: only {len(points)} samples")
            slope, tau = trend(points)
            seconds = points[-1][0] - points[0][0]
            added = slope * seconds
            units, share = TOLERATED[series]
            tolerated = max(units, share * statistics.median(value for _, value in points))
            judged = series != "latency" or seconds >= TIMED_S
            yield label, series, slope, added, judged and added > tolerated and tau > least_trend(len(points))

    def write(self, directory):
        directory.mkdir(parents=True, exist_ok=True)
        with open(directory / "soak.csv", "w", encoding="utf-8", newline="") as file:
            table = csv.writer(file)
            table.writerow(["process", "series", "seconds", "value"])
            for key, points in self.samples.items():
                table.writerows([*key, f"{at:.1f}", f"{value:.1f}"] for at, value in points)
        try:
            import matplotlib
        except ImportError:
            print("# no curves: python3-matplotlib is missing")
            return
        matplotlib.use("svg")
        from matplotlib import pyplot
        figure, axes = pyplot.subplots(len(SERIES), 1, figsize=(9, 3 * len(SERIES)), sharex=True)
        for axis, (series, title) in zip(axes, SERIES.items()):
            for (label, of), points in self.samples.items():
                if of == series:
                    axis.plot(*zip(*points), label=label, linewidth=1)
            axis.set_title(title)
            axis.set_ylim(bottom=0)
        axes[-1].set_xlabel("seconds")
        axes[0].legend(ncol=3, fontsize="x-small")
        figure.savefig(directory / "soak.svg", bbox_inches="tight")


def soak(build, hours, directory):
    places = [place for backend in ("loopback", "tcp") for _ in APIS
              for place in ((backend, FAR if backend == "tcp" else NEAR), (backend, NEAR))]
    with Hosts() as hosts, Fleet(build, hosts, places) as fleet:
        for number in range(0, len(places), 2):
            fleet.pair(fleet.workers[number], fleet.workers[number + 1])
        run = Soak(fleet)
        run.begin()
        try:
            run.run(3600 * hours)
            fleet.finish()
            growth = list(run.growth())
        finally:
            run.write(directory)
        clients = [session for worker in fleet.workers if not worker.servers for session in worker.sessions]
        wrong = [f"{label}: {series} grows by {slope * 3600:.3g} an hour, {added:.3g} in the second half"
                 for label, series, slope, added, failed in growth if failed]
        print("\n".join(f"FAILED {line}" for line in wrong), end="\n" if wrong else "")
        worst = {series: max(slope for _, of, slope, _, _ in growth if of == series) * 3600 for series in SERIES}
        slopes = ", ".join(f"{series} {slope:+.3g}" for series, slope in worst.items())
        print(f"soak: {hours:g} h: {fleet.total('connections', clients)} connects, "
              f"{fleet.total('messages', fleet.sessions)} messages, {fleet.total('opened', fleet.sessions)} "
              f"registrations; largest slopes an hour: {slopes}; {len(wrong)} of {len(growth)} curves grow")
        return min(len(wrong), 1)


def main():
    build, hours = pathlib.Path(sys.argv[1]).resolve(), float(sys.argv[2])
    directory = pathlib.Path(sys.argv[3] if len(sys.argv) > 3 else build.parent / "soak").resolve()
    enter()
    try:
        return soak(build, hours, directory)
    except Failed as failure:
        print(f"{failure}\nsoak: FAILED")
        return 1


if __name__ == "__main__":
    sys.exit(main())
