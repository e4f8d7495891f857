#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Rewrites the conformance programs and compiles the results: test_port_rewrite.py VI_PORT COMPILER SOURCE_DIRECTORY

The programs use every call in every way that C knows, so what compiles afterwards shows that replacements fit.
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

TOOL, COMPILER, ROOT = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
# These need definitions of their build.
LEFT_OUT = {"header_alone.c", "registry.c"}
# Replacements that at least must have been made, so that the test notices if nothing is replaced any more.
LEAST_REPLACED = {("vipl", "rpma"): 400, ("udat", "rpma"): 400, ("dat1", "rpma"): 80,
                  ("vipl", "dat"): 400, ("udat", "vipl"): 400}


def compile_fault(source, suite, tree):
    include = [f"-I{ROOT / 'api' / api / 'include'}" for api in ("vipl", "udat", "rpma")]
    include += [f"-I{tree / 'tests/conformance' / suite}", f"-I{tree}"]
    done = subprocess.run([COMPILER, "-std=gnu11", "-fsyntax-only", "-w", *include, source], capture_output=True,
                          text=True, timeout=60)
    return "" if done.returncode == 0 else done.stderr


def replaced_in(source, target):
    done = subprocess.run([TOOL, "rewrite", "--to", target, source], capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        sys.exit(f"{source}: {done.stderr}")
    return int(done.stdout.splitlines()[-1].split(": ")[-1].split()[0])


def main():
    faults = 0
    with tempfile.TemporaryDirectory() as directory:
        tree = pathlib.Path(directory)
        for name in "conformance", "support":
            shutil.copytree(ROOT / "tests" / name, tree / "tests" / name)
        for (suite, target), least in LEAST_REPLACED.items():
            sources = [path for path in sorted((tree / "tests/conformance" / suite).glob("*.c"))
                       if path.name not in LEFT_OUT and path.name.count(".") == 1]
            replaced = 0
            for source in sources:
                replaced += replaced_in(source, target)
                fault = compile_fault(source.with_suffix(f".{target}.c"), suite, tree)
                if fault:
                    faults += 1
                    print(f"{source.name}:\n{fault}")
            print(f"{suite} to {target}: {len(sources)} programs, {replaced} replacements")
            if replaced < least or len(sources) < 10:
                faults += 1
                print("these are too few")
    return 1 if faults else 0


sys.exit(main())
