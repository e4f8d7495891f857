#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""contract.py PROGRAM [PATTERN]: runs the tests with the tag [hosts] of the contract suite between the two hosts, each
in a process of its own. PATTERN selects some of them, for example "rule 6*"."""
import concurrent.futures
import os
import subprocess
import sys

from hosts import NEAR, Failed, Hosts, check, enter

PATIENCE_S = 240
NOTHING = "no test cases match"  # in the output, if the name of a test does not fit


def names(program, pattern):
    """Returns the names of the tests."""
    chosen = f"{pattern}[hosts]" if pattern else "[hosts]"
    listed = subprocess.run([program, "--list-test-names-only", chosen], stdout=subprocess.PIPE, text=True, check=False)
    return [line.strip() for line in listed.stdout.splitlines() if line.strip()]


def run(hosts, program, name):
    escaped = name.replace(",", "\\,")
    process = hosts.start(NEAR, [program, escaped], {"VIADUCT_TEST_HOST_2": hosts.network}, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        output = process.communicate(timeout=PATIENCE_S)[0]
    except subprocess.TimeoutExpired:
        process.kill()
        output = process.communicate()[0] + "\nhangs"
    return process.returncode == 0 and NOTHING not in output.lower(), output


def main():
    enter()
    program, *pattern = sys.argv[1:]
    with Hosts() as hosts, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        tests = names(program, *pattern or [None])
        check(tests, "there are no tests")
        failures = 0
        for name, (passed, output) in zip(tests, pool.map(lambda test: run(hosts, program, test), tests)):
            print(("ok " if passed else "FAILED ") + name, flush=True)
            if not passed:
                failures += 1
                print(output, flush=True)
    return min(failures, 1)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failed as failure:
        sys.exit(str(failure))
