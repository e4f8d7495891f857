#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes the tables of docs/migration from mapping.json."""
import argparse
import json
import pathlib
import sys
import textwrap

HERE = pathlib.Path(__file__).resolve().parent
PAGES = HERE.parents[1] / "docs/migration"
APIS = {"vipl": "VIPL", "dat": "DAT", "rpma": "librpma", "core": "core; Python"}
HOW = {"one-to-one": "", "pattern": "≈ ", "by-hand": "✗ "}
MARKS = ("≈: several calls or arguments take the place of one, or one goes away. ✗: there is no counterpart, or the "
         "design of the program has to change. No mark: one replaces the other.")
ORIGIN = "<!-- Written by tools/port/pages.py from tools/port/mapping.json. -->"
# The pages of entries: their kinds, a title and what to know before.
ENTRIES = {
    "calls": (("function",), "Calls", "The functions of each API, by purpose."),
    "types": (("type", "constants"), "Types and constants", "The types of each API, and constants that are no error, "
              "status or event."),
    "states": (("state",), "States", "The states of endpoints. librpma has no states that a program can query: "
               "requests, connections and the events of their end take their place. "
               "[state-machine.md](../state-machine.md) has all transitions."),
    "events": (("event",), "Events", "What is reported without a call, or later than the call that caused it. VIPL has "
               "few events, because its calls wait and return the outcome."),
    "errors": (("error", "status"), "Errors", "Codes that calls return, and the results of operations."),
}
TABLES = {"attributes": "attributes.md", "limits": "limits.md", "keys": "keys.md", "posting": "posting.md"}


def row(*cells):
    return "| " + " | ".join(cells) + " |"


def header(*titles):
    return [row(*titles), row(*("---" for _ in titles)).replace(" ", "")]


def code(name):
    return f"`{name}`"


def cell(counterpart):
    """What a name becomes in one API."""
    text = ", ".join(map(code, counterpart["names"]))
    if counterpart.get("python"):
        text += ("; " if text else "Python: ") + ", ".join(map(code, counterpart["python"]))
    note = counterpart.get("note", "")
    return HOW[counterpart["how"]] + (f"{text}. {note}" if text and note else text or note)


def name_of(entry):
    """The name of an entry with those that it stands for, unless they are many."""
    members = entry.get("members", [])
    names = [entry["name"], *members] if len(members) <= 8 else [entry["name"]]
    text = ", ".join(map(code, names))
    if len(members) > 8:
        text += f" and {len(members)} more names"
    notes = [entry.get("note", ""), f"DAT 1.2: {entry['dat_1_2']}" if "dat_1_2" in entry else ""]
    return "<br>".join([text, *filter(None, notes)])


def entry_table(api, entries):
    others = [other for other in APIS if other != api]
    lines = header(APIS[api], *(APIS[other] for other in others))
    return lines + [row(name_of(entry), *(cell(entry["to"][other]) for other in others)) for entry in entries]


def aspect_table(topic):
    """What a topic says of each API, by aspect."""
    aspects = [aspect for aspect in ("ownership", "blocking", "time", "order", "threads", "errors")
               if any(aspect in topic[api] for api in APIS)]
    if not aspects:
        return []
    return header("", *APIS.values()) + [row(aspect, *(topic[api].get(aspect, "") for api in APIS))
                                         for aspect in aspects] + [""]


def start_of_page(title, text):
    return [f"# {title}", "", ORIGIN, "", *textwrap.wrap(text, 120), ""]


def entry_page(data, kinds, title, text):
    lines = start_of_page(title, f"{text} {MARKS}")
    for name, topic in data["topics"].items():
        found = {api: [entry for entry in data["entries"][api] if entry["topic"] == name and entry["kind"] in kinds]
                 for api in ("vipl", "dat", "rpma")}
        if not any(found.values()):
            continue
        lines += [f"## {topic['title']}", "", *(aspect_table(topic) if "function" in kinds else [])]
        for api, entries in found.items():
            if entries:
                lines += [*entry_table(api, entries), ""]
    return lines


def limit_table(rows):
    lines = header("", "loopback", "tcp", *(f"above it: {title}" for title in ("VIPL", "DAT", "librpma", "core")))
    return lines + [row(limit["about"], *(f"{limit[backend]:,}" for backend in ("loopback", "tcp")),
                        *(limit[api] for api in APIS)) for limit in rows]


def table_page(table):
    lines = start_of_page(table["title"], table["text"])
    if "rows" in table:
        return lines + limit_table(table["rows"])
    for part in table["parts"]:
        lines += [f"## {part['title']}", "", *header("", "VIPL", "DAT", "librpma", "core")]
        lines += [row(line["about"], *(line[api] for api in APIS)) for line in part["rows"]] + [""]
    return lines


def pages():
    data = json.loads((HERE / "mapping.json").read_text())
    written = {f"{name}.md": entry_page(data, *about) for name, about in ENTRIES.items()}
    written |= {page: table_page(data["tables"][name]) for name, page in TABLES.items()}
    return {PAGES / name: "\n".join(lines).rstrip("\n") + "\n" for name, lines in written.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare the pages with what would be written")
    check = parser.parse_args().check
    stale = 0
    for path, text in pages().items():
        if path.exists() and path.read_text() == text:
            continue
        stale += 1
        if check:
            print(f"{path.name} is not what tools/port/pages.py writes; run it")
        else:
            path.write_text(text)
    return int(check and stale > 0)


if __name__ == "__main__":
    sys.exit(main())
