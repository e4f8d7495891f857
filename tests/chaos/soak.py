#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""soak.py BUILD HOURS [DIRECTORY]: a server and a client of each API connect, exchange checked data and disconnect for
hours, over loopback and over tcp between two hosts. What each process uses is sampled, and written as a table (CSV) and
as curves (SVG) to the directory. It fails if anything grows; docs/reliability.md has the rule."""
import collections
import csv
import itertools
import math
import os
import pathlib
import re
import statistics
import sys
import time

from fleet import APIS, MIXED, PAUSE, RUN, STREAM, Failed, Fleet
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
TRAFFICS = {MIXED: "mixed", STREAM: "stream"}
# Clients of each API take turns, or the processes would do little but wait for a processor: what they do, over which
# backends at the same time, and for how many parts of a turn.
TURNS = (MIXED, ("loopback", "tcp"), 3), (STREAM, ("loopback",), 2), (STREAM, ("tcp",), 1)
TURN_S, LEAST_TURNS = 0.25, 80
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
        return f"{worker.backend} {worker.api} {TRAFFICS[worker.sessions[0].traffic]} {role}"

    def clients(self):
        return [session for worker in self.fleet.workers if not worker.servers for session in worker.sessions]

    def latency(self, session):
        """The mean in microseconds since the last sample, if there was a message."""
        now = session.messages, session.round_trips_ns
        before = self.before.get(session, (0, 0))
        self.before[session] = now
        return (now[1] - before[1]) / 1000 / (now[0] - before[0]) if now[0] > before[0] else None

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
                if value is not None:
                    self.samples[self.label(worker), series].append((at, value))

    def run(self, seconds):
        interval, part = max(LEAST_INTERVAL_S, seconds / SAMPLES), min(TURN_S, seconds / LEAST_TURNS)
        start = next_turn = next_sample = time.monotonic()
        turns = itertools.cycle(itertools.product(APIS, TURNS))
        while (now := time.monotonic()) < start + seconds:
            if now >= next_turn:
                api, (traffic, backends, share) = next(turns)
                next_turn = now + share * part
                for session in self.clients():
                    worker, active = session.worker, (session.traffic, session.worker.api) == (traffic, api)
                    worker.set("order", RUN if active and worker.backend in backends else PAUSE)
            if now >= next_sample:
                self.sample(now - start)
                next_sample = now + interval
            time.sleep(max(0, min(next_turn, next_sample) - time.monotonic()))

    def growth(self):
        """Returns for each curve how much it has grown in the second half, by the median slope, and whether that is too
        much."""
        for (label, series), points in self.samples.items():
            points = points[len(points) // 2:]
            points = points[::-(-len(points) // MOST_COMPARED)]
            if series == "latency" and (not points or points[-1][0] - points[0][0] < TIMED_S):
                continue
            if len(points) < 4:
                raise Failed(f"{label}: only {len(points)} samples")
            slope, tau = trend(points)
            seconds = points[-1][0] - points[0][0]
            added = slope * seconds
            units, share = TOLERATED[series]
            tolerated = max(units, share * statistics.median(value for _, value in points))
            yield label, series, slope, added, added > tolerated and tau > least_trend(len(points))

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
    traffics = [traffic for _ in ("loopback", "tcp") for traffic in (MIXED, STREAM) for _ in APIS]
    places = [place for backend in ("loopback", "tcp") for _ in traffics[::2]
              for place in ((backend, FAR if backend == "tcp" else NEAR), (backend, NEAR))]
    with Hosts() as hosts, Fleet(build, hosts, places) as fleet:
        for traffic, server, client in zip(traffics, fleet.workers[::2], fleet.workers[1::2]):
            fleet.pair(server, client, traffic)
        run = Soak(fleet)
        run.begin()
        try:
            run.run(3600 * hours)
            fleet.finish()
            growth = list(run.growth())
        finally:
            run.write(directory)
        wrong = [f"{label}: {series} grows by {slope * 3600:.3g} an hour, {added:.3g} in the second half"
                 for label, series, slope, added, failed in growth if failed]
        print("\n".join(f"FAILED {line}" for line in wrong), end="\n" if wrong else "")
        judged = {series for _, series, _, _, _ in growth}
        worst = {series: max(slope for _, of, slope, _, _ in growth if of == series) * 3600
                 for series in SERIES if series in judged}
        slopes = ", ".join(f"{series} {slope:+.3g}" for series, slope in worst.items())
        print(f"soak: {hours:g} h: {fleet.total('connections', run.clients())} connects, "
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
