#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""faulty.py BUILD FAULT: gives the library a fault (faulty.c), and checks that chaos.py or soak.py finds it."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SKIPPED = 77
FAULTS = {  # the campaign, and what it has to say
    "leak": (["soak.py", "0.01"], r"FAILED .* rss grows"),
    "race": (["chaos.py", "60", "1"], r"corrupt: session"),
    "hang": (["chaos.py", "60", "1"], r"has been in end_await_\w+ for|has received nothing for|does not notice within"),
}


def main():
    build, fault = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
    (script, *arguments), expected = FAULTS[fault]
    environment = {**os.environ, "FAULTY": fault, "CHAOS_PRELOAD": str(build / "tests/chaos/libfaulty.so")}
    with tempfile.TemporaryDirectory() as directory:
        arguments += [directory] if script == "soak.py" else []
        done = subprocess.run([sys.executable, "-B", HERE / script, build, *arguments], env=environment, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    print(done.stdout)
    if done.returncode == SKIPPED:
        return SKIPPED
    found = done.returncode == 1 and re.search(expected, done.stdout)
    print(f"{script} {'finds' if found else 'does not find'} the {fault}")
    return 0 if found else 1


if __name__ == "__main__":
    sys.exit(main())
