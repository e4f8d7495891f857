#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Moves the examples to another API with vi-port and a patch, and builds them.

    port.py VI_PORT SOURCES BUILD MODULES COMPILER [FLAG ...]
    port.py --renew VI_PORT SOURCES

FROM_to_TO.patch contains what is left to do by hand after `vi-port rewrite --to TO FROM/end.h`. The programs become
BUILD/FROM_to_TO/hello and so on. MODULES is the directory of the files for pkg-config.

The patches show whole files. With --renew, they are written again for a new version of vi-port or of its facts, so that
the results stay as they are.
"""
import difflib
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

PATCHES = pathlib.Path(__file__).parent.parent / "tools/port_fixture"
MODULES = {"vipl": "vipl", "dat": "dat2", "rpma": "librpma"}
PROGRAMS = "hello", "echo", "rdma", "log"


def run(*command: str | pathlib.Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    if done.returncode != 0:
        sys.exit(f"{command}: {done.stdout}{done.stderr}")
    return done.stdout


def rewrite(tool: str, sources: pathlib.Path, directory: pathlib.Path, patch: pathlib.Path) -> pathlib.Path:
    """Returns the new end.h."""
    old, new = patch.stem.split("_to_")
    end = directory / patch.stem / "end.h"
    end.parent.mkdir(parents=True, exist_ok=True)
    run(tool, "rewrite", "--to", new, "--force", "--output", end, sources / old / "end.h")
    return end


def check(tool: str, end: pathlib.Path, api: str) -> None:
    """Nothing is left to do."""
    report = json.loads(run(tool, "scan", "--json", end))
    used = set(report["totals"]["apis"])
    assert used == {api}, f"{end} uses {used}"
    assert "TODO(vi-port)" not in end.read_text(), f"{end} has a TODO"


def build(tool: str, sources: pathlib.Path, build: pathlib.Path, modules: str, compiler: list[str]) -> None:
    shutil.copy(sources / "common.h", build)
    for patch in sorted(PATCHES.glob("*.patch")):
        end = rewrite(tool, sources, build, patch)
        run("patch", "--fuzz=0", "--input", patch, end)
        api = patch.stem.split("_to_")[1]
        check(tool, end, api)
        package = ["env", f"PKG_CONFIG_PATH={modules}", "pkg-config", MODULES[api]]
        flags = run(*package, "--cflags", "--libs").split()
        directory = run(*package, "--variable=libdir").strip()
        for program in PROGRAMS:
            run(*compiler, "-std=gnu11", "-Wall", "-Wextra", "-Werror", f"-I{end.parent}", sources / f"{program}.c",
                "-o", end.parent / program, *flags, f"-Wl,-rpath,{directory}")


def result_of(patch: pathlib.Path) -> list[str]:
    """The file after a patch that shows all of it."""
    lines = patch.read_text().splitlines(keepends=True)
    return [line[1:] for line in lines[3:] if line[0] in " +"]


def renew(tool: str, sources: pathlib.Path) -> None:
    with tempfile.TemporaryDirectory() as directory:
        for patch in sorted(PATCHES.glob("*.patch")):
            before = rewrite(tool, sources, pathlib.Path(directory), patch).read_text().splitlines(keepends=True)
            after = result_of(patch)
            lines = difflib.unified_diff(before, after, "end.h", "end.h", n=len(before) + len(after))
            patch.write_text("".join(lines))


def main() -> None:
    if sys.argv[1] == "--renew":
        renew(sys.argv[2], pathlib.Path(sys.argv[3]))
    else:
        tool, sources, directory, modules, *compiler = sys.argv[1:]
        pathlib.Path(directory).mkdir(parents=True, exist_ok=True)
        build(tool, pathlib.Path(sources), pathlib.Path(directory), modules, compiler)


if __name__ == "__main__":
    main()
