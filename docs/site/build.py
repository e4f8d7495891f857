#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes the documentation site in build/docs; `./dev docs` runs it. From the pages of the repository, the manual
pages, the headers, the Python package and the examples it writes pages to build/site/pages, with links between them and
with diagrams. Sphinx makes HTML of these pages, and check.py looks at the result."""
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
PAGES, XML = WORK / "pages", WORK / "doxygen/xml"
NAVIGATION, TUTORIAL = "docs/site/navigation.md", "docs/site/tutorial.md.in"
MARKDOWN = {str(page.relative_to(ROOT)) for folder in ("docs", "examples", "tests")
            for page in (ROOT / folder).rglob("*.md")} - {NAVIGATION} | {"README.md", "CONTRIBUTING.md", "CHANGELOG.md"}
LANGUAGES = {".c": "c", ".h": "c", ".hpp": "cpp", ".cpp": "cpp", ".py": "python", ".sh": "sh", ".json": "json"}
# Of each tutorial: the name of the API and, in examples/, the file with its calls and the program that uses them.
TUTORIALS = {"vipl": ("VIPL", "vipl/end.h", "hello.c"), "dat": ("DAT", "dat/end.h", "hello.c"),
             "rpma": ("librpma", "rpma/end.h", "hello.c"),
             "core": ("the core, in C++", "core/end.hpp", "core/hello.cpp"),
             "python": ("the core, in Python", "python/end.py", "python/hello.py")}
MANUALS = {"vipl": ("VIPL", "api/vipl"), "dat": ("DAT", "api/udat"), "rpma": ("librpma", "api/rpma"),
           "tools": ("Tools and settings", "[ct]o*")}
# The headers in C, by the names by which programs include them.
HEADERS = {str(header.relative_to(folder)): str(header.relative_to(ROOT)) for folder in ROOT.glob("api/*/include")
           for header in folder.rglob("*.h")}
# The pages have diagrams in the language of Mermaid, which GitHub draws. Of each kind: the program that draws it here,
# the beginning of its input, and what to replace in the text.
BOXES = """digraph { ranksep=0.4; nodesep=0.1; graph [fontname="sans-serif" fontsize=12]
edge [fontname="sans-serif" fontsize=10]
node [shape=box style="filled,rounded" fillcolor="#eef3fa" fontname="sans-serif" fontsize=12]
node [margin="0.08,0.04" height=0.3]
"""
DIAGRAMS = {
    "flowchart": ("dot -Tsvg", BOXES, [
        (r'subgraph (\w+)\["(.*)"\]', r'subgraph cluster_\1 { label="\2"; style=rounded; color=gray'), (r"\bend$", "}"),
        (r'(?s)(.*)', lambda match: re.sub(r'(\w)\["(.*?)"\]', r"\1", match[0]) + "\n" + "\n".join(
            re.findall(r'\w+\["[^"]*"\]', match[0]))),
        (r'\["(.*?)"\]', r' [label="\1"]'), ("<br/>", r"\\n"),
        (r" -\. (.*) \.-> (\w+)", r' -> \2 [label="\1" style=dashed]'), (r" -- (.*) --> (\w+)", r' -> \2 [label="\1"]'),
        ("-->", "->")]),
    "stateDiagram": ("dot -Tsvg", BOXES + 'start [label="" shape=circle width=0.2 fillcolor=black];', [
        (r"(?s).*", lambda match: "\n".join(sorted(match[0].splitlines()))),
        (r"\[\*\]", "start"), (r"(.* --> \w+ : )(.*)\n\1", r"\1\2\\n"), (r"--> (\w+) : (.*)", r'-> \1 [label="\2"]'),
        ("-->", "->")]),
    "sequenceDiagram": ("mscgen -Tsvg -o-", 'msc { wordwraparcs=on, hscale="1.6";', [
        (r"participant (\w+) as (.*)", r'\1 [label="\2"],'), (r",(\n.*->>)", r";\1"),
        (r"(\w+)->>(\w+): (.*)", r'\1=>\2 [label="\3"];'), (r"Note over (\w+): (.*)", r'\1 note \1 [label="\2"];'),
        (r"(?:alt|else) (.*)", r'--- [label="\1"];'), ("end$", "---;")])}
written = set()


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


def section(title: str, line: str, *text: str) -> str:
    """In reStructuredText."""
    return "\n".join([title, line * len(title), "", *text, "", ""])


def toctree(entries: list[str], *options: str) -> str:
    return "\n".join(["```{toctree}", *options, "", *entries, "```", ""])


# ---- Pages in Markdown ----

@functools.cache
def page_of(path: str) -> str:
    """The page of a file or directory of the repository, which is made if there is none."""
    file = ROOT / path
    if path in MARKDOWN:
        return "index.md" if path == "README.md" else path
    if file.suffix == ".svg":
        write(path, file.read_text())
        return path
    if "/man/" in path:
        return f"man/{file.name}.rst"
    if file.is_dir():
        if f"{path}/README.md" in MARKDOWN:
            return f"{path}/README.md"
        entries = [os.path.splitext(page_of(str(entry.relative_to(ROOT))))[0] for entry in sorted(file.iterdir())
                   if entry.is_file()]
        write(f"{path}/index.md", f"---\norphan: true\n---\n# {path}\n\n" + toctree([f"/{entry}" for entry in entries]))
        return f"{path}/index.md"
    if file.parent != ROOT / "core/include/viaduct":  # those have pages in the reference
        write(f"{path}.rst", ":orphan:\n\n" + section(
            path, "=", f".. literalinclude:: {os.path.relpath(file, (PAGES / path).parent)}",
            f"   :language: {LANGUAGES.get(file.suffix, 'none')}"))
    return f"{path}.rst"


def draw(diagram: re.Match[str]) -> str:
    text = re.sub(r"(?m)^ +", "", diagram[2]).strip()
    program, head, rules = DIAGRAMS[diagram[1]]
    for pattern, replacement in rules:
        text = re.sub(pattern, replacement, text, flags=re.M)
    svg = run(*program.split(), text=f"{head}\n{text}\n}}\n")
    svg = re.sub(r'(<svg[^>]*?) width="\w+"\s+height="\w+"', r"\1", svg[svg.index("<svg"):], count=1)
    return '<div class="diagram">\n' + re.sub(r"\n+", "\n", svg) + "</div>"


def write_markdown(name: str, text: str, source: str) -> None:
    """With links to pages instead of files, and with diagrams."""
    here = os.path.dirname(source)

    def resolve(link: re.Match[str]) -> str:
        target = os.path.relpath(page_of(os.path.normpath(os.path.join(here, link[1]))), here or ".")
        return f"]({target}{link[2] or ''})"

    parts = re.split(r"(?ms)(^```.*?^```$)", text)
    parts[::2] = [re.sub(r"\]\((?!\w+://)([^)\s#]+)(#[^)\s]*)?\)", resolve, part) for part in parts[::2]]
    write(name, re.sub(r"(?ms)^```mermaid\n([a-zA-Z]+)\S*(?: \w+)?\n(.*?)^```$", draw, "".join(parts)))


def tutorials() -> None:
    """Of each API: the template, with the parts of the API's file in examples/."""
    for name, (api, *files) in TUTORIALS.items():
        # Without the license
        calls, program = (re.sub(r"\A(#!.*\n)?(/\*|//|#) SPDX.*\n( \* )?", lambda match: "/* " if match[3] else "",
                                 (ROOT / "examples" / file).read_text()).strip() for file in files)
        language, position = LANGUAGES[pathlib.Path(files[0]).suffix], 0

        def part(match: re.Match[str]) -> str:
            """From the end of the last part to the end of this step; the last one gets the rest."""
            nonlocal position
            begin, position, step = position, len(calls), match[1].split()[-1]
            if step != "serve_clients" and language == "python":
                step = step.replace("create_endpoint", "__init__")
                position = re.search(rf"(?m)^( *)(async )?def {step}\(.*\n(\1 +.*\n|\n)*", calls).end()
            elif step != "serve_clients":
                definition = rf"(?m)^(static )?inline [^;=]*?\b{step}\((.*\}}( +/.*)?$|(.*\n)*?\}})"
                position = re.search(definition, calls).end()
            return f"```{language}\n" + calls[begin:position].strip("\n") + "\n```"

        text = re.sub(r"@step (.*)@", part, (ROOT / TUTORIAL).read_text()).replace("@text@", program)
        for key, value in {"api": api, "calls": files[0], "program": files[1], "language": language}.items():
            text = text.replace(f"@{key}@", value)
        write_markdown(f"docs/site/tutorial-{name}.md", text, TUTORIAL)


# ---- References ----

def manual_pages() -> None:
    """mandoc makes HTML of them. The page of each API lists them."""
    pages, names = {}, {}  # by path; by name and section
    for path in sorted(ROOT.glob("*/man/*.[1-9]*")) + sorted(ROOT.glob("api/*/man/*.[1-9]*")):
        head = path.read_text().split(".Sh DESCRIPTION")[0]
        pages[path] = re.findall(r"^\.Nm (\S+)", head.split(".Sh SYNOPSIS")[0], re.M), re.search(r"\.Nd (.*)", head)[1]
        names.update({f"{name}{path.suffix}": path.name for name in (path.stem, *pages[path][0])})
    (WORK / "manual.txt").write_text("".join(f"{name.rpartition('.')[0]} man/{page}\n" for name, page in names.items()
                                             if re.search(r"\.[13]\w*$", name)))
    for path in pages:
        page = run("mandoc", "-T", "html", "-O", "fragment,man=%N.%S", str(path))
        for pattern, replacement in (
                (r'(?s)<table class="(?:head|foot)">.*?</table>', ""), (r"<(/?)h2", r"<\1h3"), (r"<(/?)h1", r"<\1h2"),
                (r'(?s)<a class="Xr" href="([^"]*)"[^>]*>(.*?)</a>', lambda link: f'<a href="{names[link[1]]}.html">'
                 f"{link[2]}</a>" if link[1] in names else link[2]),
                (r'<a class="In">([^<]*)</a>', lambda link: f'<a href="../{HEADERS[link[1]]}.html">{link[1]}</a>'
                 if link[1] in HEADERS else link[1])):
            page = re.sub(pattern, replacement, page)
        write(f"man/{path.name}.html", page)
        write(f"man/{path.name}.rst", section(f"{path.stem}({path.suffix[1:]})", "=", ".. raw:: html",
                                              f"   :file: {path.name}.html"))
    for name, (title, folder) in MANUALS.items():
        group = [path for path in pages if path.match(f"{folder}/man/*")]
        rows = [f"| [{', '.join(pages[path][0])}]({path.name}.rst) | {path.suffix[1:]} | {pages[path][1]} |"
                for path in group]
        entries = [f"{path.stem} </man/{path.name}>" for path in group]
        write(f"man/{name}.md", "\n".join([f"# {title}: manual pages", "", "| name | section | what |", "|---|---|---|",
                                           *rows, "", toctree(entries, ":hidden:")]))


def cpp_reference() -> None:
    """A page for each header, from what Doxygen found in it."""
    shutil.rmtree(XML, ignore_errors=True)
    XML.mkdir(parents=True)
    run("doxygen", "docs/site/Doxyfile")
    namespace = tree.parse(XML / "namespaceviaduct.xml")
    files = [XML / f"{inner.get('refid')}.xml" for inner in namespace.iter("innerclass")]
    classes = []
    for file in files:
        found = tree.parse(file)
        classes += [entry for entry in found.iter("compounddef") if entry.find("location").get("bodyend") != "-1"]
        for part in found.iter("sectiondef"):  # breathe cannot show unions without a name, and shows their members
            for member in part.findall("memberdef"):
                if member.findtext("type", "").startswith("union"):
                    part.remove(member)
        found.write(file)
    found = [(entry.find("location"), entry.findtext("compoundname") or
              entry.findtext("qualifiedname") + (entry.findtext("argsstring") or ""), entry.get("kind"))
             for entry in (*classes, *namespace.iter("memberdef"))]
    for header in sorted((ROOT / "core/include/viaduct").glob("*.hpp")):
        name = f"viaduct/{header.name}"
        about = re.match(r"// SPDX.*\n((?://.*\n)*)", header.read_text())[1]
        text = section(name, "=", re.sub(r"(?m)^// ?", "", about))
        for place, entity, kind in sorted(found, key=lambda entry: int(entry[0].get("line"))):
            title = entity.split("(")[0].removeprefix("viaduct::")
            if place.get("file") == name and "::" not in title:
                members = ["   :members:"] if kind in ("class", "struct") else []
                text += section(title, "-", f".. doxygen{kind}:: {entity}", *members)
        write(f"core/include/{name}.rst", text)


def python_reference() -> None:
    sys.path.insert(0, str(ROOT / "build/release/bindings/python"))
    for package in ("", ".core", ".vipl", ".dat", ".dat.constants", ".rpma", ".pytest_plugin"):
        name = f"viaduct{package}"
        module = importlib.import_module(name)
        text = section(name, "=", f".. automodule:: {name}", "   :no-members:")
        own = [entity for entity, value in vars(module).items() if getattr(value, "__module__", "") == name]
        for entity in getattr(module, "__all__", [entity for entity in own if not entity.startswith("_")]):
            value = getattr(module, entity)
            kind = "class" if inspect.isclass(value) else "function" if callable(value) else "data"
            text += section(entity, "-", f".. auto{kind}:: {name}.{entity}")
        write(f"python/{name}.rst", text)


def main() -> int:
    start = time.monotonic()
    for page in MARKDOWN:
        navigation = "\n" + (ROOT / NAVIGATION).read_text() if page == "README.md" else ""
        write_markdown(page_of(page), (ROOT / page).read_text() + navigation, page)
    tutorials()
    manual_pages()
    cpp_reference()
    python_reference()
    for header in HEADERS.values():
        page_of(header)
    for file in PAGES.rglob("*"):
        if file.is_file() and file not in written:
            file.unlink()
    made = SITE / "index.html"
    changed = not made.exists() or any(file.stat().st_mtime > made.stat().st_mtime
                                       for file in (ROOT / "docs/site").rglob("*.*"))
    os.environ["PYTHONWARNINGS"] = "ignore"  # breathe uses what newer versions of Sphinx announce to drop
    run(sys.executable, "-m", "sphinx", "-b", "html", "-j", "auto", "-q", "-W", "--keep-going",
        "-c", "docs/site", "-d", str(WORK / "doctrees"), *["-E", "-a"] * changed, str(PAGES), str(SITE))
    # Debian 12's furo loads a file of another package from the web server.
    style, shared = SITE / "_static/styles/furo.css", "/javascript/normalize.css/normalize.css"
    if f"@import url({shared});" in style.read_text():
        reset = pathlib.Path(f"/usr/share{shared}").read_text()
        style.write_text(style.read_text().replace(f"@import url({shared});", reset))
    links, problems = check.check(SITE)
    print("\n".join(problems) or f"{len(list(SITE.rglob('*.html')))} pages, {links} links between them, in "
                                 f"{time.monotonic() - start:.0f} s: {(SITE / 'index.html').relative_to(ROOT)}")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
