#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""check_exports.py LIBRARY (HEADER | NAME)... | check_exports.py LIBRARY (--like | --at-least) OTHER

Checks that the library exports exactly the functions that the headers declare and the names; or exactly what the other
library exports, including symbol versions; or at least that. Checks, too, that the library stays loaded after
dlclose(3), because its threads run in it. If the other library is not installed, there is nothing to compare: exit
status 77.
"""
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "cmake"))
sys.dont_write_bytecode = True
from constants import functions, read  # noqa: E402, from that directory

SKIPPED = 77


def exported(library):
    """Returns the exported names with their versions, like name@@VERSION."""
    command = ["nm", "-D", "--defined-only", "--with-symbol-versions", library]
    lines = subprocess.run(command, check=True, text=True, capture_output=True).stdout
    fields = (line.split() for line in lines.splitlines())
    return {name for _, kind, name in fields if kind != "A"}  # A: name of a symbol version


def names_of(word):
    """Returns the functions that a header declares, or the name."""
    return set(functions(read(pathlib.Path(word)))) if word.endswith(".h") else {word}


def report(found, expected):
    for name in sorted(expected - found):
        print(f"missing: {name}")
    for name in sorted(found - expected):
        print(f"not expected: {name}")
    print(f"{len(found)} names exported")
    return found != expected


def main():
    library, *rest = sys.argv[1:]
    if "NODELETE" not in subprocess.run(["readelf", "-d", library], check=True, text=True, capture_output=True).stdout:
        print("can be unloaded while its threads run")
        return 1
    if not rest[0].startswith("--"):
        return report({name.split("@")[0] for name in exported(library)}, set().union(*map(names_of, rest)))
    if not pathlib.Path(rest[1]).exists():
        print(f"{rest[1]} is not installed: nothing to compare with")
        return SKIPPED
    found, expected = exported(library), exported(rest[1])
    return report(found & expected if rest[0] == "--at-least" else found, expected)


sys.exit(main())
