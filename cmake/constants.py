#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""constants.py HEADER... [--except NAME...] [--enum NAME] --list FILE [--stub TEMPLATE STUB] [--classes TABLE MODULE]
constants.py HEADER... [--except NAME...] --structures NAME... --list FILE [--classes TABLE MODULE]
             [--dataclasses TABLE MODULE]
constants.py HEADER... --calls KINDS --list FILE

Reads the constants of C headers: macros with a value and enumerators, or those of one enumeration. Writes a line
`CONSTANT(name)` for each to FILE, which is to be included. STUB is TEMPLATE, a Python stub, with the constants behind
it; what is called FIELDS in a class is repeated for each field of the structure with the name of the class. MODULE is a
Python module with enumerations of these constants.

TABLE is a Python file with a row for each class: its name; its base class, of viaduct._enums or with the name of its
module; the constants; the description. Constants are chosen by regular expressions, whose group is the name of the
member: `PATTERN`, `ENUM: PATTERN` for those of one enumeration of C, or several with " | " between them. The suffix
_FLAG is no part of a member's name; limits and masks are no members. `ENUM` alone is an enumeration of C++.

With --structures, FILE has a line `STRUCTURE(name, FIELD(name, field), ...)` for each of them instead. The MODULE of
--dataclasses has a class for each row of STRUCTURES in TABLE: its name, from which that in C follows; the description;
the annotations and defaults of fields that differ from those which FIELDS gives to their types in C. The default of an
enumeration is its first member. The module also has what BASE in TABLE names, from the module `base` beside it.

With --calls, FILE has a line for each call of DAT whose first parameter is a handle: those of api/udat/calls.inc, whose
kinds are in KINDS."""
import argparse
import json
import pathlib
import re
import runpy
import textwrap
import typing

MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+([A-Z]\w*)[ \t]+(\S[^\n]*)", re.M)
ENUM = re.compile(r"enum\s*(?:class\s+)?(\w*)\s*(?::[\s\w:]*)?\{([^}]*)\}\s*(\w*)")
STRUCTURE = re.compile(r"struct\s*(\w*)\s*\{([^{}]*)\}\s*(\w*)")
FIELD = re.compile(r"(?:(\w+)[\s*]+)?(\w+)\s*(?:\[\w+\])*(?:=[^;]*)?;")
PROTOTYPE = re.compile(r"^(\w[\w ]*[ *]+)(\w+)\(((?:[^()]|\([^()]*\))*)\)[ \w]*;", re.M)
VALUE = re.compile(r'"\w+"|[\w\s()<>|+~-]+')
NO_MEMBER = re.compile(r"(\w+_)?(BASE|MASK|MAX)")


def read(path: pathlib.Path) -> str:
    return re.sub(r"/\*.*?\*/|//[^\n]*", "", path.read_text(), flags=re.S).replace("\\\n", " ")


def macros(text: str) -> dict[str, str]:
    """Returns the Python type of each. Names that end with _H are those of include guards."""
    types: dict[str, str] = {}
    for name, value in MACRO.findall(text):
        if VALUE.fullmatch(value) and not name.endswith("_H"):
            types[name] = "str" if value.startswith('"') else types.get(value.strip(), "int")
    return types


def enumerations(text: str) -> list[tuple[set[str], dict[str, str]]]:
    """Returns the names of each, its tag and that of its type, and its enumerators with what follows "="."""
    return [({tag, name}, {each.partition("=")[0].strip(): each.partition("=")[2].strip()
                           for each in body.split(",") if each.strip()})
            for tag, body, name in ENUM.findall(text)]


def structures(text: str) -> dict[str, dict[str, str]]:
    """Returns the fields of each with the names of their types, by its tag and by the name of its type: if that is not
    here, the tag in capitals."""
    return {each: {field: kind for kind, field in FIELD.findall(body)}
            for tag, body, name in STRUCTURE.findall(text) for each in (tag, name or tag.upper())}


def functions(text: str) -> dict[str, tuple[str, list[str]]]:
    """Returns the result and the parameters of each function."""
    text = re.sub(r"^[ \t]*#.*|\b(extern|IN|OUT|DAT_API) ", "", text, flags=re.M)
    return {name: (result.strip(), re.split(r", *(?![^(]*\))", " ".join(parameters.split())))
            for result, name, parameters in PROTOTYPE.findall(text) if not result.startswith("typedef ")}


def calls(text: str, kinds: dict[str, list[str]]) -> typing.Iterator[str]:
    for function, (_, (handle, *parameters)) in functions(text).items():
        name = function.removeprefix("dat_")
        of = re.fullmatch(r"DAT_(?:(\w+)_)?HANDLE \w+", handle)
        if of is None or name in kinds["own"]:
            continue
        kind = next((each for each in ("HANDLE_CALL", "DATA_CALL") if name in kinds[each]), "CALL")
        in_1 = next((each for each in ("POSTS", "DIFFERS") if name in kinds[each]), "SAME")
        subject = (of[1] or "object").capitalize()
        if query := re.match(r"(\w+)_PARAM_MASK ", parameters[0]) if name.endswith("_query") else None:
            yield f"QUERY_CALL({in_1}, {subject}, {name.removesuffix('_query')}, {query[1]})"
            continue
        arguments = [re.findall(r"\w+", parameter)[-1] for parameter in parameters]
        yield f"{kind}({in_1}, {subject}, {name}, ({', '.join(parameters)}), ({', '.join(arguments)}))"


def write(path: pathlib.Path, text: str) -> None:
    """Leaves a file alone that would not change, because others are made from it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_file() and not path.is_symlink() and path.read_text() == text:
        return
    path.unlink(missing_ok=True)  # not to write to what it links to
    path.write_text(text)


def with_fields(stub: str, structs: dict[str, dict[str, str]]) -> str:
    def repeated(found: re.Match[str]) -> str:
        return found[1] + "".join(f"{found[3]}{field}{found[4]}" for field in structs[found[2]])
    return re.sub(r"(class (\w+).*\n(?:    .*\n)*?)((?:    @property\n)?    (?:def )?)FIELDS(.*\n)", repeated, stub)


def words_of(name: str) -> str:
    return re.sub("(?<=[a-z])(?=[A-Z])", "_", name).upper()


def members_of(constants: str, api: str, known: dict[str, str],
               enums: dict[str, dict[str, str]]) -> typing.Iterator[str]:
    """Returns the lines that define the members of a class."""
    if constants in enums:  # of C++
        number = -1
        for word, value in enums[constants].items():
            number = int(value, 0) if value else number + 1
            yield f"{words_of(word)} = {number}"
        return
    for choice in constants.split(" | "):
        enum, _, pattern = choice.rpartition(": ")
        for constant in enums[enum] if enum else known:
            found = re.fullmatch(pattern, constant)
            if found and not NO_MEMBER.fullmatch(found[1]):
                yield f"{found[1].removesuffix('_FLAG')} = _{api}.{constant}"


def module_of(table: pathlib.Path, known: dict[str, str], enums: dict[str, dict[str, str]]) -> str:
    """Returns the Python module with enumerations."""
    api, imports, classes = table.stem, set(), []
    rows = runpy.run_path(str(table))["ENUMERATIONS"]
    for name, base, constants, description in rows:
        module, _, base = f"viaduct._enums.{base}".rpartition(".") if "." not in base else base.rpartition(".")
        lines = [f'"""{description}"""', *members_of(constants, api, known, enums)]
        imports |= {f"from {module} import {base}"}
        imports |= {f"from viaduct import _{api}"} if f"_{api}." in lines[1] else set()
        classes.append(f"\n\nclass {name}({base}):\n" + textwrap.indent("\n".join(lines), "    "))
    names = ", ".join(f'"{name}"' for name, *_ in rows)
    return "\n".join([f'"""The enumerations of viaduct.{api}, made from the headers and {table.name}."""',
                      *sorted(imports), "", f"__all__ = [{names}]", *classes, ""])


def dataclasses_of(table: pathlib.Path, known: dict[str, str], enums: dict[str, dict[str, str]],
                   structs: dict[str, dict[str, str]]) -> str:
    """Returns the Python module with dataclasses."""
    api, rows, classes = table.stem, runpy.run_path(str(table)), []
    defaults: dict[str, str] = {}  # by the type in C
    for name, _, constants, _ in rows["ENUMERATIONS"]:
        first = next(members_of(constants, api, known, enums)).split()[0]
        defaults[f"{api}_{words_of(name)}".upper()] = f"{name} = {name}.{first}"
    defaults |= rows["FIELDS"]
    for name, description, own in rows["STRUCTURES"]:
        kind = f"{api}_{words_of(name)}".upper()
        lines = [f"{field}: {own.get(field) or defaults.get(of, 'int = 0')}" for field, of in structs[kind].items()]
        defaults[kind] = f"{name} = dataclasses.field(default_factory={name})"
        classes.append(f"\n\n@dataclasses.dataclass\nclass {name}(Structure):\n"
                       + textwrap.indent("\n".join([f'"""{description}"""', *lines]), "    "))
    names = ", ".join(f'"{name}"' for name in [*rows["BASE"], *(name for name, *_ in rows["STRUCTURES"])])
    return "\n".join([f'"""The structures of viaduct.{api}. Their fields have the names of C."""',
                      "from __future__ import annotations", "", "import dataclasses", "", f"from viaduct import _{api}",
                      f"from viaduct.{api}.base import {', '.join(rows['BASE'])}",
                      f"from viaduct.{api}.constants import *", "", f"__all__ = [{names}]", *classes, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("headers", nargs="+", type=pathlib.Path)
    parser.add_argument("--except", nargs="*", default=[], dest="excluded")
    parser.add_argument("--enum")
    parser.add_argument("--list", type=pathlib.Path, required=True)
    parser.add_argument("--stub", nargs=2, type=pathlib.Path)
    parser.add_argument("--classes", nargs=2, type=pathlib.Path)
    parser.add_argument("--structures", nargs="*", default=[])
    parser.add_argument("--dataclasses", nargs=2, type=pathlib.Path)
    parser.add_argument("--calls", type=pathlib.Path)
    arguments = parser.parse_args()
    known: dict[str, str] = {}
    structs: dict[str, dict[str, str]] = {}
    enums: dict[str, dict[str, str]] = {}
    for text in map(read, arguments.headers):
        structs |= structures(text)
        found = enumerations(text)
        enums |= {name: enumerators for names, enumerators in found for name in names}
        known |= {} if arguments.enum else macros(text)
        wanted = [enumerators for names, enumerators in found if arguments.enum in {None, *names}]
        known |= {each: "int" for enumerators in wanted for each in enumerators}
    known = {name: kind for name, kind in known.items() if name not in arguments.excluded}
    structs = {name: {field: kind for field, kind in fields.items() if field not in arguments.excluded}
               for name, fields in structs.items()}
    lines = [f"CONSTANT({name})" for name in known]
    if arguments.structures:
        lines = [f"STRUCTURE({name}, {', '.join(f'FIELD({name}, {field})' for field in structs[name])})"
                 for name in arguments.structures]
    if arguments.calls:
        kinds = json.loads(arguments.calls.read_text())
        lines = [line for header in arguments.headers for line in calls(read(header), kinds)]
    write(arguments.list, "".join(f"{line}\n" for line in lines))
    if arguments.stub:
        template, stub = arguments.stub
        constants = "".join(f"{name}: {kind}\n" for name, kind in known.items())
        write(stub, f"{with_fields(template.read_text(), structs)}\n{constants}")
    if arguments.classes:
        table, module = arguments.classes
        write(module, module_of(table, known, enums))
    if arguments.dataclasses:
        table, module = arguments.dataclasses
        write(module, dataclasses_of(table, known, enums, structs))


if __name__ == "__main__":
    main()
