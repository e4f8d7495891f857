#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""abi.py [--update] PREFIX LIBRARY...: compares the binary interfaces of installed libraries with those stored here.

Programs that were built for the stored interface must run with the library. For the C libraries, abidiff compares
the types of all functions, as declared in the installed headers. For the core, which is C++, everything in the
stored list must still exist: exported symbols, sizes, offsets of members, values of enumerators and slots of virtual
functions. Added functions are allowed. --update stores the present interface.
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
    "viaduct": ("libviaduct.so.1", []),
}


def run(*command: object, directory: str | None = None) -> str:
    done = subprocess.run([str(word) for word in command], cwd=directory, text=True, capture_output=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{command[0]}: {done.stdout}{done.stderr}")
    return done.stdout


def exported(library: pathlib.Path) -> list[str]:
    lines = run("nm", "-D", "--defined-only", library).splitlines()
    return sorted(line.split()[2].split("@")[0] for line in lines if line.split()[1] != "A")  # A: a symbol version


def describe_c(library: pathlib.Path, include: pathlib.Path, headers: list[str], directory: str) -> str:
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


def differences_c(stored: pathlib.Path, found: str, directory: str) -> str:
    new = pathlib.Path(directory, "new.abi")
    new.write_text(found)
    done = subprocess.run(["abidiff", "--no-added-syms", "--suppressions", HERE / "others.abignore", stored, new],
                          text=True, capture_output=True, check=False)
    return done.stdout + done.stderr if done.returncode != 0 else ""


class Entry:
    """An entry of the debugging information that readelf prints."""

    def __init__(self, depth: int, tag: str, attributes: dict[str, str]) -> None:
        self.depth, self.tag, self.attributes = depth, tag, attributes

    def number(self, attribute: str) -> int | None:
        value = self.attributes.get(attribute, "")
        found = re.search(r"DW_OP_(?:constu|plus_uconst): (\d+)", value) or re.match(r"(-?\d+)", value)
        return int(found[1]) if found else None


def entries(text: str) -> list[Entry]:
    found: list[Entry] = []
    for line in text.splitlines():
        if start := re.match(r" <([0-9a-f]+)><[0-9a-f]+>: Abbrev Number: \d+ \(DW_TAG_(\w+)\)", line):
            found.append(Entry(int(start[1], 16), start[2], {}))
        elif found and (attribute := re.match(r"\s+<[0-9a-f]+>\s+DW_AT_(\w+)\s*: (.*)", line)):
            # Removes the form in brackets, whose format differs between versions of readelf.
            found[-1].attributes[attribute[1]] = re.sub(r"^(?:\([^()]*\):?\s*)+", "", attribute[2]).strip()
    return found


def declared_symbols(library: pathlib.Path, headers: list[pathlib.Path]) -> set[str]:
    """Keeps symbols for programs. Others are for the front-ends, which are shipped with the core."""
    words = set(re.findall(r"\w+", "".join(header.read_text() for header in headers)))
    symbols = exported(library)
    names = run("c++filt", *symbols).splitlines()
    return {symbol for symbol, name in zip(symbols, names) if words.issuperset(re.findall(r"\w+", name.split("(")[0]))}


def describe_core(library: pathlib.Path, include: pathlib.Path, directory: str) -> str:
    headers = sorted((include / "viaduct/core").glob("*.hpp"))
    source = "".join(f"#include <core/{header.name}>\n" for header in headers)
    pathlib.Path(directory, "core.cpp").write_text(source)
    run("g++", "-std=c++20", "-g", "-fno-eliminate-unused-debug-types", "-femit-class-debug-always",
        f"-I{include}/viaduct", "-c", "core.cpp", directory=directory)
    facts = declared_symbols(library, headers)
    scope: list[str] = []
    for entry in entries(run("readelf", "--debug-dump=info", "--wide", "core.o", directory=directory)):
        del scope[entry.depth:]
        name = entry.attributes.get("name", "")
        scope += [""] * (entry.depth - len(scope)) + [name]
        if len(scope) < 2 or scope[1] != "viaduct" or "detail" in scope:
            continue
        path = "::".join(part for part in scope[1:] if part)
        if (size := entry.number("byte_size")) is not None and name:
            facts.add(f"{path}: {size} bytes")
        if entry.tag == "member" and (offset := entry.number("data_member_location")) is not None:
            facts.add(f"{path}: at {offset}")
        if entry.tag == "enumerator":
            facts.add(f"{path} = {entry.number('const_value')}")
        if entry.tag == "subprogram" and (slot := entry.number("vtable_elem_location")) is not None:
            facts.add(f"{path}: slot {slot}")
    return "".join(f"{fact}\n" for fact in sorted(facts))


def differences_core(stored: pathlib.Path, found: str) -> str:
    missing = set(stored.read_text().splitlines()) - set(found.splitlines())
    return "".join(f"missing: {fact}\n" for fact in sorted(missing))


def check(prefix: pathlib.Path, name: str, update: bool) -> bool:
    file, headers = LIBRARIES[name]
    library = next(prefix.glob(f"lib*/**/{file}"))
    stored = HERE / (f"{name}.abi" if headers else f"{name}.txt")
    with tempfile.TemporaryDirectory() as directory:
        if headers:
            found = describe_c(library, prefix / "include", headers, directory)
        else:
            found = describe_core(library, prefix / "include", directory)
        if update:
            stored.write_text(found)
        changes = differences_c(stored, found, directory) if headers else differences_core(stored, found)
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
