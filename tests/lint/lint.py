#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks the sources, the pages and the subjects of commits with tools; `./dev lint` runs it.

Without a mode: everything except the checks of the Clang Static Analyzer, which take half an hour. Files that CMake
compiles as a unit are checked as a unit, which takes a third of the time. changed: only files that differ from HEAD.
--all: everything. These two check each file separately, with the analyzer.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import time
import xml.etree.ElementTree as xml

import tidy

ROOT = pathlib.Path(__file__).resolve().parents[2]
SUBJECT_LIMIT, SUBJECTS = 72, 50
EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"  # git's empty tree, from which everything differs
# Roff macros; parameter directions; `iif` of ip-rule(8); a truncated word in tests; "to and fro".
NOT_MISSPELLED = "nd,fo,inout,inflight,iif,adapte,fro"
# Debian 12 has no ruff; pyflakes and pycodestyle find the same problems. pyflakes cannot ignore anything, so its output
# is filtered: mypy, in the suite python, checks star imports; an __init__.py imports the names that its package
# exports; and pytest calls fixtures that a test file imports.
PYFLAKES_ERRS = re.compile(r"unable to detect undefined names|or defined from star imports"
                           r"|__init__\.py:.* imported but unused"
                           r"|'\w+_pair\.\w+' imported but unused|redefinition of unused '(ia|nic|pair|peer|region)'")


def run(*command: str) -> tuple[int, str]:
    done = subprocess.run(command, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return done.returncode, done.stdout


def git(*arguments: str) -> list[str]:
    return subprocess.run(["git", *arguments], cwd=ROOT, text=True, capture_output=True, check=True).stdout.splitlines()


def files(changed: bool) -> list[str]:
    """Returns the files that git tracks or would add."""
    names = git("diff", "--name-only", "HEAD") if changed else git("ls-files")
    names += git("ls-files", "--others", "--exclude-standard")
    return sorted(name for name in set(names) if (ROOT / name).is_file())


def of_kind(names: list[str], *suffixes: str, shebang: str | None = None) -> list[str]:
    def fits(name: str) -> bool:
        if pathlib.Path(name).suffix in suffixes:
            return True
        with open(ROOT / name, "rb") as file:
            return shebang is not None and re.match(rb"#!.*" + shebang.encode(), file.readline()) is not None

    return [name for name in names if fits(name)]


def check_format(names: list[str]) -> tuple[bool, str]:
    sources = of_kind(names, ".c", ".h", ".cpp", ".hpp")
    status, output = run("clang-format", "--dry-run", "--Werror", *sources) if sources else (0, "")
    return status == 0, output


def check_shell(names: list[str]) -> tuple[bool, str]:
    scripts = of_kind(names, ".sh", shebang=r"\b(ba)?sh\b")
    status, output = run("shellcheck", *scripts) if scripts else (0, "")
    return status == 0, output


def check_python(names: list[str]) -> tuple[bool, str]:
    scripts = of_kind(names, ".py", shebang=r"\bpython3\b")
    if not scripts:
        return True, ""
    lines = [line for line in run("pyflakes3", *scripts)[1].splitlines() if not PYFLAKES_ERRS.search(line)]
    lines += run("pycodestyle", "--max-line-length=120", *scripts)[1].splitlines()
    return not lines, "".join(f"{line}\n" for line in lines)


def check_spelling(names: list[str]) -> tuple[bool, str]:
    status, output = run("codespell", f"--ignore-words-list={NOT_MISSPELLED}", *names) if names else (0, "")
    return status == 0, output


def check_white_space(_: list[str]) -> tuple[bool, str]:
    status, output = run("git", "diff", "--check", EMPTY_TREE)
    return status == 0, output


def check_subjects(_: list[str]) -> tuple[bool, str]:
    long = [line for line in git("log", f"-{SUBJECTS}", "--no-merges", "--format=%s") if len(line) > SUBJECT_LIMIT]
    return not long, "".join(f"{len(line)} characters, not {SUBJECT_LIMIT}: {line}\n" for line in long)


def check_code(mode: str, names: list[str]) -> tuple[bool, str]:
    # Tests compile these in several languages, some with header names that CMake passes.
    sources = [name for name in of_kind(names, ".c", ".cpp") if not name.endswith("/header_alone.c")]
    sources += [name for name in names if re.fullmatch(r"examples/\w+/end\.h", name)]
    if mode == "tree":
        return tidy.check(ROOT, ROOT / "build/lint", sources, "-clang-analyzer-*")
    return tidy.check(ROOT, ROOT / "build/debug", sources, "")


def write_report(path: str, results: dict[str, tuple[bool, str]]) -> None:
    """In the format of ctest."""
    suite = xml.Element("testsuite", name="lint")
    for name, (passed, output) in results.items():
        case = xml.SubElement(suite, "testcase", name=f"lint.{name}", status="run" if passed else "fail")
        xml.SubElement(case, "system-out").text = re.sub(r"[^\t\n -~]", "?", output)
    xml.ElementTree(suite).write(path, encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", nargs="?", choices=["changed", "tree"], default="tree")
    parser.add_argument("--all", action="store_const", const="all", dest="mode")
    parser.add_argument("--report", help="a file for the results, as ctest writes them for --output-junit")
    arguments = parser.parse_args()

    names = files(arguments.mode == "changed")
    checks = {"format": check_format, "shell": check_shell, "python": check_python, "spelling": check_spelling,
              "white_space": check_white_space, "subjects": check_subjects,
              "code": lambda sources: check_code(arguments.mode, sources)}
    results = {}
    for name, check in checks.items():
        start = time.monotonic()
        passed, output = results[name] = check(names)
        print(f"{name}: {'clean' if passed else 'not clean'} ({time.monotonic() - start:.0f} s)", flush=True)
        print(output, end="", flush=True)
    if arguments.report:
        write_report(arguments.report, results)
    return any(not passed for passed, _ in results.values())


if __name__ == "__main__":
    os.chdir(ROOT)
    sys.exit(main())
