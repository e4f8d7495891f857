#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks that the pages point at things that exist, and that docs/thread-safety.md has a row for each call of vipl.h."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]


def broken_links() -> list[str]:
    problems = []
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text()):
            if "://" not in target and not (page.parent / target).exists():
                problems.append(f"{page.relative_to(ROOT)}: {target} does not exist")
    return problems


def thread_safety_gaps() -> list[str]:
    header = (ROOT / "api/vipl/include/vipl.h").read_text()
    declared = sorted(re.findall(r"^extern \w+ (Vip\w+)\(", header, re.MULTILINE))
    table = (ROOT / "docs/thread-safety.md").read_text()
    rows = sorted(re.findall(r"^\| `(Vip\w+)` \|", table, re.MULTILINE))
    return [] if declared == rows else [f"docs/thread-safety.md: rows and calls differ: {set(declared) ^ set(rows)}"]


if __name__ == "__main__":
    found = broken_links() + thread_safety_gaps()
    print("\n".join(found))
    sys.exit(bool(found))
