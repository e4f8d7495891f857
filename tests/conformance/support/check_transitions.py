#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks that programs exercise each row of the table of endpoint states and no other transition.

usage: check_transitions.py STATE_MACHINE.md API=COMMAND...

Runs each command with VIADUCT_LOG=debug, collects the transitions that the core logs, and compares them with the
diagram in docs/state-machine.md. Prints the APIs that exercise each row.
"""

import collections
import os
import re
import shlex
import subprocess
import sys

LOGGED = re.compile(rb"endpoint 0x[0-9a-f]+: (\w+), (\w+): (\w+)")
DRAWN = re.compile(r"^ +(\w+) --> (\w+) : (\w+)$", re.MULTILINE)


def drawn_rows(path):
    with open(path, encoding="utf-8") as page:
        return {(before, trigger, after) for before, after, trigger in DRAWN.findall(page.read())}


def reached_rows(command):
    environment = dict(os.environ, VIADUCT_LOG="debug", VIADUCT_BACKEND="loopback")
    run = subprocess.run(shlex.split(command), env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if run.returncode != 0:
        sys.exit(f"{command} failed:\n{run.stdout.decode(errors='replace')}")
    return {tuple(part.decode() for part in row) for row in LOGGED.findall(run.stdout)}


def main():
    rows = drawn_rows(sys.argv[1])
    reached = collections.defaultdict(set)
    for argument in sys.argv[2:]:
        api, command = argument.split("=", 1)
        for row in reached_rows(command):
            reached[row].add(api)
    for row in sorted(rows):
        print(f"{', '.join(row)}: {' '.join(sorted(reached[row])) or 'NOBODY'}")
    strange = {row for row in reached if reached[row]} - rows
    for row in sorted(strange):
        print(f"{', '.join(row)}: not in the table")
    return 1 if strange or any(not reached[row] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
