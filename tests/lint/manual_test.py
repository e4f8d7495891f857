#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks the manual pages of the APIs: each function of a public header has one, and its SYNOPSIS declares what the
header declares; the return codes of VIPL and DAT calls are those of docs/conformance.md, with the reasons given there;
complete examples compile; and groff and mandoc, if they are installed, have no complaints. With --write, writes the
return codes into the pages."""
import dataclasses
import functools
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = [page for name in ("api", "core", "tools") for page in sorted((ROOT / name).rglob("man/*.[1-9]*"))]
BEGIN, END = '.\\" From docs/conformance.md, by tests/lint/manual_test.py --write.\n', '.\\" End.\n'
CALL = r"(?:Vip[A-Z]|dat_|rpma_)\w+"
WORD = re.compile(rf"([(]*)(`[^`]+`|{CALL}(?:\(\d?\w*\))?(?![\w*]|\.\w)|[\w.-]+\(\d\))(.*)")
Prototype = list[str]  # the type of the result, then the arguments


@dataclasses.dataclass(frozen=True)
class Api:
    directory: str  # below api/
    prefix: str
    section: str
    headers: str

    def declared(self, pattern: str) -> list[tuple[str, ...]]:
        headers = sorted((ROOT / "api" / self.directory / "include").glob(self.headers))
        return [found for header in headers for found in re.findall(pattern, header.read_text(), re.MULTILINE)]

    def functions(self) -> dict[str, Prototype]:
        found = self.declared(rf"^(?:extern |static inline )*((?:const )?\w+\*?) (?:DAT_API )?({self.prefix}\w+)\("
                              r"((?:[^()]|\([^()]*\))*)\)\s*[;{]")
        return {name: [normal(word) for word in (result, *re.split(r",(?![^()]*\))", arguments))]
                for result, name, arguments in found}

    def macros(self) -> dict[str, list[str]]:
        """The names of their arguments."""
        return {name: words.split(", ") for name, words in self.declared(rf"^#define ({self.prefix}\w+)\((.*?)\)")}

    def pages(self) -> list[pathlib.Path]:
        return sorted((ROOT / "api" / self.directory / "man").glob(f"*.{self.section}"))


APIS = [Api("vipl", "Vip", "3vipl", "vipl.h"), Api("udat", "dat_", "3dat", "dat2/*.h"),
        Api("rpma", "rpma_", "3", "librpma.h")]


@functools.cache
def sections() -> dict[str, str]:
    """Where the page of each function and macro is."""
    return {name: api.section for api in APIS for name in (*api.functions(), *api.macros())}


def normal(declaration: str) -> str:
    """Without IN and OUT, and with the asterisk at the name."""
    words = " ".join(re.sub(r"\b(?:IN|OUT)\b", "", declaration).split())
    return re.sub(r" ?\* ?", " *", words).replace("* *", "**").replace("( ", "(").strip()


def name_of(argument: str) -> str:
    return re.split(r"[ *]", argument.split(")")[0])[-1].removesuffix("[]")


def named(page: str) -> list[str]:
    return re.findall(r"^\.Nm (\w+)", page.split(".Sh SYNOPSIS")[0], re.MULTILINE)


def synopsis(page: str) -> dict[str, Prototype]:
    shown = re.findall(r"^\.Ft (.*)\n\.Fo (\w+)\n((?:\.Fa .*\n)*)\.Fc", page, re.MULTILINE)
    return {name: [line.strip('"').replace('" "', ", ") for line in (result, *re.findall(r"\.Fa (.*)", arguments))]
            for result, name, arguments in shown}


def macro(word: str, own: list[str], arguments: set[str]) -> str:
    """The macro for a word in backticks, the name of a call or that of a manual page."""
    plain = word.strip("`*").removesuffix("()")
    for pattern, name in ((r"VIADUCT_\w+", "Ev"), (r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)+", "Dv"), (r"[\w.-]*/[\w./-]+", "Pa")):
        if re.fullmatch(pattern, plain):
            return f"{name} {plain}"
    if page := re.fullmatch(r"([\w.-]+)\((\d\w*)\)", plain):
        return f"Xr {page[1]} {page[2]}"
    if plain in arguments:
        return f"Fa {plain}"
    if plain in own or "()" in word and plain not in sections():
        return f"Fn {plain}"
    if plain in sections():
        return f"Xr {plain} {sections()[plain]}"
    if re.fullmatch(r"\w+", plain):
        return f"Va {plain}"
    return f"Li {plain}" if " " not in plain else f'Li "{plain}"'


def mdoc(text: str, own: list[str], arguments: set[str]) -> list[str]:
    """The lines of a paragraph: each sentence and each macro begins one."""
    lines: list[str] = [""]
    text = re.sub(r"\[[^]]*\]\(([^)#]+)[^)]*\)", r"`docs/\1`", text).replace("\\", r"\e")
    for word in re.findall(r"(?:[^\s`]|`[^`]*`)+", text):
        if match := WORD.fullmatch(word):
            opening, core, rest = match.groups()
            marks = rest[:len(rest) - len(rest.lstrip(".,;:)"))]
            kind, operand = macro(core, own, arguments).split(" ", 1)
            after = ["Ns", rest] if rest and not marks else marks
            lines += [" ".join([f".{kind}", *opening, operand, *after]), ""]
        elif re.search(r"[.?!][)\"]?$", lines[-1]) or len(lines[-1]) + len(word) > 78:
            lines.append(word)
        else:
            lines[-1] += f" {word}" if lines[-1] else word
    return [rf"\&{line}" if re.match(r"'|\.[^A-Z]", line) else line for line in lines if line]


def codes() -> dict[str, list[tuple[str, str]]]:
    """Of each call its codes, in the order of docs/conformance.md, with the reasons."""
    found: dict[str, list[tuple[str, str]]] = {}
    row = re.compile(r"^\| `(\w+)` \| `(\w+)` \| (.*?) \| .*? \|$", re.MULTILINE)
    for call, code, reason in row.findall((ROOT / "docs/conformance.md").read_text()):
        reason = reason.replace("Not produced: ", "not returned: ").removesuffix(".") + "."
        found.setdefault(call, []).append((code, reason[0].upper() + reason[1:]))
    return found


def with_codes(page: str) -> str:
    """The page with the codes of docs/conformance.md; those of equal calls together."""
    own, table = named(page), codes()
    arguments = {name_of(argument) for prototype in synopsis(page).values() for argument in prototype[1:]}
    groups: dict[str, list[str]] = {}
    for call in filter(table.get, own):
        rows = [line for code, reason in table[call] for line in (f".It Dv {code}", *mdoc(reason, own, arguments))]
        groups.setdefault("\n".join([".Bl -tag -width Ds", *rows, ".El\n"]), []).append(call)
    lists = [(f".Ss {', '.join(calls)}\n" if len(own) > len(calls) else "") + rows for rows, calls in groups.items()]
    before, begin, rest = page.partition(BEGIN)
    return before + begin + "".join(lists) + rest[rest.index(END):] if begin else page + "".join(lists)


def faults_of_functions(api: Api) -> list[str]:
    functions, macros, faults = api.functions(), api.macros(), []
    shown: dict[str, Prototype] = {}
    for page in api.pages():
        text = page.read_text()
        faults += [f"{page.name}: NAME or SYNOPSIS lacks {name}" for name in set(named(text)) ^ set(synopsis(text))]
        shown |= synopsis(text)
    for name, prototype in shown.items():
        if functions.get(name) != prototype and macros.get(name) != [name_of(word) for word in prototype[1:]]:
            faults.append(f"{name}: the page declares {prototype}, the header {functions.get(name, macros.get(name))}")
    return faults + [f"{name}: no page" for name in functions if name not in shown]


def faults_of_references(page: pathlib.Path) -> list[str]:
    references = re.findall(rf"\bXr ({CALL}) (\w+)", page.read_text())
    return [f"{page.name}: no {name}({section})" for name, section in references if sections().get(name) != section]


def faults_of_examples(page: pathlib.Path) -> list[str]:
    blocks = re.findall(r"^\.Bd -literal.*\n((?:.*\n)*?)\.Ed", page.read_text(), re.MULTILINE)
    includes = [f"-I{ROOT / 'api' / api.directory / 'include'}" for api in APIS]
    command = ["cc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", *includes, "-x", "c", "-"]
    programs = [block.replace("\\&", "").replace("\\e", "\\") for block in blocks if "int main(" in block]
    results = [subprocess.run(command, input=program, text=True, capture_output=True) for program in programs]
    return [f"{page.name}: {result.stderr}" for result in results if result.returncode != 0]


def faults_of_format() -> list[str]:
    """mandoc does not know the sections 3vipl and 3dat."""
    faults = []
    for command in ["groff", "-mdoc", "-Tutf8", "-ww", "-z"], ["mandoc", "-Tlint", "-Wwarning"]:
        if shutil.which(command[0]):
            for page in PAGES:
                result = subprocess.run([*command, page], text=True, capture_output=True)
                faults += [line for line in (result.stdout + result.stderr).splitlines()
                           if "unknown manual section" not in line and "outdated mandoc.db" not in line]
    return faults


def main() -> int:
    described = [page for api in APIS[:2] for page in api.pages()]
    if sys.argv[1:] == ["--write"]:
        for page in described:
            page.write_text(with_codes(page.read_text()))
    faults = [fault for api in APIS for fault in faults_of_functions(api)] + faults_of_format()
    faults += [f"{page.name}: not the codes of docs/conformance.md; run {__file__} --write" for page in described
               if with_codes(page.read_text()) != page.read_text()]
    faults += [fault for page in PAGES for fault in faults_of_references(page) + faults_of_examples(page)]
    print("\n".join(faults))
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
