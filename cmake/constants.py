#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""constants.py HEADER... [--except NAME...] [--enum NAME] --list FILE [--stub TEMPLATE STUB]

Reads the constants of C headers: macros with a value and enumerators, or those of one enumeration. Writes a line
`CONSTANT(name)` for each to FILE, which is to be included. STUB is TEMPLATE, a Python stub, with the constants behind
it."""
import argparse
import pathlib
import re

MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+([A-Z]\w*)[ \t]+(\S[^\n]*)", re.M)
ENUM = re.compile(r"enum\s*(\w*)\s*\{([^}]*)\}\s*(\w*)")
VALUE = re.compile(r'"\w+"|[\w\s()<>|+~-]+')


def read(path: pathlib.Path) -> str:
    return re.sub(r"/\*.*?\*/|//[^\n]*", "", path.read_text(), flags=re.S).replace("\\\n", " ")


def macros(text: str) -> dict[str, str]:
    """Returns the Python type of each. Names that end with _H are those of include guards."""
    return {name: "str" if value.startswith('"') else "int" for name, value in MACRO.findall(text)
            if VALUE.fullmatch(value) and not name.endswith("_H")}


def enumerators(text: str, wanted: str | None) -> dict[str, str]:
    lists = [body for tag, body, name in ENUM.findall(text) if wanted in (None, tag, name)]
    return {each.split("=")[0].strip(): "int" for body in lists for each in body.split(",") if each.strip()}


def write(path: pathlib.Path, text: str) -> None:
    """Leaves a file alone that would not change, because others are made from it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_file() and not path.is_symlink() and path.read_text() == text:
        return
    path.unlink(missing_ok=True)  # not to write to what it links to
    path.write_text(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("headers", nargs="+", type=pathlib.Path)
    parser.add_argument("--except", nargs="*", default=[], dest="excluded")
    parser.add_argument("--enum")
    parser.add_argument("--list", type=pathlib.Path, required=True)
    parser.add_argument("--stub", nargs=2, type=pathlib.Path)
    arguments = parser.parse_args()
    found: dict[str, str] = {}
    for text in map(read, arguments.headers):
        found |= ({} if arguments.enum else macros(text)) | enumerators(text, arguments.enum)
    names = {name: kind for name, kind in found.items() if name not in arguments.excluded}
    write(arguments.list, "".join(f"CONSTANT({name})\n" for name in names))
    if arguments.stub:
        template, stub = arguments.stub
        write(stub, template.read_text() + "\n" + "".join(f"{name}: {kind}\n" for name, kind in names.items()))


if __name__ == "__main__":
    main()
