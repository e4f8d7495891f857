#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""check_table.py CONFORMANCE.MD PROGRAM_DIRECTORY DOCUMENTED

Checks the tables of docs/conformance.md for one API: every code that DOCUMENTED lists for a call must have a row,
and each row must name existing test cases, a directory of other tests, or the reason why the code is not returned. A
line of DOCUMENTED is "call: CODE...". An indented line continues it, and # starts a comment.
"""
import pathlib
import re
import subprocess
import sys

TREE = pathlib.Path(__file__).resolve().parents[3]
ROW = re.compile(r"^\| `?(\w+)`? \| `(\w+)` \| (.*?) \| (.*?) \|$")


def documented_codes(file):
    """Returns the codes of each call."""
    codes = {}
    call = None
    for line in file.read_text(encoding="utf-8").splitlines():
        words = line.partition("#")[0].split()
        if words and not line[0].isspace():
            call = words.pop(0).rstrip(":")
            codes[call] = []
        if words:
            codes[call] += words
    return codes


def rows_of(page, calls):
    """Returns (call, code, when, tests) for each row about one of the calls."""
    for line in page.read_text(encoding="utf-8").splitlines():
        match = ROW.match(line)
        if match and match.group(1) in calls:
            call, code, when, tests = match.groups()
            yield call, code, when, re.findall(r"`([\w:/]+)`", tests)


def cases_of(directory, program, known={}):
    if program not in known:
        path = directory / program
        known[program] = set()
        if path.is_file():
            listed = subprocess.run([path, "--list"], check=True, text=True, capture_output=True)
            known[program] = set(listed.stdout.split())
    return known[program]


def problems(rows, codes, directory):
    found = set()
    for call, code, when, tests in rows:
        found.add((call, code))
        if not tests and not when.startswith("Not produced: "):
            yield f"{call} {code}: neither a test nor a reason"
        for test in tests:
            program, _, case = test.partition(":")
            if "/" in test and (TREE / test).is_dir():
                continue
            if case not in cases_of(directory, program):
                yield f"{call} {code}: there is no case {test}"
    for call, wanted in codes.items():
        for code in wanted:
            if (call, code) not in found:
                yield f"{call} {code}: no row"


def main():
    page, directory, file = (pathlib.Path(argument).resolve() for argument in sys.argv[1:])
    codes = documented_codes(file)
    rows = list(rows_of(page, codes))
    wrong = list(problems(rows, codes, directory))
    for problem in wrong:
        print(problem)
    print(f"{len(rows)} rows, {len(wrong)} problems")
    return bool(wrong)


sys.exit(main())
