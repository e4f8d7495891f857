#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Builds the documentation site in build/docs; `./dev docs` runs it. From the pages of the repository, the manual pages,
the headers and the examples it writes pages for Sphinx to build/site/pages, with links between them and with diagrams,
then calls Doxygen and Sphinx, and checks the links of the result."""
import dataclasses
import functools
import importlib
import inspect
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as tree

import check

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORK, SITE = ROOT / "build/site", ROOT / "build/docs"
PAGES = WORK / "pages"
NAVIGATION = "docs/site/navigation.md"
MARKDOWN = sorted({str(page.relative_to(ROOT)) for folder in ("docs", "examples", "tests")
                   for page in (ROOT / folder).rglob("*.md")} - {NAVIGATION}) + [
                       "README.md", "CONTRIBUTING.md", "CHANGELOG.md"]
LANGUAGES = {".c": "c", ".h": "c", ".hpp": "cpp", ".cpp": "cpp", ".py": "python", ".sh": "sh", ".json": "json"}
# Of each tutorial: the name of the API, the file with its calls, and the program that uses them.
TUTORIALS = {"vipl": ("VIPL", "vipl/end.h", "hello.c"), "dat": ("DAT", "dat/end.h", "hello.c"),
             "rpma": ("librpma", "rpma/end.h", "hello.c"), "core": ("the core, in C++", "core/end.hpp", "core/hello.cpp"),
             "python": ("the core, in Python", "python/end.py", "python/hello.py")}
MANUALS = {"vipl": ("VIPL", "api/vipl"), "dat": ("DAT", "api/udat"), "rpma": ("librpma", "api/rpma"),
           "tools": ("Tools and settings", "[ct]o*")}
# The headers in C, by the names by which programs include them.
HEADERS = {str(header.relative_to(folder)): str(header.relative_to(ROOT)) for folder in ROOT.glob("api/*/include")
           for header in folder.rglob("*.h")}
STYLE = 'node [shape=box style="filled,rounded" fillcolor="#eef3fa" fontname="sans-serif" fontsize=12]; edge [fontsize=11]'
written: set[pathlib.Path] = set()


def write(name: str, text: str) -> None:
    """Leaves files alone that are as they should be, so that Sphinx need not read them again."""
    path = PAGES / name
    written.add(path)
    if not path.exists() or path.read_text() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def run(*command: str, text: str | None = None) -> str:
    done = subprocess.run(command, cwd=ROOT, input=text, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(f"{command[0]} failed\n{done.stdout}")
    return done.stdout


def toctree(names: list[str], *options: str) -> str:
    return "\n".join(["```{toctree}", *options, "", *(name if name.endswith(">") else f"/{name}" for name in names), "```", ""])


# ---- Links ----

def page_of(path: str) -> str:
    """The page that shows a file or directory of the repository. Makes it if it is not one of those that exist anyway."""
    if path in MARKDOWN:
        return "index.md" if path == "README.md" else path
    if "/man/" in path:
        return f"man/{pathlib.Path(path).name}.rst"
    if path.startswith("core/include/viaduct/") and "detail" not in path:
        return f"{path}.rst"
    if (ROOT / path).is_dir():
        return page_of(f"{path}/README.md") if f"{path}/README.md" in MARKDOWN else directory_page(path)
    return source_page(path)


@functools.cache
def directory_page(path: str) -> str:
    pages = [page_of(str(file.relative_to(ROOT))) for file in sorted((ROOT / path).iterdir()) if file.is_file()]
    write(f"{path}/index.md", f"---\norphan: true\n---\n# {path}\n\n" + toctree([re.sub(r"\.(md|rst)$", "", page) for page in pages]))
    return f"{path}/index.md"


@functools.cache
def source_page(path: str) -> str:
    file = ROOT / path
    there = os.path.relpath(file, (PAGES / path).parent)
    write(f"{path}.rst", f":orphan:\n\n{path}\n{'=' * len(path)}\n\n.. literalinclude:: {there}\n"
                         f"   :language: {LANGUAGES.get(file.suffix, 'none')}\n")
    return f"{path}.rst"


def with_links(text: str, page: str) -> str:
    """Makes links to files of the repository those to their pages."""
    here = os.path.dirname(page)

    def resolved(match: re.Match[str]) -> str:
        name, _, anchor = match[1].partition("#")
        if "://" in name or not name:
            return match[0]
        target = os.path.relpath(page_of(os.path.normpath(os.path.join(here, name))), here or ".")
        return f"]({target}{'#' if anchor else ''}{anchor})"

    parts = re.split(r"(?ms)(^```.*?^```$)", text)
    return "".join(part if i % 2 else re.sub(r"\]\(([^)\s]+)\)", resolved, part) for i, part in enumerate(parts))


# ---- Diagrams ----

def flowchart_to_dot(lines: list[str]) -> str:
    """Of the flowcharts of Mermaid, what the pages use."""
    out = [f"digraph {{ rankdir=LR; ranksep=0.3; nodesep=0.15; {STYLE}"]
    node = r'(\w+)(?:\["([^"]*)"\])?'

    def name(identifier: str, label: str | None) -> str:
        if label:
            out.append(f'{identifier} [label="{label}"];'.replace("<br/>", r"\n"))
        return identifier

    for line in lines:
        if found := re.fullmatch(r'subgraph (\w+)\["(.*)"\]', line):
            out.append(f'subgraph cluster_{found[1]} {{ label="{found[2]}"; style=rounded; color=gray;')
        elif line == "end":
            out.append("}")
        elif found := re.fullmatch(node + r" (?:-->|-- (.*?) -->|-\. (.*?) \.->) " + node, line):
            style = f'label="{found[3] or found[4] or ""}"' + (" style=dashed" if found[4] else "")
            out.append(f"{name(found[1], found[2])} -> {name(found[5], found[6])} [{style}];")
        elif found := re.fullmatch(node, line):
            name(found[1], found[2])
        else:
            sys.exit(f"a flowchart has a line that cannot be drawn: {line}")
    return "\n".join([*out, "}"])


def states_to_dot(lines: list[str]) -> str:
    arrows: dict[tuple[str, str], list[str]] = {}
    for line in lines:
        found = re.fullmatch(r"(\S+) --> (\w+)(?: : (.*))?", line) or sys.exit(f"not a transition: {line}")
        arrows.setdefault((found[1], found[2]), []).append(found[3] or "")
    edges = ['"{}" -> "{}" [label="{}"];'.format(*ends, r"\n".join(labels)) for ends, labels in arrows.items()]
    return "\n".join([f"digraph {{ {STYLE}",
                      '"[*]" [label="" shape=circle width=0.2 fillcolor=black];', *edges, "}"])


def sequence_to_msc(lines: list[str]) -> str:
    ends, arcs = [], []
    for line in lines:
        if found := re.fullmatch(r"participant (\w+) as (.*)", line):
            ends.append(f'{found[1]} [label="{found[2]}"]')
        elif found := re.fullmatch(r"(\w+)->>(\w+): (.*)", line):
            arcs.append(f'{found[1]}=>{found[2]} [label="{found[3]}"];')
        elif found := re.fullmatch(r"Note over (\w+): (.*)", line):
            arcs.append(f'{found[1]} note {found[1]} [label="{found[2]}"];')
        elif found := re.fullmatch(r"(?:alt|else) (.*)", line):
            arcs.append(f'--- [label="{found[1]}"];')
        elif line == "end":
            arcs.append("---;")
        else:
            sys.exit(f"a sequence diagram has a line that cannot be drawn: {line}")
    return "\n".join(['msc { wordwraparcs=on, hscale="1.7";', ", ".join(ends) + ";", *arcs, "}"])


def with_diagrams(text: str) -> str:
    """Draws the diagrams, which are in the language of Mermaid, because GitHub shows it."""
    def drawn(match: re.Match[str]) -> str:
        kind, *lines = [line.strip() for line in match[1].strip().splitlines()]
        if kind == "sequenceDiagram":
            svg = run("mscgen", "-T", "svg", "-o", "-", text=sequence_to_msc(lines))
        else:
            svg = run("dot", "-Tsvg", text=(states_to_dot if kind.startswith("state") else flowchart_to_dot)(lines))
        return '<div class="diagram">\n' + re.sub(r"\n+", "\n", svg[svg.index("<svg"):]) + "</div>"

    return re.sub(r"(?ms)^```mermaid\n(.*?)^```$", drawn, text)


# ---- Pages ----

def markdown_pages() -> None:
    navigation = (ROOT / NAVIGATION).read_text()
    for page in MARKDOWN:
        text = with_diagrams(with_links((ROOT / page).read_text(), page))
        write(page_of(page), text + ("\n" + navigation if page == "README.md" else ""))


@dataclasses.dataclass
class Manual:
    path: pathlib.Path

    def __post_init__(self):
        self.source = self.path.read_text()
        self.section = self.path.suffix[1:]
        self.page = f"man/{self.path.name}"
        self.names = re.findall(r"^\.Nm (\S+)", self.source.split(".Sh DESCRIPTION")[0].split(".Sh SYNOPSIS")[0], re.M)
        self.about = re.search(r"^\.Nd (.*)", self.source, re.M)[1]
        self.title = f"{self.path.stem}({self.section})"


def manual_pages() -> None:
    """mandoc makes HTML of them, and lists of the pages of each API say what is where."""
    groups = {group: [Manual(path) for path in sorted(ROOT.glob(f"{folder}/man/*.[1-9]*"))]
              for group, (_, folder) in MANUALS.items()}
    pages = {f"{name}.{manual.section}": manual for manuals in groups.values() for manual in manuals
             for name in {*manual.names, manual.path.stem}}
    (WORK / "manual.txt").write_text("".join(f"{key.rpartition('.')[0]} {manual.page}\n" for key, manual in pages.items()
                                              if manual.section[0] in "13"))

    def reference(match: re.Match[str]) -> str:
        manual = pages.get(match[1])
        return f'<a class="Xr" href="{manual.path.name}.html">{match[2]}</a>' if manual else match[2]

    def header(match: re.Match[str]) -> str:
        there = HEADERS.get(match[1])
        return f'<a class="In" href="../{there}.html">{match[1]}</a>' if there else match[1]

    for manual in (manual for manuals in groups.values() for manual in manuals):
        page = run("mandoc", "-T", "html", "-O", "fragment,man=%N.%S", str(manual.path))
        page = re.sub(r'(?s)<table class="(head|foot)">.*?</table>', "", page)
        page = re.sub(r"<(/?)h2", r"<\1h3", page)
        page = re.sub(r"<(/?)h1", r"<\1h2", page)
        page = re.sub(r'(?s)<a class="Xr" href="([^"]*)"[^>]*>(.*?)</a>', reference, page)
        page = re.sub(r'<a class="In">([^<]*)</a>', header, page)
        (PAGES / "man").mkdir(parents=True, exist_ok=True)
        write(f"{manual.page}.html", page)
        write(f"{manual.page}.rst", f"{manual.title}\n{'=' * len(manual.title)}\n\n"
                                    f".. raw:: html\n   :file: {manual.path.name}.html\n")
    for group, manuals in groups.items():
        rows = [f"| [{', '.join(manual.names) or manual.path.stem}]({manual.path.name}.rst) | {manual.section} | "
                f"{manual.about} |" for manual in manuals]
        write(f"man/{group}.md", "\n".join([f"# {MANUALS[group][0]}: manual pages", "", "| name | section | what |",
                                            "|---|---|---|", *rows, "",
                                            toctree([f"{manual.path.stem} </{manual.page}>" for manual in manuals], ":hidden:")]))


def program_text(path: str) -> str:
    """Without the license."""
    text = (ROOT / "examples" / path).read_text()
    return re.sub(r"\A(#!.*\n)?(/\*|//|#) SPDX.*\n( \* )?", lambda match: "/* " if match[3] else "", text).strip()


def end_of(step: str, lines: list[str], python: bool) -> int:
    """The line behind the definition of a step."""
    start = next(i for i, line in enumerate(lines)
                 if re.match(rf" *(?:async )?def {step}\(" if python else rf"(?:static )?inline [^;=]*?\b{step}\(", line))
    if not python and re.search(r"\}( +/[/*].*)?$", lines[start]):
        return start + 1
    indent = len(lines[start]) - len(lines[start].lstrip())
    return next((i for i, line in enumerate(lines[start + 1:], start + 1) if line.strip() and
                 (len(line) - len(line.lstrip()) <= indent if python else line.startswith("}"))), len(lines)) + (not python)


def tutorials() -> None:
    """Of each API: the template, with the parts of the API's file in examples/."""
    template = (ROOT / "docs/site/tutorial.md.in").read_text()
    for name, (api, end, program) in TUTORIALS.items():
        python = end.endswith(".py")
        lines, position = program_text(end).splitlines(), 0
        language = LANGUAGES[pathlib.Path(end).suffix]

        def part(match: re.Match[str]) -> str:
            nonlocal position
            steps = match[1].split()
            begin = position
            last = "__init__" if python and steps[-1] == "create_endpoint" else steps[-1]
            position = len(lines) if last == "serve_clients" else end_of(last, lines, python)
            return f"```{language}\n" + "\n".join(lines[begin:position]).strip("\n") + "\n```"

        text = template.replace("@api@", api).replace("@end@", end).replace("@program@", program)
        text = text.replace("@language@", language).replace("@hello@", program_text(program))
        write(f"docs/site/tutorial-{name}.md", with_links(re.sub(r"@step ([\w ]+)@", part, text), "docs/site/tutorial.md.in"))


def section(title: str, line: str, *directive: str) -> str:
    return "\n".join([title, line * len(title), "", *directive, "", ""])


def cpp_reference() -> None:
    """A page for each header, from what Doxygen found in it: classes, enumerations, types, constants and functions."""
    xml = WORK / "doxygen/xml"
    shutil.rmtree(xml, ignore_errors=True)
    xml.mkdir(parents=True)
    run("doxygen", "docs/site/Doxyfile")
    namespace = tree.parse(xml / "namespaceviaduct.xml")
    found = [(inner.text, compound.get("kind"), compound.find("location")) for inner in namespace.iter("innerclass")
             for compound in [tree.parse(xml / f"{inner.get('refid')}.xml").find("compounddef")]
             if compound.find("location").get("bodystart")]
    found += [(member.findtext("qualifiedname") + (member.findtext("argsstring") or ""), member.get("kind"),
               member.find("location")) for member in namespace.iter("memberdef")]
    found.sort(key=lambda entry: int(entry[2].get("line")))
    for header in sorted((ROOT / "core/include/viaduct").glob("*.hpp")):
        name = f"viaduct/{header.name}"
        about = re.match(r"// SPDX.*\n((?://.*\n)*)", header.read_text())[1]
        text = section(name, "=", re.sub(r"(?m)^// ?", "", about))
        for entity, kind, place in found:
            if place.get("file") == name and entity.count("::", 0, (entity + "(").index("(")) == 1:
                text += section(entity.split("(")[0].removeprefix("viaduct::"), "-", f".. doxygen{kind}:: {entity}",
                                *["   :members:"] * (kind in ("class", "struct")))
        write(f"core/include/{name}.rst", text)


def python_reference() -> None:
    sys.path.insert(0, str(ROOT / "build/release/bindings/python"))
    for package in ("", ".core", ".vipl", ".dat", ".dat.constants", ".rpma", ".pytest_plugin"):
        name = f"viaduct{package}"
        module = importlib.import_module(name)
        text = section(name, "=", f".. automodule:: {name}", "   :no-members:")
        for entity in getattr(module, "__all__", None) or [
                entity for entity, value in vars(module).items()
                if not entity.startswith("_") and getattr(value, "__module__", None) == name]:
            value = getattr(module, entity)
            kind = ("exception" if issubclass(value, BaseException) else "class") if inspect.isclass(value) else (
                "function" if callable(value) else "data")
            text += section(entity, "-", f".. auto{kind}:: {name}.{entity}")
        write(f"python/{name}.rst", text)


def main() -> int:
    start = time.monotonic()
    PAGES.mkdir(parents=True, exist_ok=True)
    markdown_pages()
    manual_pages()
    tutorials()
    cpp_reference()
    python_reference()
    for header in HEADERS.values():
        source_page(header)
    for file in PAGES.rglob("*"):
        if file.is_file() and file not in written:
            file.unlink()
    run(sys.executable, "-m", "sphinx", "-b", "html", "-j", "auto", "-q", "-W", "--keep-going", "-c", "docs/site",
        "-d", str(WORK / "doctrees"), str(PAGES), str(SITE))
    links, problems = check.check(SITE)
    print("\n".join(problems) or f"{len(list(SITE.rglob('*.html')))} pages, {links} links between them, in "
                                 f"{time.monotonic() - start:.0f} s: {(SITE / 'index.html').relative_to(ROOT)}")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
