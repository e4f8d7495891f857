#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""oracle.py SUITE STOCK OURS [--conf DIRECTORY] [PROGRAM...]: runs the conformance programs in the directory STOCK,
which are linked with the stock library, and those in OURS, on an RDMA device, and compares the outcome of each case. What
differs must be in oracle.txt of SUITE, the directory of the sources. Programs of DAT have their interface adapter from
stock-3.conf or ours-3.conf in the DIRECTORY.

For the guest of tests/vm. Ends with 77, for "skipped", where there is no RDMA device."""
import argparse
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
ADAPTER = "adapter"  # what those dat.conf call it
SIDES = ("stock", "ours")


class Suite:
    """The programs of each side, and the table of what fails."""

    def __init__(self, sources, stock, ours, conf, programs):
        self.directories = {"stock": stock.resolve(), "ours": ours.resolve()}
        self.conf = conf
        self.programs = programs or sorted(path.stem for path in sources.glob("*.c")
                                           if os.access(self.directories["stock"] / path.stem, os.X_OK))
        lines = [line.partition("#")[0].split(maxsplit=2)
                 for line in (sources / "oracle.txt").read_text(encoding="utf-8").splitlines()]
        self.table = [tuple(words) for words in lines if words]  # (pattern, side that fails, reason)

    def environment(self, side, patience):
        chosen = {**os.environ, "CONFORMANCE_ADDRESS": ADDRESS, "CONFORMANCE_PATIENCE": str(patience)}
        if side == "ours":
            chosen["VIADUCT_BACKEND"] = "verbs"
        if self.conf:
            chosen["CONFORMANCE_IA"] = ADAPTER
            chosen["DAT_OVERRIDE"] = str(self.conf / f"{side}-3.conf")
        return chosen

    def rows_about(self, case, side):
        return [row for row in self.table if row[1] == side and fnmatch.fnmatchcase(case, row[0])]

    def run_chunk(self, side, name, cases, patience):
        """What became of each case: nothing if it passed or was skipped, else why it failed."""
        done = subprocess.run([self.directories[side] / name, *cases], text=True, env=self.environment(side, patience),
                              check=False, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        outcomes = {case: "the program did not tell" for case in cases}
        for line in done.stdout.splitlines():
            words = line.split()
            if words[:1] == ["ok"]:
                outcomes[words[1]] = ""
            elif words[:2] == ["not", "ok"]:
                case, _, why = line.removeprefix("not ok ").partition(": ")
                outcomes[case] = why
        return {(f"{name}:{case}", side): why for case, why in outcomes.items()}

    def chunks(self):
        """(side, program, cases, patience). Cases that will fail may wait for their guard: each alone, and first."""
        single, others = [], []
        for name in self.programs:
            cases = cases_of(self.directories["ours"] / name)
            for side in SIDES:
                if (f"{name}:*", side) in (row[:2] for row in self.table):
                    continue
                failing = [case for case in cases if self.rows_about(f"{name}:{case}", side)]
                passing = [case for case in cases if case not in failing]
                single += [(side, name, [case], 1) for case in failing]
                others += [(side, name, passing[first:first + CHUNK], 3) for first in range(0, len(passing), CHUNK)]
        return single + others

    def run(self):
        """{("program:case", side): why it failed}"""
        outcomes = {}
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            for done in pool.map(lambda chunk: self.run_chunk(*chunk), self.chunks()):
                outcomes.update(done)
        return outcomes

    def compare(self, outcomes):
        """Yields what is wrong: failures that no row explains, and rows that explain none."""
        unused = {row for row in self.table if row[0].partition(":")[0] in self.programs and not row[0].endswith(":*")}
        for (case, side), why in sorted(outcomes.items()):
            if not why:
                continue
            rows = self.rows_about(case, side)
            unused.difference_update(rows)
            if not rows:
                yield f"{case} fails with {side}: {why}"
        for pattern, side, _ in sorted(unused):
            yield f"{pattern} does not fail with {side}, although oracle.txt says so"


def cases_of(program):
    return subprocess.run([program, "--list"], check=True, text=True, capture_output=True).stdout.split()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("sources", "stock", "ours"):
        parser.add_argument(name, type=pathlib.Path)
    parser.add_argument("--conf", type=pathlib.Path)
    parser.add_argument("programs", nargs="*")
    arguments = parser.parse_intermixed_args()
    if not os.path.isdir("/sys/class/infiniband") or not os.listdir("/sys/class/infiniband"):
        print("no RDMA device")
        return NO_DEVICE
    suite = Suite(**vars(arguments))
    outcomes = suite.run()
    wrong = list(suite.compare(outcomes))
    for problem in wrong:
        print(problem)
    for side in SIDES:
        reasons = [why for (_, where), why in outcomes.items() if where == side]
        print(f"{side}: {len(reasons)} cases, {sum(map(bool, reasons))} failed")
    print(f"{len(wrong)} differences are unexplained")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
