#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What headers, manual pages and docs/conformance.md say about the functions of the three APIs, and how text of
docs/ becomes mdoc(7)."""
import dataclasses
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROW = re.compile(r"^\| `(\w+)` \| `(\w+)` \| (.*?) \| .*? \|$", re.MULTILINE)
CALL = r"(?:Vip[A-Z]|dat_|rpma_)\w+"
TOKEN = re.compile(rf"([(]*)(`[^`]+`|{CALL}(?:\(\d?\w*\))?(?![\w*]|\.\w)|[\w.-]+\(\d\))(.*)")


@dataclasses.dataclass(frozen=True)
class Api:
    directory: str  # below api/
    prefix: str
    section: str
    headers: str

    def prototypes(self) -> dict[str, tuple[str, ...]]:
        """Of each function the type of the result, then the arguments."""
        found = {}
        for header in sorted((ROOT / "api" / self.directory / "include").glob(self.headers)):
            for match in re.finditer(rf"^(?:extern |static inline )*((?:const )?\w+\*?) (?:DAT_API )?({self.prefix}\w+)\("
                                     r"((?:[^()]|\([^()]*\))*)\)\s*[;{]", header.read_text(), re.MULTILINE):
                found[match[2]] = (normal(match[1]), *(normal(part) for part in re.split(r",(?![^()]*\))", match[3])))
        return found

    def pages(self) -> list[pathlib.Path]:
        return sorted((ROOT / "api" / self.directory / "man").glob(f"*.{self.section}"))


APIS = [Api("vipl", "Vip", "3vipl", "vipl.h"), Api("udat", "dat_", "3dat", "dat2/*.h"),
        Api("rpma", "rpma_", "3", "librpma.h")]


def normal(declaration: str) -> str:
    """Without IN and OUT, and with the asterisk at the name."""
    words = " ".join(re.sub(r"\b(?:IN|OUT)\b", "", declaration).split())
    return re.sub(r" ?\* ?", " *", words).replace("* *", "**").replace("( ", "(").strip()


def functions(page: str) -> list[str]:
    """Those that the section NAME lists."""
    return re.findall(r"^\.Nm (\w+)", page.split(".Sh SYNOPSIS")[0], re.MULTILINE)


def synopsis(page: str) -> dict[str, tuple[str, ...]]:
    shown = re.findall(r"^\.Ft (.*)\n\.Fo (\w+)\n((?:\.Fa .*\n)*)\.Fc", page, re.MULTILINE)
    return {name: (result.strip('"'), *(line[4:].strip('"').replace('" "', ", ") for line in arguments.splitlines()))
            for result, name, arguments in shown}


def codes() -> dict[str, list[tuple[str, str]]]:
    """Of each call its codes, in the order of docs/conformance.md, with the reasons."""
    found: dict[str, list[tuple[str, str]]] = {}
    for call, code, reason in ROW.findall((ROOT / "docs/conformance.md").read_text()):
        found.setdefault(call, []).append((code, reason))
    return found


def macro(word: str, own: list[str], arguments: set[str]) -> str:
    """The macro for a word in backticks, the name of a call or that of a manual page."""
    plain = word.removesuffix("()").strip("`*")
    for pattern, name in ((r"VIADUCT_\w+", "Ev"), (r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)+", "Dv"), (r"[\w.-]*/[\w./-]+", "Pa")):
        if re.fullmatch(pattern, plain):
            return f"{name} {plain}"
    if page := re.fullmatch(r"(\w+)\((\d\w*)\)", plain):
        return f"Xr {page[1]} {page[2]}"
    if re.fullmatch(CALL, plain):
        section = next(api.section for api in APIS if plain.startswith(api.prefix))
        return f"Fn {plain}" if plain in own else f"Xr {plain} {section}"
    if re.fullmatch(r"\w+", plain):
        return f"{'Fa' if plain in arguments else 'Va'} {plain}"
    return f"Li {plain}" if " " not in plain else f'Li "{plain}"'


def mdoc(text: str, own: list[str], arguments: set[str]) -> list[str]:
    """The lines of a paragraph: each sentence and each macro begins one."""
    lines: list[str] = [""]
    text = re.sub(r"\[[^]]*\]\(([^)#]+)[^)]*\)", r"`docs/\1`", text).replace("\\", r"\e")
    for word in re.findall(r"(?:[^\s`]|`[^`]*`)+", text):
        if match := TOKEN.fullmatch(word):
            opening, core, rest = match.groups()
            marks = re.match(r"[.,;:)]*", rest)[0]
            after = [*marks, *(["Ns", rest] if rest and not marks else [])]
            lines += [" ".join(["." + macro(core, own, arguments).replace(" ", " " + " ".join(opening) + " "
                                                                          if opening else " ", 1), *after]), ""]
        elif re.search(r"[.?!][)\"]?$", lines[-1]) or len(lines[-1]) + len(word) > 78:
            lines.append(word)
        else:
            lines[-1] += f" {word}" if lines[-1] else word
    return [rf"\&{line}" if re.match(r"'|\.[^A-Z]", line) else line for line in lines if line]


def sentence(reason: str) -> str:
    reason = reason.replace("Not produced: ", "not returned: ")
    return reason[0].upper() + reason[1:] + ("" if reason.endswith(".") else ".")


def return_values(page: str) -> str | None:
    """The part of the section RETURN VALUES that docs/conformance.md determines."""
    own, table = functions(page), codes()
    arguments = {re.split(r"[ *]", argument.split(")")[0])[-1] for call in synopsis(page).values() for argument in call}
    groups: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for call in own:
        if call in table:
            groups.setdefault(tuple(table[call]), []).append(call)
    lines = []
    for rows, calls in groups.items():
        lines += [f".Ss {', '.join(calls)}"] if len(own) > len(calls) else []
        lines.append(".Bl -tag -width Ds")
        for code, reason in rows:
            lines += [f".It Dv {code}", *mdoc(sentence(reason), own, arguments)]
        lines.append(".El")
    return "\n".join(lines) + "\n" if lines else None
