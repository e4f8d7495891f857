# SPDX-License-Identifier: BSD-3-Clause
"""Runs clang-tidy for a tree, two files at a time, with a cache of clean files.

A file stays clean as long as the file, its includes, its command line, the configuration and clang-tidy do not
change. For each clean result build/lint-cache contains a file with the hashes of all files that were read.
"""
import concurrent.futures
import functools
import hashlib
import json
import os
import pathlib
import re
import subprocess

PROGRAM = "clang-tidy-19"  # version 14, Debian's default, cannot parse the C++20 parts of gcc's library
# The sources of a unit are checked as headers. C headers of api/ are excluded, because the APIs define their names.
HEADERS = r"/(api|backends|bindings|core|examples|tests|tools)/.*\.[ch]pp$|/(examples|tests)/.*\.h$"
# Warnings are left to gcc. -H lists the included files, for the cache.
OPTIONS = ["--quiet", f"--header-filter={HEADERS}", "--extra-arg=-Wno-error", "--extra-arg=-H"]
# Of the programs in examples/, which include the end.h of one API, here that of VIPL.
EXAMPLES = ["-xc", "-std=gnu11", "-Iexamples/vipl", *(f"-Iapi/{api}/include" for api in ("vipl", "udat", "rpma"))]


@functools.cache
def hash_of(path: str) -> str | None:
    try:
        return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()
    except OSError:
        return None


class Cache:
    def __init__(self, directory: pathlib.Path, key: str) -> None:
        self._directory = directory
        self._key = key
        directory.mkdir(parents=True, exist_ok=True)

    def _entry(self, source: str, command: str) -> pathlib.Path:
        name = hashlib.sha256("\0".join((self._key, source, command)).encode()).hexdigest()
        return self._directory / name

    def is_clean(self, source: str, command: str) -> bool:
        try:
            known = json.loads(self._entry(source, command).read_text())
        except (OSError, ValueError):
            return False
        return all(hash_of(path) == value for path, value in known.items())

    def keep(self, source: str, command: str, read: list[str]) -> None:
        entry = self._entry(source, command)
        half = entry.with_suffix(f".{os.getpid()}")
        half.write_text(json.dumps({path: hash_of(path) for path in sorted({source, *read})}))
        half.replace(entry)


def commands(build: pathlib.Path) -> dict[str, str]:
    """Returns the compiled files and their commands."""
    entries = json.loads((build / "compile_commands.json").read_text())
    return {entry["file"]: re.sub(r" -o \S+", "", entry["command"]) for entry in entries
            if os.path.exists(entry["file"])}  # the build generates the others


def parts_of(source: str) -> list[str]:
    """Returns the files that CMake compiles as a unit."""
    if not source.endswith(".cxx"):
        return [source]
    return re.findall(r'#include "([^"]+)"', pathlib.Path(source).read_text())


def check(root: pathlib.Path, build: pathlib.Path, names: list[str], checks: str) -> tuple[bool, str]:
    """Returns whether the files are clean, and the output of clang-tidy. `checks` are added to those of .clang-tidy."""
    wanted = {str(root / name) for name in names}
    compiled = commands(build)
    jobs = {source: command for source, command in compiled.items() if not wanted.isdisjoint(parts_of(source))}
    # A file that is not compiled here, for example in tests/installed/, is checked like a compiled file in the same
    # directory.
    alone = wanted.difference(*map(parts_of, compiled))
    jobs.update({source: "" for source in alone})

    version = subprocess.run([PROGRAM, "--version"], text=True, capture_output=True, check=True).stdout
    configuration = "".join((root / part / ".clang-tidy").read_text() for part in ("", "api", "tests"))
    cache = Cache(root / "build/lint-cache", "\0".join((version, configuration, checks, *OPTIONS)))

    def run(source: str) -> str:
        is_example = source.startswith(str(root / "examples/")) and source.endswith((".c", ".h"))
        flags = ["--", *EXAMPLES] if is_example else ["-p", str(build)]
        done = subprocess.run([PROGRAM, f"--checks={checks}", *OPTIONS, source, *flags], text=True, cwd=root,
                              capture_output=True, check=False)
        if done.returncode == 0:
            read = re.findall(r"^\.+ (.+)$", done.stderr, re.MULTILINE)
            cache.keep(source, jobs[source], [os.path.normpath(build / path) for path in read])
            return ""
        return done.stdout or done.stderr

    missing = [source for source in jobs if not cache.is_clean(source, jobs[source])]
    missing.sort(key=lambda source: (source.endswith(".c"), source))  # longest first
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = [output for output in pool.map(run, missing) if output]
    summary = f"{len(jobs)} compilations, {len(missing)} of them checked anew\n"
    return not found, summary + "".join(found)
