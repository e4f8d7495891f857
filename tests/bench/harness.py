# SPDX-License-Identifier: BSD-3-Clause
"""Common code of the comparisons: running programs, medians, tables, and the page that stores them."""

import argparse
import contextlib
import datetime
import json
import os
import pathlib
import platform
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "performance.md"
ENDING_WITH_THIS = ["setpriv", "--pdeathsig", "KILL", "--"]  # a command that begins so ends with this process

Measure = Callable[[], float]
Samples = dict[str, list[float | None]]  # in the order of measurement; None: a failure


class Failed(Exception):
    """A program could not be run or did not print the expected output."""


PROBLEMS = (Failed, subprocess.TimeoutExpired, OSError, ValueError, KeyError)  # that only cost one sample


def parse(parser: argparse.ArgumentParser, *targets: str) -> argparse.Namespace:
    """Builds these targets, once the arguments are known to be right, unless another build is to be measured."""
    parser.add_argument("--build", type=pathlib.Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.build is None:
        arguments.build = ROOT / "build/release"
        if subprocess.run(["./dev", "build", "release", *targets], cwd=ROOT).returncode != 0:
            raise Failed("the build failed")
    return arguments


def run(command: list[str], env: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        [*ENDING_WITH_THIS, *command], env=os.environ | (env or {}), stdin=subprocess.DEVNULL, capture_output=True,
        text=True, timeout=120
    )
    if done.returncode != 0:
        raise Failed(f"{' '.join(command)}: exit code {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def run_in_guest(script: str, *options: object) -> Any:
    """What the script with --in-guest writes in the guest of tests/vm, as JSON."""
    guest = [ROOT / "tests/vm/run", "-m", 3000, "-t", 1800, "-e", "VIADUCT_BACKEND=verbs", "--"]
    command = map(str, [*ENDING_WITH_THIS, *guest, "python3", script, "--in-guest", *options])
    done = subprocess.run(list(command), stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise Failed(f"the guest: exit code {done.returncode}")
    return json.loads(done.stdout)


def is_listening(port: int, process: int) -> bool:
    """Reads the table of the process's network, because a test connection would use up the server's only one."""
    pattern = re.compile(rf":{port:04X} \S+ 0A ")
    tables = [pathlib.Path(f"/proc/{process}/net/{table}") for table in ("tcp", "tcp6")]
    return any(pattern.search(table.read_text()) for table in tables if table.exists())


@contextlib.contextmanager
def background(command: list[str], env: dict[str, str] | None = None) -> Iterator[subprocess.Popen]:
    """Runs a program that terminates after its client."""
    process = subprocess.Popen(
        command, env=os.environ | (env or {}), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL
    )
    try:
        yield process
        process.wait(10)
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def server(command: list[str], port: int, env: dict[str, str] | None = None) -> Iterator[None]:
    with background(command, env) as process:
        deadline = time.monotonic() + 10
        while not is_listening(port, process.pid):
            if process.poll() is not None or time.monotonic() > deadline:
                raise Failed(f"{' '.join(command)}: does not listen")
            time.sleep(0.01)
        yield


def pinned(cpu: int, *command: object) -> list[str]:
    return [*ENDING_WITH_THIS, "taskset", "-c", str(cpu), *map(str, command)]


def show_progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r{text:<60}\r", end="", file=sys.stderr, flush=True)


def collect(measures: list[tuple[str, Measure]], rounds: int) -> Samples:
    """Measures everything in several rounds. Failures are reported."""
    samples: Samples = {name: [] for name, _ in measures}
    for number in range(1, rounds + 1):
        for name, measure in measures:
            show_progress(f"round {number} of {rounds}: {name}")
            try:
                samples[name].append(measure())
            except PROBLEMS as problem:
                samples[name].append(None)
                print(f"{name}: {problem!r}", file=sys.stderr)
    show_progress("")
    return samples


def successes(samples: Samples, name: str | None) -> list[float]:
    return [value for value in samples.get(name or "", []) if value is not None]


def median(samples: Samples, name: str | None) -> float | None:
    values = successes(samples, name)
    return statistics.median(values) if values else None


def median_ratio(samples: Samples, name: str, base: str | None) -> float | None:
    """Uses pairs measured one after the other, when the machine was in the same state."""
    pairs = zip(samples[name], samples.get(base or "", []))
    ratios = [value / basis for value, basis in pairs if value is not None and basis]
    return statistics.median(ratios) if ratios else None


def is_complete(samples: Samples) -> bool:
    """Checks that there is a sample for each name."""
    return all(successes(samples, name) for name in samples)


def number(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def markdown(rows: list[list[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths)) + " |" for row in rows]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def processor() -> str:
    models = re.findall(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text()) or [platform.machine()]
    return models[0]


def heading(cpus: tuple[int, int], rounds: int) -> str:
    return (
        f"{datetime.date.today():%d %B %Y}, {processor()}, {os.cpu_count()} CPUs, Linux {platform.release()}; "
        f"CPUs {cpus[0]} and {cpus[1]}, medians of {rounds} rounds."
    )


def write_page(report: str, name: str) -> None:
    """Inserts the report between the page's comments of this name."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    text = PAGE.read_text()
    before, rest = text.split(begin)
    after = rest.split(end)[1]
    PAGE.write_text(f"{before}{begin}\n\n{report}\n\n{end}{after}")
    print(f"\nwritten to {PAGE.relative_to(ROOT)}")
