#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks that links in the pages are valid and that there are no merge markers, that README.md contains the program
tests/installed/core.cpp, that docs/thread-safety.md has a row for each call of vipl.h, dat2/*.h and librpma.h,
possibly as a pattern such as `rpma_log_*`, that docs/migration/traps.md has each warning of vi-port, that the
examples of all APIs have the same functions in the same order, and that the site shows each page."""

import fnmatch
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = [*ROOT.glob("*.md"), *(page for folder in ("docs", "examples", "tests")
                               for page in (ROOT / folder).rglob("*.md"))]
# Of each end.h, end.hpp and end.py; they may have more. Python opens devices and registers memory in End.
STEPS = ["open_device", "register_memory", "create_endpoint", "post_receive", "connect_to", "accept_request",
         "accept_client", "send_message", "wait_receive", "register_shared", "learn_key", "rdma_read", "rdma_write",
         "flush", "wait_disconnect", "disconnect", "close_device", "serve_clients"]


def anchors(page: pathlib.Path) -> set[str]:
    """The names by which links refer to the headings of a page."""
    headings = re.findall(r"(?m)^#+ (.*)$", page.read_text())
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links() -> list[str]:
    problems = []
    for page in PAGES:
        for target in re.findall(r"\]\(([^)\s]+)[^)]*\)", page.read_text()):
            if "://" in target:
                continue
            name, _, anchor = target.partition("#")
            there = page.parent / name if name else page
            if not there.exists():
                problems.append(f"{page.relative_to(ROOT)}: {target} does not exist")
            elif anchor and there.suffix == ".md" and anchor not in anchors(there):
                problems.append(f"{page.relative_to(ROOT)}: {name or 'the page'} has no heading #{anchor}")
    return problems


def unfinished_merges() -> list[str]:
    marker = re.compile(r"^(<{7}|>{7}) ", re.MULTILINE)
    return [f"{page.relative_to(ROOT)}: a merge is not finished" for page in PAGES if marker.search(page.read_text())]


def stale_examples() -> list[str]:
    """The programs without their first line, the license."""
    problems = []
    for page, file in ("README.md", "core.cpp"), ("docs/cpp.md", "core_poll.cpp"):
        program = (ROOT / "tests/installed" / file).read_text().split("\n", 1)[1]
        if f"```cpp\n{program}```\n" not in (ROOT / page).read_text():
            problems.append(f"{page}: its program in C++ is not that of tests/installed/{file}")
    return problems


def vipl_gaps(table: str) -> set[str]:
    header = (ROOT / "api/vipl/include/vipl.h").read_text()
    declared = re.findall(r"^extern \w+ (Vip\w+)\(", header, re.MULTILINE)
    rows = re.findall(r"^\| `(Vip\w+)` \|", table, re.MULTILINE)
    return set(declared) ^ set(rows)


def pattern_gaps(table: str, prefix: str, declared: set[str]) -> set[str]:
    """From rows that name several calls, possibly as patterns."""
    cells = re.findall(rf"^\| (`{prefix}_[^|]*)\|", table, re.MULTILINE)
    patterns = re.findall(rf"`({prefix}_[\w*]+)`", " ".join(cells))
    idle = {pattern for pattern in patterns if not fnmatch.filter(declared, pattern)}
    return idle | {name for name in declared if not any(fnmatch.fnmatch(name, pattern) for pattern in patterns)}


def rpma_gaps(table: str) -> set[str]:
    header = (ROOT / "api/rpma/include/librpma.h").read_text()
    return pattern_gaps(table, "rpma", set(re.findall(r"^(?:int|const char\*) (rpma_\w+)\(", header, re.MULTILINE)))


def dat_gaps(table: str) -> set[str]:
    headers = "".join(header.read_text() for header in sorted((ROOT / "api/udat/include/dat2").glob("*.h")))
    return pattern_gaps(table, "dat", set(re.findall(r"^DAT_RETURN DAT_API (dat_\w+)\(", headers, re.MULTILINE)))


def thread_safety_gaps() -> list[str]:
    table = (ROOT / "docs/thread-safety.md").read_text()
    gaps = vipl_gaps(table) | rpma_gaps(table) | dat_gaps(table)
    return [f"docs/thread-safety.md: rows and calls differ: {sorted(gaps)}"] if gaps else []


def missing_traps() -> list[str]:
    rules = re.findall(r'\{Rule::\w+, "([\w-]+)"', (ROOT / "tools/port/warnings.cpp").read_text())
    assert len(rules) > 5, rules
    traps = (ROOT / "docs/migration/traps.md").read_text()
    return [f"docs/migration/traps.md: nothing about `{rule}`" for rule in rules if f"`{rule}`" not in traps]


def unlike_examples() -> list[str]:
    problems = []
    for path in (ROOT / "examples").glob("*/end.*"):
        python = path.suffix == ".py"
        defined = re.findall(r"^ *(?:async )?def (\w+)\(" if python else r"^(?:static )?inline [^;=]*?(\w+)\(",
                             path.read_text(), re.MULTILINE)
        steps = STEPS[3:] if python else STEPS
        if [name for name in defined if name in steps] != steps:
            problems.append(f"{path.relative_to(ROOT)}: its functions are {defined}")
    return problems


def pages_off_the_site() -> list[str]:
    """./dev docs finds the others, which pages of the site include or list."""
    site = "".join(page.read_text() for page in (ROOT / "docs/site").glob("*.md"))
    pages = {str(page.relative_to(ROOT))[:-3] for page in (ROOT / "docs").glob("*.md")}
    return [f"docs/site: nothing leads to {page}.md" for page in sorted(pages) if page not in site]


if __name__ == "__main__":
    found = broken_links() + unfinished_merges() + stale_examples() + unlike_examples()
    found += thread_safety_gaps() + missing_traps() + pages_off_the_site()
    print("\n".join(found))
    sys.exit(bool(found))
