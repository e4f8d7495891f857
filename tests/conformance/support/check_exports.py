#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""check_exports.py LIBRARY NAMES | check_exports.py LIBRARY (--like | --at-least) OTHER

Checks that the library exports exactly the names in the file, one per line; or exactly what the other library
exports, including symbol versions; or at least that. Checks, too, that the library stays loaded after dlclose(3),
because its threads run in it. If the other library is not installed, there is nothing to
compare: exit status 77.
"""
import pathlib
import subprocess
import sys

SKIPPED = 77


def exported(library):
    """Returns the exported names with their versions, like name@@VERSION."""
    command = ["nm", "-D", "--defined-only", "--with-symbol-versions", library]
    lines = subprocess.run(command, check=True, text=True, capture_output=True).stdout
    fields = (line.split() for line in lines.splitlines())
    return {name for _, kind, name in fields if kind != "A"}  # A: name of a symbol version


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
        names = pathlib.Path(rest[0]).read_text(encoding="ascii").split()
        return report({name.split("@")[0] for name in exported(library)}, set(names))
    if not pathlib.Path(rest[1]).exists():
        print(f"{rest[1]} is not installed: nothing to compare with")
        return SKIPPED
    found, expected = exported(library), exported(rest[1])
    return report(found & expected if rest[0] == "--at-least" else found, expected)


sys.exit(main())
