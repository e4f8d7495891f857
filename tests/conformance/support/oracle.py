#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""oracle.py SUITE STOCK OURS [--conf DIRECTORY] [--recheck] [PROGRAM...]: runs the conformance programs in the
directory STOCK, which are linked with the stock library, and those in OURS, on an RDMA device, and compares the
outcomes of each case. Differences must be listed in oracle.txt of SUITE, the source directory. Programs of DAT use
the interface adapter in stock-3.conf or ours-3.conf in DIRECTORY.

Cases that oracle.txt lists as failing with the stock library are not run with it, because many of them wait until
they time out. --recheck runs them as well and requires that each row explains a failure. With our library, all cases
are run.

A failing case without a row is repeated, alone and with longer timeouts, because on a slow machine the stock library
sometimes exceeds a timeout. It counts as a difference only if it fails each time. The output lists the cases that
passed in the end.

For the guest of tests/vm. The exit status is 77, for "skipped", if there is no RDMA device."""
import argparse
import collections
import concurrent.futures
import fnmatch
import os
import pathlib
import subprocess
import sys

ADDRESS = "10.0.0.3"  # of the host where client and server use the same device, as in all cases
NO_DEVICE = 77
AT_ONCE = 6  # processes
CHUNK = 16  # cases of one program run by one process
PATIENCE = 3  # for the first try
TRIES = 4
ACCIDENTS = 20  # if there are more failures, they are not repeated
ADAPTER = "adapter"  # its name in the dat.conf files
STOCK, OURS = SIDES = ("stock", "ours")

Row = collections.namedtuple("Row", "pattern side reason")
Case = collections.namedtuple("Case", "side program name")


class Suite:
    """The programs of each side and the table of failures."""

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
        """Returns lists of cases to run one after another. Cases expected to fail, which may time out, run first and
        alone."""
        failing, passing = [], collections.defaultdict(list)
        for case in self.cases:
            if not self.rows_about(case):
                passing[case.side, case.program].append(case)
            elif recheck or case.side == OURS:
                failing.append([case])
        return failing + [cases[first:first + CHUNK]
                          for cases in passing.values() for first in range(0, len(cases), CHUNK)]

    def run_chunk(self, cases, patience=PATIENCE):
        """Returns the outcome of each case: empty if it passed or was skipped, otherwise the reason for its failure."""
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
        """Returns {case: reason for its failure}."""
        outcomes = {}
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            for done in pool.map(self.run_chunk, self.chunks(recheck)):
                outcomes.update(done)
        return outcomes

    def unexplained(self, outcomes):
        return [case for case, why in sorted(outcomes.items()) if why and not self.rows_about(case)]

    def try_again(self, outcomes):
        """Repeats unexplained failures one at a time, until they pass or have failed TRIES times."""
        for case in self.unexplained(outcomes):
            print(f"{case.program}:{case.name} is tried again with {case.side}: {outcomes[case]}", flush=True)
            for number in range(2, TRIES + 1):
                outcomes.update(self.run_chunk([case], 2 * PATIENCE))
                if not outcomes[case]:
                    print(f"{case.program}:{case.name} passed with {case.side} only the {number}. time")
                    break

    def idle_rows(self, outcomes):
        """Returns rows that explain neither a failure nor a case that was not run."""
        busy = {row for case in self.cases if outcomes.get(case, "not run") for row in self.rows_about(case)}
        return [row for row in self.table if row not in busy and
                any(fnmatch.fnmatchcase(program, row.pattern.partition(":")[0]) for program in self.programs)]


def report(suite, outcomes):
    """Prints the differences between the outcomes and the table, and returns whether there are any."""
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
