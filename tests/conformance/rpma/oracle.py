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
AT_ONCE = 8  # processes
CHUNK = 8  # cases of one program run by one process
TABLE = pathlib.Path(__file__).with_name("oracle.txt")
SIDES = ("stock", "ours")


def environment(side):
    chosen = {**os.environ, "CONFORMANCE_ADDRESS": ADDRESS}
    if side == "ours":
        chosen["VIADUCT_BACKEND"] = "verbs"
    return chosen


def cases_of(program):
    return subprocess.run([program, "--list"], check=True, text=True, capture_output=True).stdout.split()


def run_chunk(side, program, cases):
    """What became of each case: nothing if it passed or was skipped, else why it failed."""
    done = subprocess.run([program, *cases], text=True, env=environment(side), check=False,
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


def run_all(directories, programs):
    """{("program:case", side): why it failed}"""
    outcomes = {}
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        chunks = []
        for program in programs:
            cases = cases_of(directories["ours"] / program)
            for first in range(0, len(cases), CHUNK):
                chunks += [pool.submit(run_chunk, side, directories[side] / program, cases[first:first + CHUNK])
                           for side in SIDES]
        for chunk in chunks:
            outcomes.update(chunk.result())
    return outcomes


def read_table():
    """[(pattern, side that fails, reason)]"""
    lines = [line.partition("#")[0].split(maxsplit=2) for line in TABLE.read_text(encoding="utf-8").splitlines()]
    return [tuple(words) for words in lines if words]


def compare(outcomes, table, programs):
    """Yields what is wrong: failures that no row explains, and rows that explain none."""
    unused = {row for row in table if row[0].partition(":")[0] in programs}
    for (case, side), why in sorted(outcomes.items()):
        if not why:
            continue
        rows = [row for row in table if fnmatch.fnmatchcase(case, row[0]) and row[1] == side]
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
    outcomes = run_all(directories, programs)
    wrong = list(compare(outcomes, read_table(), programs))
    for problem in wrong:
        print(problem)
    failed = {side: sum(1 for (_, where), why in outcomes.items() if where == side and why) for side in SIDES}
    print(f"{len(outcomes) // 2} cases; {failed['stock']} fail with stock, {failed['ours']} with ours; "
          f"{len(wrong)} unexplained")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
