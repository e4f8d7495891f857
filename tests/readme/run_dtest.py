#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs the commands of README.md that start dtest (Debian's package dapl2-utils). Both ends must succeed. The exit
status is 77, for "skipped", if a program is missing."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PASSED = "DAPL Test Complete. PASSED"
SKIPPED = 77
TIMEOUT = 50


def main() -> int:
    if missing := [program for program in ("dtest", "ss") if not shutil.which(program)]:
        print(f"no {', no '.join(missing)}")
        return SKIPPED
    blocks = re.findall(r"^```sh\n(.*?)^```$", (ROOT / "README.md").read_text(), re.DOTALL | re.MULTILINE)
    commands, = (block for block in blocks if block.startswith("dtest "))
    environment = {**os.environ, "VIADUCT_BACKEND": "loopback"}
    with subprocess.Popen(["bash", "-ec", commands + "wait $!\n"], env=environment, text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True) as shell:
        try:
            output, _ = shell.communicate(timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            os.killpg(shell.pid, signal.SIGKILL)
            output, _ = shell.communicate()
    if shell.returncode == 0 and output.count(PASSED) == 2:
        return 0
    print(f"{output}\n-- status {shell.returncode}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
