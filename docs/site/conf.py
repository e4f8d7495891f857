# SPDX-License-Identifier: BSD-3-Clause
"""The configuration of Sphinx for the documentation site. build.py writes the pages that it reads, and calls it."""
import enum
import pathlib
import re
import sys
import textwrap

from docutils import nodes

ROOT = pathlib.Path(__file__).resolve().parents[2]
SITE = ROOT / "build/site"
sys.path.insert(0, str(ROOT / "build/release/bindings/python"))

project = "Viaduct"
version = release = re.search(r"^project\(Viaduct VERSION ([0-9.]*)", (ROOT / "CMakeLists.txt").read_text(), re.M)[1]
extensions = ["myst_parser", "sphinx.ext.autodoc", "breathe"]
suppress_warnings = ["myst.header"]  # a title that is followed by headings of a lower level
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
highlight_language = "none"
myst_heading_anchors = 6
smartquotes = False

html_theme = "furo"
html_title = f"Viaduct {version}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = ["filter.js"]
html_copy_source = html_show_sourcelink = html_show_copyright = False

breathe_default_members = ("members", "undoc-members")
breathe_projects = {"viaduct": str(SITE / "doxygen/xml")}
breathe_default_project = "viaduct"
toc_object_entries = False  # build.py gives each class a heading
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_default_options = {"members": True, "undoc-members": True}

# The page of each call that has a manual page.
MANUAL = dict(line.split() for line in (SITE / "manual.txt").read_text().splitlines())


def plain_to_rst(_app, _what, _name, _object, _options, lines):
    """Docstrings are plain text: indented lines are verbatim, and words in backticks are code."""
    blocks = re.split(r"(?m)^((?:    .*(?:\n|$)|\n(?=    ))+)", textwrap.dedent("\n".join(lines)) + "\n")
    for i, block in enumerate(blocks):
        if i % 2 == 0:
            blocks[i] = re.sub(r"([*|]|_\b)", r"\\\1", re.sub(r"`([^`]+)`", "\0\\1\0", block)).replace("\0", "``")
            blocks[i] = re.sub(r"(?m)^  (\w.*?)  +(?=\S)", r"| **\1** ", blocks[i])
        else:
            blocks[i] = f"\n::\n\n{block}\n"
    lines[:] = "".join(blocks).splitlines()


def without_signature(_app, what, _name, entity, _options, signature, returned):
    """Enumerations are not called."""
    return ("", None) if what == "class" and issubclass(entity, enum.Enum) else (signature, returned)


def link_calls(app, doctree, docname):
    """Makes names of calls in the text links to their manual pages."""
    for literal in list(doctree.findall(nodes.literal)):
        target = MANUAL.get(literal.astext().removesuffix("()"))
        if target and target != docname and not isinstance(literal.parent, (nodes.reference, nodes.title)):
            link = nodes.reference("", "", internal=True, refuri=app.builder.get_relative_uri(docname, target))
            literal.replace_self(link)
            link += literal


def setup(app):
    app.connect("autodoc-process-docstring", plain_to_rst)
    app.connect("autodoc-process-signature", without_signature)
    app.connect("doctree-resolved", link_calls)
