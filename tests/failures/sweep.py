#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""sweep.py [API [BACKEND [ROLE__KIND]]]: builds and runs the sweep over failing calls; `./dev sweep` runs this.

Without an argument, it takes the lives of all APIs over loopback and tcp. BACKEND may also be verbs, which is run in
the virtual machine of tests/vm. ROLE__KIND is one case: the role in which calls fail, and their kind. What the programs
complain of is printed. The last line has the sums."""
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
APIS = "vipl", "dat", "rpma"
BUILD = "./dev", "build", "release", "tests/failures/all", "daplviaduct"
IN_GUEST = ["CONFORMANCE_ADDRESS=10.0.0.3", "CONFORMANCE_IA=viaduct-veth3", "VIADUCT_DEVICE=viaduct-veth3"]
ON = {  # what runs a program on a backend
    "loopback": [],
    "tcp": ["python3", "tests/hosts/hosts.py", "--alone"],
    "verbs": ["tests/vm/run", "-t", "7200", "-m", "4000", "-e", "VIADUCT_BACKEND", "-e", "CONFORMANCE_PATIENCE", "--",
              "env", *IN_GUEST],
}
SUM = re.compile(r"(\d+) lives with a failure, (\d+) complaints")
QUIET = re.compile(r"viaduct: |ok ")


def run(api, backend, cases):
    """Returns the number of lives, and of cases that failed or did not run."""
    print(f"== {api} over {backend}", flush=True)
    environment = {"CONFORMANCE_PATIENCE": "3", **os.environ, "VIADUCT_BACKEND": backend}
    command = [*ON[backend], f"build/release/tests/failures/{api}_failures", *cases]
    lives = failed = 0
    with subprocess.Popen(command, cwd=ROOT, env=environment, text=True, errors="replace", stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT) as process:
        for line in process.stdout:
            if match := SUM.match(line):
                lives += int(match[1])
            elif not QUIET.match(line):
                print(line, end="", flush=True)
            failed += line.startswith("not ok ")
    return lives, failed or process.returncode != 0


def main(api=None, backend=None, *cases):
    if api not in (None, *APIS) or backend not in (None, *ON):
        sys.exit(f"sweep: choose one of {', '.join(APIS)}, and one of {', '.join(ON)}")
    if subprocess.run(BUILD, cwd=ROOT, check=False).returncode != 0:
        return 1
    results = [run(each, on, cases) for on in ([backend] if backend else ("loopback", "tcp"))
               for each in ([api] if api else APIS)]
    lives, failed = (sum(column) for column in zip(*results))
    print(f"{lives} lives with a failure, {failed} cases failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
