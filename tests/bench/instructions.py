#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Counts the instructions of each call and of each message cycle, on loopback, with valgrind's callgrind.

The programs are those of cycles.c. docs/performance.md explains how they are counted. The counts have budgets in
instructions.json, which are only lowered. Budgets are for one compiler: counts of another are not
compared with them.
"""

import argparse
import collections
import collections.abc
import dataclasses
import json
import pathlib
import re
import shutil
import statistics
import sys
import tempfile

from harness import PROBLEMS, ROOT, Failed, markdown, parse, run, show_progress, write_page

BUDGETS = pathlib.Path(__file__).with_suffix(".json")
BUDGETS_ARE_FOR = "gcc 12"
TOLERANCE = 0.03
SKIPPED = 77
RUNS = 5
MANY_RUNS = 20  # at most, to see a budget kept
BATCHES, CYCLES = 11, 200  # of each operation in a run

# The string functions of glibc would depend on the processor. These are left for all: the SSE2 versions.
HWCAPS = "-AVX2,-AVX512F,-AVX512VL,-AVX_Fast_Unaligned_Load,-ERMS,-FSRM,-SSSE3,-SSE4_1,-SSE4_2"
ENVIRONMENT = {"GLIBC_TUNABLES": f"glibc.cpu.hwcaps={HWCAPS}", "LD_BIND_NOW": "1"}

EMPTY = "empty poll"
SIZES = {  # on both sides of what a slot holds and of what is copied without a call
    size: f"{size} B" if size < 1024 else f"{size // 1024} KiB"
    for size in (1, 8, 12, 16, 44, 45, 64, 256, 1024, 4096)
}  # fmt: skip
OPERATIONS = {  # as the tables and as cycles.c name them
    EMPTY: ("poll", 0),
    **{f"{name} {operation}": (operation, size) for operation in ("send", "write") for size, name in SIZES.items()},
    "8 B read": ("read", 8),
    "1 KiB read": ("read", 1024),
}
COLUMNS = [*(f"{size} {operation}" for operation in ("send", "write", "read") for size in ("8 B", "1 KiB")), EMPTY]
CYCLE = "a cycle"  # everything in it, with the instructions of the program

POLLS = {"poll_receives": "receive", "poll_sends": "send"}  # functions of cycles.h that poll, and what they find
FOUND = {"receive": ("send",), "send": ("send", "write", "read")}  # the operations in whose cycles they find one

Counts = dict[str, dict[str, int]]  # by call, then by operation


@dataclasses.dataclass(frozen=True)
class Api:
    name: str
    title: str
    library: str  # whose functions are counted
    directories: tuple[str, ...]  # of the libraries, in the build
    hosts: tuple[str, str]

    def library_path(self, build: pathlib.Path) -> dict[str, str]:
        return {"LD_LIBRARY_PATH": ":".join(str(build / directory) for directory in self.directories)}

    def program(self, build: pathlib.Path) -> pathlib.Path:
        return build / f"tests/bench/cycles_{self.name}"


LOOPBACK, ADAPTER, NIC = ("127.0.0.1",) * 2, ("viaduct-lo",) * 2, ("VINIC",) * 2
APIS = {
    api.name: api
    for api in (
        Api("core", "core", "libviaduct.so", ("core",), LOOPBACK),
        Api("vipl", "VIPL", "libvipl.so", ("api/vipl",), NIC),
        Api("dat", "DAT 2.0", "libdat2.so", ("api/udat",), ADAPTER),
        Api("dat1", "DAT 1.2", "libdat.so", ("api/udat/dat1", "api/udat"), ADAPTER),
        Api("rpma", "librpma", "librpma.so", ("api/rpma",), LOOPBACK),
    )
}


# ---- Reading what callgrind wrote ------------------------------------------------------------------------------------


@dataclasses.dataclass
class Batch:
    total: int = 0
    calls: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    instructions: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)  # inclusive


def plain_name(function: str) -> str:
    """Of `viaduct::(anonymous namespace)::Queue::poll(std::span<...>)`: poll."""
    match = re.search(r"(\w+)\((?!anonymous)", function)
    return match[1] if match else function


def read_batch(path: pathlib.Path, program: str, library: str) -> Batch:
    """The calls from the program to the library. The format: https://valgrind.org/docs/manual/cl-format.html."""
    batch = Batch()
    names: dict[str, str] = {}  # `(number) name` defines a number, `(number)` uses it; of objects and functions apart
    place = {"ob": "", "fn": "", "cob": "", "cfn": ""}
    callee = ""
    for line in path.read_text().splitlines():
        if match := re.fullmatch(r"(c?(?:ob|fn))=\((\d+)\)(?: (.*))?", line):
            key, number, name = match.groups()
            kind = key.removeprefix("c") + number
            if name is not None:
                names[kind] = name
            place[key] = names[kind]
        elif line.startswith("calls="):
            called = pathlib.Path(place["cob"] or place["ob"]).name
            if pathlib.Path(place["ob"]).name == program and called.startswith(library):
                kind = POLLS.get(plain_name(place["fn"]))
                callee = plain_name(place["cfn"]) + (f", {kind}" if kind else "")
                batch.calls[callee] += int(line.removeprefix("calls=").split()[0])
            place["cob"] = ""
        elif callee and re.match(r"[+*\d-]", line):  # the line behind `calls=`
            batch.instructions[callee] += int(line.split()[1])
            callee = ""
        elif line.startswith("totals:"):
            batch.total = int(line.split()[1])
    return batch


def run_batches(api: Api, program: pathlib.Path, environment: dict[str, str], cycles: int) -> dict[str, list[Batch]]:
    """Of the thread of the program; others are no part of the calls."""
    operations = [str(word) for operation in OPERATIONS.values() for word in operation]
    with tempfile.TemporaryDirectory(prefix="cycles-") as directory:
        options = [
            "--tool=callgrind", "--dump-before=batch", "--dump-after=batch", "--separate-threads=yes",
            "--fair-sched=try", f"--callgrind-out-file={directory}/out"
        ]  # fmt: skip
        command = ["valgrind", "--quiet", *options, str(program), *api.hosts, str(BATCHES), str(cycles), *operations]
        run(command, ENVIRONMENT | environment)
        # The dumps with odd numbers have what happened before a batch. (--toggle-collect would do without, but counts
        # the calls there, too.)
        paths = [pathlib.Path(directory) / f"out.{2 * i}-01" for i in range(1, BATCHES * len(OPERATIONS) + 1)]
        batches = [read_batch(path, program.name, api.library) for path in paths]
    return {name: batches[BATCHES * i:BATCHES * (i + 1)] for i, name in enumerate(OPERATIONS)}


# ---- Counts ----------------------------------------------------------------------------------------------------------


def per_call(batch: Batch, call: str, found: int, empty: int) -> float:
    """Polls that found nothing do not count, if it is known what they cost."""
    if found == 0 or empty == 0:
        return batch.instructions[call] / batch.calls[call]
    return (batch.instructions[call] - (batch.calls[call] - found) * empty) / found


def count(api: Api, program: pathlib.Path, environment: dict[str, str], cycles: int = CYCLES) -> Counts:
    """Medians of the batches: the agent, a thread of the library, may interfere with some."""
    counts: Counts = collections.defaultdict(dict)
    for name, batches in run_batches(api, program, environment, cycles).items():
        if name != EMPTY:
            counts[CYCLE][name] = round(statistics.median(batch.total / cycles for batch in batches))
        for call in set().union(*(batch.calls for batch in batches)):
            found = cycles if OPERATIONS[name][0] in FOUND.get(call.rpartition(", ")[2], ()) else 0
            empty = counts[call].get(EMPTY, 0)
            values = [per_call(batch, call, found, empty) for batch in batches if batch.calls[call]]
            counts[call][name] = round(statistics.median(values))
    if len(counts) == 1:
        raise Failed(f"{program.name}: no calls of {api.library}")
    return counts


def count_on_loopback(api: Api, build: pathlib.Path, runs: int = RUNS,
                      is_enough: collections.abc.Callable[[Counts], bool] = lambda lowest: False) -> Counts:
    """The lowest of some runs: on a busy machine the agent may interfere with a whole one."""
    lowest: Counts = {}
    for number in range(runs):
        if is_enough(lowest):
            break
        show_progress(f"counting {api.title}, run {number + 1} of {runs}")
        counts = count(api, api.program(build), {"VIADUCT_BACKEND": "loopback"} | api.library_path(build))
        for call, row in counts.items():
            best = lowest.setdefault(call, {})
            best.update((name, min(value, best.get(name, value))) for name, value in row.items())
    show_progress("")
    return lowest


def table(counts: dict[str, Counts]) -> str:
    def cells(title: str, call: str, row: dict[str, int]) -> list[str]:
        name, comma, kind = call.partition(", ")
        name = CYCLE if call == CYCLE else f"`{name}`{comma}{kind}"
        return [title, name, *(f"{row[name]:,}" if name in row else "–" for name in COLUMNS)]

    rows = [["API", "call", *COLUMNS]]
    for title, calls in counts.items():
        rows += [cells(title, call, calls[call]) for call in sorted(calls, key=lambda call: (call != CYCLE, call))]
    return markdown(rows)


def curve(counts: dict[str, Counts]) -> str:
    """A cycle by its size."""
    rows = [["API", "a cycle", *SIZES.values()]]
    for title, calls in counts.items():
        rows += [[title, operation, *(f"{calls[CYCLE][f'{size} {operation}']:,}" for size in SIZES.values())]
                 for operation in ("send", "write")]  # fmt: skip
    return markdown(rows)


# ---- Budgets ---------------------------------------------------------------------------------------------------------


def compiler(build: pathlib.Path) -> str:
    """What compiled the core. With link-time optimization, that is also what optimized it."""
    comment = run(["readelf", "--string-dump=.comment", str(build / "core/libviaduct.so")])
    match = re.search(r"GCC: .*?(\d+)\.\d+\.\d+$", comment, re.MULTILINE)
    return f"gcc {match[1]}" if match else "another compiler"


def read_budgets() -> dict[str, Counts]:
    return json.loads(BUDGETS.read_text()) if BUDGETS.exists() else {}


def each_count(counts: dict[str, Counts]) -> list[tuple[str, str, str, int]]:
    return [
        (api, call, name, value)
        for api, calls in counts.items()
        for call, row in calls.items()
        for name, value in row.items()
    ]


def excess(value: int, budget: int) -> float:
    return value / budget - 1


def exceeds(api: str, counts: Counts) -> bool:
    """Whether a count is above its budget."""
    budgets = read_budgets().get(api, {})
    return any(excess(value, budgets.get(call, {}).get(name, value)) > TOLERANCE
               for _, call, name, value in each_count({api: counts}))


def check(counts: dict[str, Counts]) -> bool:
    """Prints which counts are above or below their budgets, or have none."""
    good = True
    budgets = read_budgets()
    for api, call, name, value in each_count(counts):
        what = f"{APIS[api].title}, {call}, {name}: {value} instructions"
        budget = budgets.get(api, {}).get(call, {}).get(name)
        if budget is None:
            print(f"FAILED: {what}, no budget; set it with ./dev bench instructions --update")
        elif excess(value, budget) > TOLERANCE:
            print(f"FAILED: {what}, the budget is {budget} ({excess(value, budget):+.1%})")
        elif excess(value, budget) < -TOLERANCE:
            print(f"{what}, the budget is {budget}; lower it with ./dev bench instructions --update")
        good = good and budget is not None and excess(value, budget) <= TOLERANCE
    return good


def update(counts: dict[str, Counts]) -> None:
    """Lowers budgets, and adds those that are missing. A budget is raised by editing the file."""
    budgets: dict = {api: {call: dict(row) for call, row in calls.items()} for api, calls in counts.items()}
    old = read_budgets()
    for api, call, name, value in each_count(counts):
        budgets[api][call][name] = min(value, old.get(api, {}).get(call, {}).get(name, value))
    BUDGETS.write_text(json.dumps(budgets, indent=2, sort_keys=True) + "\n")
    print(f"\nwritten to {BUDGETS.relative_to(ROOT)}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev bench instructions", description=__doc__.splitlines()[0])
    parser.add_argument("--check", choices=APIS, help=argparse.SUPPRESS)  # what the suite of this name runs
    parser.add_argument("--update", action="store_true", help="lower the budgets in tests/bench/instructions.json")
    parser.add_argument("--write", action="store_true", help="write the table to docs/performance.md")
    arguments = parse(parser, "tests/bench/all")
    if shutil.which("valgrind") is None:
        print("valgrind is not installed")
        return SKIPPED
    build = arguments.build.resolve()
    built_with = compiler(build)
    has_budgets = built_with == BUDGETS_ARE_FOR
    if not has_budgets:
        print(f"the budgets are for {BUDGETS_ARE_FOR}, and this was built with {built_with}: they are not compared")
        if arguments.check:
            return SKIPPED
        if arguments.update:
            raise Failed(f"only what was built with {BUDGETS_ARE_FOR} can lower budgets")
    if arguments.check:
        api = APIS[arguments.check]
        lowest = count_on_loopback(api, build, MANY_RUNS,
                                   lambda counts: bool(counts) and not exceeds(api.name, counts))
        return 0 if check({api.name: lowest}) else 1
    counts = {api.name: count_on_loopback(api, build) for api in APIS.values()}
    titled = {APIS[api].title: calls for api, calls in counts.items()}
    report = f"{table(titled)}\n\n{curve(titled)}"
    print(report)
    if arguments.update:
        update(counts)
    if arguments.write:
        write_page(report, "bench instructions")
    return 0 if not has_budgets or check(counts) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except PROBLEMS as problem:
        sys.exit(f"bench instructions: {problem}")
