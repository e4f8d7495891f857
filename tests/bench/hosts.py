#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares Viaduct over the network with raw TCP, UCX and libfabric, between two hosts that this machine plays.

All programs run over 127.0.0.1 and between two network namespaces joined by a veth pair, pinned to the same two CPUs,
one after another in several rounds. The tables show medians and ratios; docs/performance.md explains them.
"""

import argparse
import contextlib
import dataclasses
import functools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

from bench import APIS, STREAM_WINDOW, free_port, two_cpus
from harness import (
    PROBLEMS, Failed, Samples, collect, heading, is_complete, markdown, median, median_ratio, number, parse, pinned,
    run, server, show_progress, write_page
)  # fmt: skip

KILOBYTE, MEGABYTE = 1 << 10, 1 << 20
LATENCIES = {"8 B": 8, "4 KiB": 4 * KILOBYTE, "64 KiB": 64 * KILOBYTE, "1 MiB": MEGABYTE}
BANDWIDTHS = {"64 KiB": 64 * KILOBYTE, "1 MiB": MEGABYTE}
PEERS = {"TCP": "raw TCP", "UCX": "UCX `tcp`", "tcp": "libfabric `tcp`", "rxm": "libfabric `tcp;ofi_rxm`"}
SECONDS = 0.15  # for each figure of vi-perf; the others make as many messages as take about as long
IDLE_SECONDS = 2.0
IDLE_CONNECTIONS = [1, 300]
ROUND_TRIP_ROUNDS = 5


# ---- Networks --------------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Host:
    prefix: list[str]  # of commands that run there
    address: str


@dataclasses.dataclass
class Network:
    name: str
    interface: str  # has this name on both hosts
    server: Host
    client: Host


@contextlib.contextmanager
def namespace(prefix: list[str], *options: str) -> Iterator[list[str]]:
    """A network namespace that lasts as long as a process in it; gives the prefix of commands that run there."""
    script = "mount -t sysfs sysfs /sys && ip link set lo up && echo && exec cat"  # UCX looks for interfaces in /sys
    command = [*prefix, "unshare", *options, "--net", "--mount", "sh", "-c", script]
    holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert holder.stdin is not None and holder.stdout is not None
    try:
        if not holder.stdout.readline():
            raise Failed("no network namespace can be made here")
        user = ["--user", "--preserve-credentials"] if os.geteuid() != 0 else []
        yield ["nsenter", "--target", str(holder.pid), *user, "--net", "--mount", "--"]
    finally:
        holder.stdin.close()  # also closed if this process is killed, and then cat ends
        holder.wait()


def await_link(host: Host, interface: str) -> None:
    """The kernel may need a second; UCX uses no interface before."""
    deadline = time.monotonic() + 10
    while "state UP" not in run([*host.prefix, "ip", "link", "show", interface]):
        if time.monotonic() > deadline:
            raise Failed(f"{interface} does not come up")
        time.sleep(0.05)


@contextlib.contextmanager
def veth() -> Iterator[Network]:
    """Two namespaces; those of an ordinary user belong to one user namespace."""
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    with namespace([], *user) as first, namespace(first if user else []) as second:
        hosts = [Host(first, "10.77.0.1"), Host(second, "10.77.0.2")]
        holder = second[second.index("--target") + 1]
        run([*first, "ip", "link", "add", "veth0", "type", "veth", "peer", "name", "veth0", "netns", holder])
        for host in hosts:
            run([*host.prefix, "ip", "address", "add", f"{host.address}/24", "dev", "veth0"])
            run([*host.prefix, "ip", "link", "set", "veth0", "up"])
        for host in hosts:
            await_link(host, "veth0")
        yield Network("veth", "veth0", *hosts)


def loopback() -> Network:
    return Network("127.0.0.1", "lo", Host([], "127.0.0.1"), Host([], "127.0.0.1"))


# ---- Running programs ------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Machine:
    cpu: int
    peer_cpu: int
    build: pathlib.Path
    backend: str

    def on_server(self, network: Network, *command: object) -> list[str]:
        return [*network.server.prefix, *pinned(self.peer_cpu, *command)]

    def on_client(self, network: Network, *command: object) -> list[str]:
        return [*network.client.prefix, *pinned(self.cpu, *command)]

    def environment(self, network: Network) -> dict[str, str]:
        device = {"VIADUCT_DEVICE": f"viaduct-{network.interface}"} if self.backend == "tcp" else {}
        return {"VIADUCT_BACKEND": self.backend} | device


@contextlib.contextmanager
def saying(word: str, command: list[str], env: dict[str, str] | None = None) -> Iterator[subprocess.Popen]:
    """Runs a program that prints a line with this word when it is ready, until it is no longer needed."""
    process = subprocess.Popen(
        command, env=os.environ | (env or {}), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True
    )
    assert process.stdout is not None and process.stderr is not None
    try:
        if not any(word in line for line in process.stdout):
            raise Failed(f"{' '.join(command)}: {process.stderr.read().strip()}")
        yield process
    finally:
        process.kill()
        process.communicate()


def tcp(machine: Machine, network: Network, test: str, runs: list[tuple[int, int]]) -> list[float]:
    """For each size and number of messages."""
    port = free_port()
    program = machine.build / "tests/bench/tcp_perf"
    with saying("listening", machine.on_server(network, program, port)):
        client = machine.on_client(network, program, network.server.address, port, test)
        return [float(run([*client, str(size), str(count)])) for size, count in runs]


def ucx(
    machine: Machine, network: Network, test: str, column: str, unit: float, size: int, count: int
) -> list[float]:
    port = free_port()
    env = {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": network.interface, "UCX_LOG_LEVEL": "error"}
    with server(machine.on_server(network, "ucx_perftest", "-p", port), port, env):
        options = ["-p", port, "-t", test, "-s", size, "-n", count, "-w", count // 10, "-f", "-v"]
        output = run(machine.on_client(network, "ucx_perftest", network.server.address, *options), env)
    names, *_, values = output.split()
    return [unit * float(dict(zip(names.split(","), values.split(",")))[column])]


def libfabric(machine: Machine, network: Network, provider: str, size: int, count: int) -> list[float]:
    port = free_port()
    options = {"tcp": ["-p", "tcp", "-e", "msg"], "rxm": ["-p", "tcp;ofi_rxm", "-e", "rdm"]}[provider]
    options += ["-S", size, "-I", count]
    with server(machine.on_server(network, "fi_pingpong", *options, "-B", port), port):
        output = run(machine.on_client(network, "fi_pingpong", *options, "-P", port, network.server.address))
    names, values = output.strip().splitlines()[-2:]
    return [float(dict(zip(names.split(), values.split()))["usec/xfer"])]


def vi_perf(
    machine: Machine, network: Network, api: str, test: str, column: str, unit: float, sizes: list[int],
    security: str = "authenticated", window: int = 0
) -> list[float]:
    port = free_port()
    env = machine.environment(network) | {"VIADUCT_TCP_SECURITY": security}
    program = machine.build / "tools/vi-perf"
    with saying("listening", machine.on_server(network, program, "--listen", port, "--api", api), env):
        options = ["--api", api, "--test", test, "--duration", SECONDS]
        options += ["--sizes", ",".join(map(str, sizes))] if sizes else []
        options += ["--window", window] if window else []
        options += ["--json", "--quiet", f"{network.server.address}:{port}"]
        output = run(machine.on_client(network, program, *options), env)
    return [unit * result[column] for result in json.loads(output)["results"]]


# ---- What is measured ------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Row:
    """A row of the table. Target and goal are ratios to raw TCP, or absolute values."""

    what: str
    unit: str
    lower_is_better: bool = False
    absolute: bool = False
    targets: dict[str, float] = dataclasses.field(default_factory=dict)  # by network
    goals: dict[str, float] = dataclasses.field(default_factory=dict)

    def reaches(self, value: float, limit: float) -> bool:
        return value <= limit if self.lower_is_better else value >= limit

    def limit_text(self, limit: float | None) -> str:
        if limit is None:
            return "–"
        return f"{'≤' if self.lower_is_better else '≥'} {limit:,g}{'' if self.absolute else ' ×'}"


def everywhere(limit: float) -> dict[str, float]:
    return {"127.0.0.1": limit, "veth": limit}


def latency(size: str) -> str:
    return f"{size}, one way"


def bandwidth(size: str) -> str:
    return f"{size} stream"


RATE, CONNECTIONS = "8 B rate", "connections"
ENCRYPTED_LATENCY, ENCRYPTED_STREAM = f"{latency('8 B')}, encrypted", f"{bandwidth('1 MiB')}, encrypted"
RATE_WINDOW = 64

# fmt: off
ROWS = [
    Row(latency("8 B"), "us", True, False, everywhere(1.25), everywhere(1.1)),
    Row(latency("4 KiB"), "us", True),
    Row(latency("64 KiB"), "us", True, False, everywhere(1.4), everywhere(1.15)),
    Row(latency("1 MiB"), "us", True),
    Row(bandwidth("64 KiB"), "GB/s"),
    Row(bandwidth("1 MiB"), "GB/s", False, False, everywhere(0.95), everywhere(1.0)),
    Row(ENCRYPTED_LATENCY, "us", True, False, everywhere(1.75), everywhere(1.4)),
    Row(ENCRYPTED_STREAM, "GB/s", False, False, everywhere(0.9), everywhere(1.0)),
    Row(RATE, "M/s"),
    Row(CONNECTIONS, "1/s", False, False, everywhere(1.0), everywhere(3.0)),
]
# fmt: on

LATENCY_COUNTS = {8: 15_000, 4 * KILOBYTE: 12_000, 64 * KILOBYTE: 4_000, MEGABYTE: 400}
STREAM_COUNTS = {64 * KILOBYTE: 15_000, MEGABYTE: 1_000}
CONNECTION_COUNT = 1_000


@dataclasses.dataclass
class Measurement:
    """One run of a program, which gives the figures of some rows."""

    subject: str
    rows: list[str]
    take: Callable[[Machine, Network], list[float]]
    unit: float = 1.0


def measurements(apis: list[str]) -> list[Measurement]:
    """Compared measurements are adjacent."""

    def tcp_runs(test: str, rows: list[str], unit: float, counts: dict[int, int]) -> Measurement:
        return Measurement("TCP", rows, functools.partial(tcp, test=test, runs=list(counts.items())), unit)

    def ours(
        test: str, rows: list[str], column: str, unit: float, sizes: list[int], **options: str | int
    ) -> list[Measurement]:
        take = functools.partial(vi_perf, test=test, column=column, unit=unit, sizes=sizes, **options)
        return [Measurement(api, rows, functools.partial(take, api=api)) for api in apis]

    def of_ucx(row: str, test: str, column: str, unit: float, size: int, count: int) -> Measurement:
        take = functools.partial(ucx, test=test, column=column, unit=unit, size=size, count=count)
        return Measurement("UCX", [row], take)

    latencies, streams = list(map(latency, LATENCIES)), list(map(bandwidth, BANDWIDTHS))
    sizes = list(LATENCIES.values())
    all_of_them = [tcp_runs("latency", latencies, 1e-3, LATENCY_COUNTS)]
    all_of_them += [of_ucx(latency(name), "tag_lat", "overall_lat", 1, size, LATENCY_COUNTS[size])
                    for name, size in LATENCIES.items()]  # fmt: skip
    all_of_them += [
        Measurement(provider, [latency(name)],
                    functools.partial(libfabric, provider=provider, size=size, count=LATENCY_COUNTS[size]))
        for provider in ("tcp", "rxm") for name, size in LATENCIES.items()
    ]  # fmt: skip
    all_of_them += ours("latency", latencies, "mean_ns", 1e-3, sizes)
    all_of_them += [tcp_runs("bandwidth", streams, 1e-9, STREAM_COUNTS)]
    all_of_them += [of_ucx(bandwidth(name), "tag_bw", "overall_bw", MEGABYTE / 1e9, size, STREAM_COUNTS[size])
                    for name, size in BANDWIDTHS.items()]  # fmt: skip
    all_of_them += ours("bandwidth", streams, "bytes_per_second", 1e-9, list(BANDWIDTHS.values()), window=STREAM_WINDOW)
    all_of_them += [tcp_runs("latency", [ENCRYPTED_LATENCY], 1e-3, {8: LATENCY_COUNTS[8]})]
    all_of_them += ours("latency", [ENCRYPTED_LATENCY], "mean_ns", 1e-3, [8], security="encrypted")
    all_of_them += [tcp_runs("tls-bandwidth", [ENCRYPTED_STREAM], 1e-9, {MEGABYTE: STREAM_COUNTS[MEGABYTE]})]
    all_of_them += ours("bandwidth", [ENCRYPTED_STREAM], "bytes_per_second", 1e-9, [MEGABYTE], security="encrypted",
                        window=STREAM_WINDOW)  # fmt: skip
    all_of_them += [tcp_runs("rate", [RATE], 1e-6, {8: 100_000})]
    all_of_them += [of_ucx(RATE, "tag_bw", "overall_mr", 1e-6, 8, 300_000)]
    all_of_them += ours("rate", [RATE], "messages_per_second", 1e-6, [8], window=RATE_WINDOW)
    all_of_them += [tcp_runs("connect", [CONNECTIONS], 1, {8: CONNECTION_COUNT})]
    all_of_them += ours("connect", [CONNECTIONS], "connections_per_second", 1, [])
    return all_of_them


def name_of(network: str, subject: str, row: str) -> str:
    return f"{network} {subject} {row}"


def collect_all(machine: Machine, networks: list[Network], apis: list[str], rounds: int) -> Samples:
    samples: Samples = {}
    for turn in range(1, rounds + 1):
        for network in networks:
            for one in measurements(apis):
                show_progress(f"round {turn} of {rounds}: {network.name}: {one.subject}, {one.rows[0]}")
                values: list[float | None]
                try:
                    values = [one.unit * value for value in one.take(machine, network)]
                except PROBLEMS as problem:
                    values = [None] * len(one.rows)
                    print(f"{network.name}: {one.subject}, {one.rows[0]}: {problem!r}", file=sys.stderr)
                for row, value in zip(one.rows, values, strict=True):
                    samples.setdefault(name_of(network.name, one.subject, row), []).append(value)
    show_progress("")
    return samples


# ---- Idle connections ------------------------------------------------------------------------------------------------


def switches(process: int) -> int:
    """Voluntary context switches of all threads."""
    threads = pathlib.Path(f"/proc/{process}/task").glob("*/status")
    pattern = re.compile(r"^voluntary_ctxt_switches:\s+(\d+)", re.MULTILINE)
    return sum(int(pattern.search(thread.read_text()).group(1)) for thread in threads)


def idle_wakeups(machine: Machine, network: Network, api: str) -> float:
    """Wake-ups per second of the busier end of a connection on which nothing happens, including vi-ping's own."""
    port = free_port()
    env = machine.environment(network) | {"VIADUCT_TCP_SECURITY": "authenticated"}
    program = machine.build / "tools/vi-ping"
    with saying("listening", machine.on_server(network, program, "--listen", port, "--api", api), env) as target:
        options = ["--api", api, "-c", 2, "-i", 60, f"{network.server.address}:{port}"]
        with saying("bytes from", machine.on_client(network, program, *options), env) as client:
            time.sleep(0.3)
            before = [switches(process.pid) for process in (target, client)]
            time.sleep(IDLE_SECONDS)
            after = [switches(process.pid) for process in (target, client)]
    return max(late - early for early, late in zip(before, after)) / IDLE_SECONDS


def round_trip_us(machine: Machine, connections: int) -> float:
    """On one connection, while all others are idle."""
    command = [machine.build / "tools/vi-perf", "--connections", connections, "--json", "--duration", SECONDS,
               "--cpu", machine.cpu, "--server-cpu", machine.peer_cpu]  # fmt: skip
    output = run(list(map(str, command)), machine.environment(loopback()))
    return json.loads(output)["results"][0]["round_trip_ns"] / 1e3


def failing_as_none(measure: Callable[[], float], what: str) -> float | None:
    show_progress(what)
    try:
        return measure()
    except PROBLEMS as problem:
        print(f"{what}: {problem!r}", file=sys.stderr)
        return None


def idle_table(machine: Machine, networks: list[Network], apis: list[str]) -> str:
    rows = [["idle", *(APIS[api] for api in apis)]]
    shared_memory = dataclasses.replace(machine, backend="loopback")  # where the library causes none
    places = [(machine, network, f"`{machine.backend}`, {network.name}") for network in networks]
    for where, network, name in [(shared_memory, loopback(), "`loopback`"), *places]:
        what = f"wake-ups of `vi-ping` per second, {name}"
        counts = [failing_as_none(functools.partial(idle_wakeups, where, network, api), what) for api in apis]
        rows.append([what, *map(number, counts)])
    measures = [(f"8 B round trip on one of {connections} open connections, us",
                 functools.partial(round_trip_us, machine, connections)) for connections in IDLE_CONNECTIONS]
    samples = collect(measures, ROUND_TRIP_ROUNDS)
    for what, _ in measures:
        rows.append([what, *(number(median(samples, what) if api == "core" else None) for api in apis)])
    return markdown(rows)


# ---- The tables ------------------------------------------------------------------------------------------------------


def ratio(samples: Samples, network: str, subject: str, row: Row) -> float | None:
    name = name_of(network, subject, row.what)
    return median_ratio(samples, name, name_of(network, "TCP", row.what)) if name in samples else None


def verdict(row: Row, network: str, value: float | None) -> str:
    target, goal = row.targets.get(network), row.goals.get(network)
    if target is None or value is None:
        return "–" if target is None else "not measured"
    if goal is not None and row.reaches(value, goal):
        return "goal"
    return "target" if row.reaches(value, target) else "**missed**"


def table(samples: Samples, network: str) -> str:
    def cells(row: Row) -> list[str]:
        figures = [median(samples, name_of(network, subject, row.what)) for subject in [*PEERS, *APIS]]
        to_tcp = {subject: ratio(samples, network, subject, row) for subject in ["UCX", "core", "vipl"]}
        judged = median(samples, name_of(network, "vipl", row.what)) if row.absolute else to_tcp["vipl"]
        return [
            f"{row.what}, {row.unit}", *map(number, figures), *map(number, to_tcp.values()),
            row.limit_text(row.targets.get(network)), row.limit_text(row.goals.get(network)),
            verdict(row, network, judged),
        ]  # fmt: skip

    head = [network, *PEERS.values(), *APIS.values(), "UCX / TCP", "core / TCP", "VIPL / TCP",
            "target", "goal", "reached"]  # fmt: skip
    return markdown([head, *map(cells, ROWS)])


def versions() -> str:
    libfabric = re.search(r"^libfabric: (\S+)", run(["fi_info", "--version"]), re.MULTILINE)
    ucx_version = re.search(r"version ?(?:=|:)? ?v?(\d[\d.]*)", run(["ucx_info", "-v"]), re.IGNORECASE)
    return ", ".join(
        f"{name} {found.group(1)}" for name, found in (("libfabric", libfabric), ("UCX", ucx_version)) if found
    )


def usable_apis(machine: Machine) -> list[str]:
    """All, or none if the build has no such backend."""
    try:
        vi_perf(machine, loopback(), "core", "latency", "mean_ns", 1.0, [8])
    except PROBLEMS as problem:
        print(f"without Viaduct: {problem}", file=sys.stderr)
        return []
    return list(APIS)


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev bench hosts", description=__doc__.splitlines()[0])
    parser.add_argument("--backend", default="tcp", help="another backend, to try this script: only over 127.0.0.1")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--write", action="store_true", help="write the tables to docs/performance.md")
    arguments = parse(parser, "vi-perf", "vi-ping", "tcp_perf")
    for program in ("taskset", "unshare", "nsenter", "ip", "ucx_perftest", "fi_pingpong"):
        if shutil.which(program) is None:
            raise Failed(f"{program} is not installed")
    machine = Machine(*two_cpus(), arguments.build.resolve(), arguments.backend)
    apis = usable_apis(machine)
    with contextlib.ExitStack() as stack:
        networks = [loopback()]
        if arguments.backend == "tcp":
            networks.append(stack.enter_context(veth()))
        samples = collect_all(machine, networks, apis, arguments.rounds)
        idle = idle_table(machine, networks, apis) if apis else ""
    title = heading((machine.cpu, machine.peer_cpu), arguments.rounds)
    tables = [table(samples, network.name) for network in networks]
    report = "\n\n".join([f"{title} {versions()}.", *tables, idle]).rstrip()
    print(report)
    if arguments.write:
        write_page(report, "bench hosts")
    return 0 if apis and is_complete(samples) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (Failed, OSError) as problem:
        sys.exit(f"bench: {problem}")
