#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Counts the instructions of each call of librpma and DAT, stock and ours, over Soft-RoCE in a guest.

One process has both ends, which are the two hosts of the guest. The instructions of the kernel are not counted.
"""

import argparse
import dataclasses
import json
import pathlib
import sys
import tempfile

from bench_vm import CLIENT, OUR, SERVER, STOCK, STOCK_DAT_CONF
from harness import PROBLEMS, markdown, parse, run_in_guest, write_page
from instructions import APIS, COLUMNS, CYCLE, Counts, count

CYCLES = 20  # the guest is slow
HOSTS = {"rpma": (CLIENT, SERVER), "dat": ("viaduct-veth1", "viaduct-veth2")}
KINDS = (STOCK, OUR)


def count_in_guest(build: pathlib.Path) -> dict[str, Counts]:
    counts = {}
    with tempfile.NamedTemporaryFile("w", suffix="dat.conf") as stock_dat_conf:
        stock_dat_conf.write(STOCK_DAT_CONF)
        stock_dat_conf.flush()
        for name, hosts in HOSTS.items():
            api = dataclasses.replace(APIS[name], hosts=hosts)
            environments = {STOCK: {"DAT_OVERRIDE": stock_dat_conf.name}, OUR: api.library_path(build)}
            for kind in KINDS:
                counts[f"{kind} {name}"] = count(api, api.program(build), environments[kind], CYCLES)
    return counts


def table(counts: dict[str, Counts]) -> str:
    """A cell has the counts of both libraries. Cycles are left out: how often they poll in vain is a matter of time."""

    def cells(api: str, call: str) -> list[str]:
        name, comma, kind = call.partition(", ")
        rows = [counts[f"{kind} {api}"][call] for kind in KINDS]
        figures = (" / ".join(f"{row[column]:,}" for row in rows) if column in rows[0] else "–" for column in COLUMNS)
        return [f"`{name}`{comma}{kind}", *figures]

    rows = [["stock / ours", *COLUMNS]]
    for api in HOSTS:
        rows += [cells(api, call) for call in sorted(counts[f"{STOCK} {api}"]) if call != CYCLE]
    return markdown(rows)


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev bench instructions vm", description=__doc__.splitlines()[0])
    parser.add_argument("--in-guest", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--write", action="store_true", help="write the table to docs/performance.md")
    arguments = parse(parser, "tests/bench/all")
    if arguments.in_guest:
        json.dump(count_in_guest(arguments.build), sys.stdout)
        return 0
    report = table(run_in_guest(__file__, "--build", arguments.build.resolve()))
    print(report)
    if arguments.write:
        write_page(report, "bench instructions vm")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except PROBLEMS as problem:
        sys.exit(f"bench instructions vm: {problem}")
