#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks the manual pages of the APIs: each function of a public header has one, and its SYNOPSIS declares what the
header declares; the return codes of VIPL and DAT calls are those of docs/conformance.md, with the reasons given there;
complete examples compile; and, if the tools exist, groff and mandoc have no complaints. With --write, writes the return
codes into the pages."""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from manual import APIS, ROOT, functions, return_values, synopsis

BEGIN, END = '.\\" From docs/conformance.md, by tests/lint/manual_test.py --write.\n', '.\\" End.\n'
INCLUDES = [f"-I{ROOT / 'api' / api.directory / 'include'}" for api in APIS]
COMPILE = ["cc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", *INCLUDES, "-x", "c", "-"]
PAGES = [page for name in ("api", "tools", "docs") for page in sorted((ROOT / name).rglob("man/*.[1-9]*"))]


def with_codes(text: str) -> str:
    wanted = return_values(text)
    before, begin, rest = text.partition(BEGIN)
    return before + begin + wanted + rest[rest.index(END):] if wanted and begin else text


def faults_of_functions() -> list[str]:
    faults = []
    for api in APIS:
        declared, described = api.prototypes(), {}
        assert len(declared) > 30, declared
        for page in api.pages():
            text = page.read_text()
            shown, named = synopsis(text), functions(text)
            if page.name != f"{named[0]}.{api.section}" and api.section != "3":
                faults.append(f"{page.name}: the first name is {named[0]}")
            described |= shown
            faults += [f"{page.name}: NAME or SYNOPSIS lacks {name}" for name in set(named) ^ set(shown)
                       if name in declared]
        faults += [f"{name}: no page" for name in declared if name not in described]
        faults += [f"{name}: the page declares {shown}, the header {declared.get(name)}"
                   for name, shown in described.items() if declared.get(name) != shown]
    return faults


def faults_of_codes() -> list[str]:
    faults = []
    for api in APIS[:2]:
        for page in api.pages():
            text = page.read_text()
            if return_values(text) and (BEGIN not in text or with_codes(text) != text):
                faults.append(f"{page.name}: its codes are not those of docs/conformance.md; run {__file__} --write")
    return faults


def examples(text: str) -> list[str]:
    """The complete programs."""
    blocks = re.findall(r"^\.Bd -literal.*\n((?:.*\n)*?)\.Ed", text, re.MULTILINE)
    return [block.replace("\\&", "").replace("\\e", "\\") for block in blocks if "\nmain(" in block or "int main(" in block]


def faults_of_examples() -> list[str]:
    faults = []
    for page in PAGES:
        for program in examples(page.read_text()):
            result = subprocess.run(COMPILE, input=program, text=True, capture_output=True)
            if result.returncode != 0:
                faults.append(f"{page.name}: {result.stderr}")
    return faults


def faults_of_format() -> list[str]:
    """Pages may refer to others that are not installed, and mandoc does not know the sections 3vipl and 3dat."""
    commands = {"groff": ["groff", "-mdoc", "-Tutf8", "-ww", "-z"], "mandoc": ["mandoc", "-Tlint", "-Wwarning"]}
    faults = []
    for tool, command in commands.items():
        if shutil.which(tool):
            for page in PAGES:
                result = subprocess.run([*command, page], text=True, capture_output=True)
                faults += [line for line in (result.stdout + result.stderr).splitlines()
                           if "unknown manual section" not in line and "outdated mandoc.db" not in line]
    return faults


def main() -> int:
    if sys.argv[1:] == ["--write"]:
        for api in APIS[:2]:
            for page in api.pages():
                page.write_text(with_codes(page.read_text()))
    faults = faults_of_functions() + faults_of_codes() + faults_of_examples() + faults_of_format()
    print("\n".join(faults))
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
