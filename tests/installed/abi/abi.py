#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""abi.py [--update] PREFIX LIBRARY...: compares the binary interfaces of installed libraries with those stored here.

Programs that were built for the stored interface must run with the library: abidiff compares the types of all
functions, as declared in the installed headers. Added functions are allowed. --update stores the present interface.
libviaduct has none to keep.
"""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
# The file of each library and the headers that declare its functions. For libdaplviaduct, the interface is a type of
# dat2, DAT_PROVIDER.
LIBRARIES = {
    "vipl": ("libvipl.so.1", ["vipl.h"]),
    "rpma": ("librpma.so.0", ["librpma.h"]),
    "dat2": ("libdat2.so.2", ["netinet/in.h", "dat2/udat.h", "dat2/dat_registry.h", "dat2/dat_ib_extensions.h"]),
    "dat": ("libdat.so.1", ["dat/udat.h", "dat/dat_registry.h"]),
}


def run(*command: object, directory: str | None = None) -> str:
    done = subprocess.run([str(word) for word in command], cwd=directory, text=True, capture_output=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{command[0]}: {done.stdout}{done.stderr}")
    return done.stdout


def exported(library: pathlib.Path) -> list[str]:
    lines = run("nm", "-D", "--defined-only", library).splitlines()
    return sorted(line.split()[2].split("@")[0] for line in lines if line.split()[1] != "A")  # A: a symbol version


def describe(library: pathlib.Path, include: pathlib.Path, headers: list[str], directory: str) -> str:
    """Describes the types of the functions in the headers as types of pointers to them. The output of abidw for the
    library itself contains all internal types and is ten times as long."""
    includes = "".join(f"#include <{header}>\n" for header in headers)
    source = pathlib.Path(directory, "functions.c")
    source.write_text(includes)
    declared = set(re.findall(r"\b(\w+)\s*\(", run("gcc", "-E", "-P", f"-I{include}", source)))
    functions = [name for name in exported(library) if name in declared]
    source.write_text(includes + "".join(f"__typeof__({name})* {name}_;\n" for name in functions))
    run("gcc", "-std=c11", "-g", "-shared", "-fPIC", f"-I{include}", "functions.c", "-o", "functions.so",
        directory=directory)
    return run("abidw", "--no-corpus-path", "--no-show-locs", "--no-comp-dir-path", "functions.so", directory=directory)


def differences(stored: pathlib.Path, found: str, directory: str) -> str:
    new = pathlib.Path(directory, "new.abi")
    new.write_text(found)
    done = subprocess.run(["abidiff", "--no-added-syms", "--suppressions", HERE / "others.abignore", stored, new],
                          text=True, capture_output=True, check=False)
    return done.stdout + done.stderr if done.returncode != 0 else ""


def check(prefix: pathlib.Path, name: str, update: bool) -> bool:
    file, headers = LIBRARIES[name]
    library = next(prefix.glob(f"lib*/**/{file}"))
    stored = HERE / f"{name}.abi"
    with tempfile.TemporaryDirectory() as directory:
        found = describe(library, prefix / "include", headers, directory)
        if update:
            stored.write_text(found)
        changes = differences(stored, found, directory)
    print(f"{name}: {'incompatible' if changes else 'compatible'}\n{changes}", end="")
    return not changes


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("prefix", type=pathlib.Path)
    parser.add_argument("libraries", nargs="*", metavar="LIBRARY")
    arguments = parser.parse_args()
    results = [check(arguments.prefix.resolve(), name, arguments.update) for name in arguments.libraries or LIBRARIES]
    return not all(results)


if __name__ == "__main__":
    sys.exit(main())
