#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""oracle.py STOCK OURS [PROGRAM...]: runs the conformance programs in the directory STOCK, which are linked with stock
librpma, and those in OURS, on an RDMA device, and compares the outcome of each case. What differs must be in oracle.txt.

For the guest of tests/vm. Ends with 77, for "skipped", where there is no RDMA device."""
import concurrent.futures
import fnmatch
import os
import pathlib
import subprocess
import sys

ADDRESS = "10.0.0.3"  # of the host where client and server use the same device, as each case does
NO_DEVICE = 77
AT_ONCE = 10  # processes
CHUNK = 12  # cases of one program run by one process
TABLE = pathlib.Path(__file__).with_name("oracle.txt")
SIDES = ("stock", "ours")


def environment(side, patience):
    chosen = {**os.environ, "CONFORMANCE_ADDRESS": ADDRESS, "CONFORMANCE_PATIENCE": str(patience)}
    if side == "ours":
        chosen["VIADUCT_BACKEND"] = "verbs"
    return chosen


def cases_of(program):
    return subprocess.run([program, "--list"], check=True, text=True, capture_output=True).stdout.split()


def run_chunk(side, program, cases, patience):
    """What became of each case: nothing if it passed or was skipped, else why it failed."""
    done = subprocess.run([program, *cases], text=True, env=environment(side, patience), check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    outcomes = {case: "the program did not tell" for case in cases}
    for line in done.stdout.splitlines():
        words = line.split()
        if words[:1] == ["ok"]:
            outcomes[words[1]] = ""
        elif words[:2] == ["not", "ok"]:
            case, _, why = line.removeprefix("not ok ").partition(": ")
            outcomes[case] = why
    return {(f"{program.name}:{case}", side): why for case, why in outcomes.items()}


def read_table():
    """[(pattern, side that fails, reason)]"""
    lines = [line.partition("#")[0].split(maxsplit=2) for line in TABLE.read_text(encoding="utf-8").splitlines()]
    return [tuple(words) for words in lines if words]


def rows_about(case, side, table):
    return [row for row in table if row[1] == side and fnmatch.fnmatchcase(case, row[0])]


def chunks_of(directories, programs, table):
    """(side, program, cases, patience). Cases that will fail may wait for their guard: each alone, and first."""
    single, others = [], []
    for program in programs:
        cases = cases_of(directories["ours"] / program)
        for side in SIDES:
            if (f"{program}:*", side) in (row[:2] for row in table):
                continue
            failing = [case for case in cases if rows_about(f"{program}:{case}", side, table)]
            passing = [case for case in cases if case not in failing]
            single += [(side, directories[side] / program, [case], 1) for case in failing]
            others += [(side, directories[side] / program, passing[first:first + CHUNK], 3)
                       for first in range(0, len(passing), CHUNK)]
    return single + others


def run_all(chunks):
    """{("program:case", side): why it failed}"""
    outcomes = {}
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for done in pool.map(lambda chunk: run_chunk(*chunk), chunks):
            outcomes.update(done)
    return outcomes


def compare(outcomes, table, programs):
    """Yields what is wrong: failures that no row explains, and rows that explain none."""
    unused = {row for row in table if row[0].partition(":")[0] in programs and not row[0].endswith(":*")}
    for (case, side), why in sorted(outcomes.items()):
        if not why:
            continue
        rows = rows_about(case, side, table)
        unused.difference_update(rows)
        if not rows:
            yield f"{case} fails with {side}: {why}"
    for pattern, side, _ in sorted(unused):
        yield f"{pattern} does not fail with {side}, although {TABLE.name} says so"


def main():
    if not os.path.isdir("/sys/class/infiniband") or not os.listdir("/sys/class/infiniband"):
        print("no RDMA device")
        return NO_DEVICE
    directories = dict(zip(SIDES, (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])))
    programs = sys.argv[3:] or sorted(path.stem for path in TABLE.parent.glob("*.c")
                                      if os.access(directories["stock"] / path.stem, os.X_OK))
    table = read_table()
    outcomes = run_all(chunks_of(directories, programs, table))
    wrong = list(compare(outcomes, table, programs))
    for problem in wrong:
        print(problem)
    for side in SIDES:
        reasons = [why for (_, where), why in outcomes.items() if where == side]
        print(f"{side}: {len(reasons)} cases, {sum(map(bool, reasons))} failed")
    print(f"{len(wrong)} differences are unexplained")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
