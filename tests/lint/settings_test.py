#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks that the tables of docs/settings.md have each variable that the code reads and each option of CMake, and no
others, and that viaduct(7) has those of the libraries."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/settings.md"
MANUAL = ROOT / "core/man/viaduct.7"
BUILD = "## Of the build"
SOURCES = {".c", ".cpp", ".h", ".hpp", ".py"}
NAME = r"(VIADUCT_\w*[A-Z0-9])"
# Outside tests, each text that is the name of a variable is one that is read. Tests also set variables, some of which
# do not exist.
TEXT = re.compile(rf"[\"']{NAME}[\"']")
READ = re.compile(rf"(?:getenv\(|environ\.get\(|\.variable = |^[A-Z]+ = )[\"']{NAME}[\"']", re.MULTILINE)
OPTION = re.compile(rf"^ *(?:option|find_program|find_path|set)\({NAME}( [^)]*)?", re.MULTILINE)
OF_THE_UNIT_TEST = {"VIADUCT_TEST"}


def files(*directories: str) -> list[pathlib.Path]:
    return [path for directory in directories for path in sorted((ROOT / directory).rglob("*")) if path.is_file()]


def variables() -> set[str]:
    names = {"DAT_OVERRIDE"}
    for pattern, directories in (TEXT, ("core", "backends", "api", "tools", "bindings")), (READ, ("tests",)):
        for path in files(*directories):
            if path.suffix in SOURCES:
                names |= set(pattern.findall(path.read_text()))
    return names - OF_THE_UNIT_TEST


def options() -> set[str]:
    scripts = [ROOT / "CMakeLists.txt", *files("core", "backends", "api", "tools", "bindings", "tests", "cmake")]
    found = (match for path in scripts if path.name == "CMakeLists.txt" or path.suffix == ".cmake"
             for match in OPTION.finditer(path.read_text()))
    return {match[1] for match in found if not match[0].lstrip().startswith("set") or " CACHE" in match[0]}


def rows(part: str) -> set[str]:
    """Returns the names in the first column of the tables that have a column of meanings."""
    names: set[str] = set()
    for table in re.findall(r"(?:^\|.*\n)+", part, re.MULTILINE):
        if "| meaning |" in table.splitlines()[0]:
            names |= set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE))
    return names


def manual() -> set[str]:
    lines = re.findall(r"^\.It Ev (.*)", MANUAL.read_text(), re.MULTILINE)
    return {name for line in lines for name in line.split(" , ")}


def differences(listed: set[str], used: set[str]) -> list[str]:
    return ([f"docs/settings.md: nothing about {name}" for name in sorted(used - listed)]
            + [f"docs/settings.md: the code has no {name}" for name in sorted(listed - used)])


def main() -> int:
    at_run_time, of_build = PAGE.read_text().split(BUILD)
    found_variables, found_options = variables(), options()
    assert len(found_variables) > 10 and len(found_options) > 5, (found_variables, found_options)
    problems = differences(rows(at_run_time), found_variables) + differences(rows(of_build), found_options)
    if manual() != rows(at_run_time.split("## Of the tools")[0]):
        problems.append(f"{MANUAL}: not the variables of the libraries in docs/settings.md")
    print("\n".join(problems))
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
