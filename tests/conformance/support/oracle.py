#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""oracle.py SUITE STOCK OURS [--conf DIRECTORY] [--recheck] [PROGRAM...]: runs the conformance programs in the
directory STOCK, which are linked with the stock library, and those in OURS, on an RDMA device, and compares the outcome
of each case. What differs must be in oracle.txt of SUITE, the directory of the sources. Programs of DAT have their
interface adapter from stock-3.conf or ours-3.conf in the DIRECTORY.

Cases that oracle.txt has as failing with the stock library are not run with it: many wait until their guard ends them.
--recheck runs them as well, and wants each row to explain a failure. Cases of ours are run always, all of them.

A case that fails without a row is tried again, alone and with more patience: on a slow machine the stock library comes
too late for a time-out of its own now and then. Only what fails each time is a difference; the output tells what passed
in the end.

For the guest of tests/vm. Ends with 77, for "skipped", where there is no RDMA device."""
import argparse
import collections
import concurrent.futures
import fnmatch
import os
import pathlib
import subprocess
import sys

ADDRESS = "10.0.0.3"  # of the host where client and server use the same device, as each case does
NO_DEVICE = 77
AT_ONCE = 6  # processes
CHUNK = 16  # cases of one program run by one process
PATIENCE = 3  # of the first try
TRIES = 4
ACCIDENTS = 20  # more failures than that are none, and are not tried again
ADAPTER = "adapter"  # what those dat.conf call it
STOCK, OURS = SIDES = ("stock", "ours")

Row = collections.namedtuple("Row", "pattern side reason")
Case = collections.namedtuple("Case", "side program name")


class Suite:
    """The programs of each side, and the table of what fails."""

    def __init__(self, sources, stock, ours, conf, programs):
        self.directories = {STOCK: stock.resolve(), OURS: ours.resolve()}
        self.conf = conf
        self.programs = programs or sorted(path.stem for path in sources.glob("*.c")
                                           if os.access(self.directories[STOCK] / path.stem, os.X_OK))
        lines = [line.partition("#")[0].split(maxsplit=2)
                 for line in (sources / "oracle.txt").read_text(encoding="utf-8").splitlines()]
        self.table = [Row(*words) for words in lines if words]
        self.cases = [Case(side, program, name)
                      for program in self.programs for name in self.listed(program) for side in SIDES]

    def listed(self, program):
        return subprocess.run([self.directories[OURS] / program, "--list"], check=True, text=True,
                              capture_output=True).stdout.split()

    def environment(self, side, patience):
        chosen = {**os.environ, "CONFORMANCE_ADDRESS": ADDRESS, "CONFORMANCE_PATIENCE": str(patience)}
        if side == OURS:
            chosen["VIADUCT_BACKEND"] = "verbs"
        if self.conf:
            chosen["CONFORMANCE_IA"] = ADAPTER
            chosen["DAT_OVERRIDE"] = str(self.conf / f"{side}-3.conf")
        return chosen

    def rows_about(self, case):
        return [row for row in self.table
                if row.side == case.side and fnmatch.fnmatchcase(f"{case.program}:{case.name}", row.pattern)]

    def chunks(self, recheck):
        """Lists of cases to run one after the other. Those that will fail may wait for their guard: alone, first."""
        failing, passing = [], collections.defaultdict(list)
        for case in self.cases:
            if not self.rows_about(case):
                passing[case.side, case.program].append(case)
            elif recheck or case.side == OURS:
                failing.append([case])
        return failing + [cases[first:first + CHUNK]
                          for cases in passing.values() for first in range(0, len(cases), CHUNK)]

    def run_chunk(self, cases, patience=PATIENCE):
        """What became of each case: nothing if it passed or was skipped, else why it failed."""
        side, program, _ = cases[0]
        done = subprocess.run([self.directories[side] / program, *(case.name for case in cases)], text=True,
                              env=self.environment(side, patience), check=False, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL)
        outcomes = dict.fromkeys(cases, "the program did not tell")
        for line in done.stdout.splitlines():
            words = line.split()
            if words[:1] == ["ok"]:
                outcomes[Case(side, program, words[1])] = ""
            elif words[:2] == ["not", "ok"]:
                name, _, why = line.removeprefix("not ok ").partition(": ")
                outcomes[Case(side, program, name)] = why
        return outcomes

    def run(self, recheck):
        """{case: why it failed}"""
        outcomes = {}
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            for done in pool.map(self.run_chunk, self.chunks(recheck)):
                outcomes.update(done)
        return outcomes

    def unexplained(self, outcomes):
        return [case for case, why in sorted(outcomes.items()) if why and not self.rows_about(case)]

    def try_again(self, outcomes):
        """Runs unexplained failures again, one at a time, until they pass or have failed TRIES times."""
        for case in self.unexplained(outcomes):
            print(f"{case.program}:{case.name} is tried again with {case.side}: {outcomes[case]}", flush=True)
            for number in range(2, TRIES + 1):
                outcomes.update(self.run_chunk([case], 2 * PATIENCE))
                if not outcomes[case]:
                    print(f"{case.program}:{case.name} passed with {case.side} only the {number}. time")
                    break

    def idle_rows(self, outcomes):
        """Rows that explain nothing: neither a failure nor that a case is not run."""
        busy = {row for case in self.cases if outcomes.get(case, "not run") for row in self.rows_about(case)}
        return [row for row in self.table if row not in busy and
                any(fnmatch.fnmatchcase(program, row.pattern.partition(":")[0]) for program in self.programs)]


def report(suite, outcomes):
    """Prints how the outcomes differ from the table, and returns whether they do."""
    wrong = [f"{case.program}:{case.name} fails with {case.side}: {outcomes[case]}"
             for case in suite.unexplained(outcomes)]
    wrong += [f"nothing like {row.pattern} fails with {row.side}, although oracle.txt says so"
              for row in suite.idle_rows(outcomes)]
    for problem in wrong:
        print(problem)
    for side in SIDES:
        failed = [bool(why) for case, why in outcomes.items() if case.side == side]
        print(f"{side}: {len(failed)} cases, {sum(failed)} failed")
    print(f"{len(wrong)} differences are unexplained")
    return bool(wrong)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("sources", "stock", "ours"):
        parser.add_argument(name, type=pathlib.Path)
    parser.add_argument("--conf", type=pathlib.Path)
    parser.add_argument("--recheck", action="store_true")
    parser.add_argument("programs", nargs="*")
    arguments = vars(parser.parse_intermixed_args())
    recheck = arguments.pop("recheck")
    if not os.path.isdir("/sys/class/infiniband") or not os.listdir("/sys/class/infiniband"):
        print("no RDMA device")
        return NO_DEVICE
    suite = Suite(**arguments)
    outcomes = suite.run(recheck)
    if len(suite.unexplained(outcomes)) <= ACCIDENTS:
        suite.try_again(outcomes)
    return report(suite, outcomes)


if __name__ == "__main__":
    sys.exit(main())
