#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""check_exports.py LIBRARY NAMES: the library exports exactly the names in the file, one in each line."""
import subprocess
import sys


def exported(library):
    lines = subprocess.run(["nm", "-D", "--defined-only", library], check=True, text=True, capture_output=True).stdout
    fields = (line.split() for line in lines.splitlines())
    return {name.split("@")[0] for _, kind, name in fields if kind != "A"}  # A: the name of a symbol version


def main():
    library, names_file = sys.argv[1:]
    with open(names_file, encoding="ascii") as file:
        expected = {line.strip() for line in file if line.strip()}
    found = exported(library)
    for name in sorted(expected - found):
        print(f"missing: {name}")
    for name in sorted(found - expected):
        print(f"not documented: {name}")
    print(f"{len(found)} names exported")
    return found != expected


sys.exit(main())
