#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""contract.py PROGRAM [PATTERN]: runs the tests with the tag [hosts] of the contract suite between the two hosts, in
some processes at the same time. PATTERN selects some of them, for example "rule 6*"."""
import concurrent.futures
import os
import re
import subprocess
import sys

from hosts import NEAR, Failed, Hosts, check, enter

PATIENCE_S = 240
SHARES = 4
NOTHING = "no test cases match"  # in the output, if the name of a test does not fit


def output_of(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False).stdout


def names(program, pattern):
    """Returns the names of the tests."""
    chosen = f"{pattern}[hosts]" if pattern else "[hosts]"
    listing = ["--list-test-names-only"]  # of Catch2 2
    if listing[0] not in output_of(program, "--help"):
        listing = ["--list-tests", "--verbosity", "quiet"]
    return [line.strip() for line in output_of(program, *listing, chosen).splitlines() if line.strip()]


def run(hosts, program, tests):
    escaped = ",".join(name.replace(",", "\\,") for name in tests)
    process = hosts.start(NEAR, [program, "--durations", "yes", escaped],
                          {"VIADUCT_TEST_HOST_2": hosts.network}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    try:
        output = process.communicate(timeout=PATIENCE_S)[0]
    except subprocess.TimeoutExpired:
        process.kill()
        output = process.communicate()[0] + "\nhangs"
    return process.returncode == 0 and NOTHING not in output.lower(), output


def without_durations(output):
    return "".join(line for line in output.splitlines(keepends=True) if not re.match(r"\d+\.\d+ s: ", line))


def main():
    enter()
    program, *pattern = sys.argv[1:]
    with Hosts() as hosts, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        tests = names(program, *pattern or [None])
        check(tests, "there are no tests")
        shares = [share for start in range(SHARES) if (share := tests[start::SHARES])]
        results = list(pool.map(lambda share: run(hosts, program, share), shares))
    for passed, output in sorted(results, reverse=True):  # failures last: of long outputs, reports show the ends
        print(output if passed else without_durations(output), flush=True)
    return 0 if all(passed for passed, _ in results) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failed as failure:
        sys.exit(str(failure))
