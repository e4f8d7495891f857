# SPDX-License-Identifier: BSD-3-Clause
"""What each end should be told (expected.json), and the page that shows it.

The words are those of the specifications: they depend on the end's own API, unless an exception names both ends or a
backend. Later exceptions replace earlier ones, but those of which it says "sometimes" are alternatives.
"""
import difflib
import json
import pathlib
import re
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/migration/pairs.md"
APIS = {"vipl": "VIPL", "dat": "DAT", "rpma": "librpma"}
BACKENDS = {"verbs": "Over RDMA devices", "tcp": "Over TCP"}

with open(pathlib.Path(__file__).with_name("expected.json"), encoding="utf-8") as file:
    EXPECTED = json.load(file)


def exceptions(name, client, server, backend):
    """Those of a pair on a backend."""
    ends = {"client": client, "server": server, "backend": backend}
    return [one for one in EXPECTED[name].get("exceptions", ())
            if all(one.get(key, value) == value for key, value in ends.items())]


def words(name, client, server, backend):
    """Returns the words of the client and of the server."""
    sides = {"client": EXPECTED[name]["client"][client], "server": EXPECTED[name]["server"][server]}
    for one in exceptions(name, client, server, backend):
        if not one.get("sometimes"):
            sides[one["side"]] = one["words"]
    return [sides["client"], sides["server"]]


def fit(name, client, server, backend, said):
    """Whether both ends said what they should, or what they sometimes say."""
    others = [(one["side"], one["words"])
              for one in exceptions(name, client, server, backend) if one.get("sometimes")]
    return all(heard == expected or (side, heard) in others
               for side, heard, expected in zip(("client", "server"), said, words(name, client, server, backend)))


# ---- The page --------------------------------------------------------------------------------------------------------

INTRODUCTION = """\
# Pairs of APIs

<!-- Written by tests/matrix/pairs.py from tests/matrix/expected.json, which the tests compare with what happens. -->

A client of each API can connect to a server of each API. These tables show the results that both ends get in each
situation, in the terms of their API: results of calls, events, and statuses of completions. `./dev test matrix` checks
them on loopback and over TCP, `./dev test guest` over RDMA devices. [ADR 27](../adr/0027-levels-that-join.md) says
which reliability levels join.

In each table, a row is the API of the client, and a column that of the server. The first line of a cell is the result
of the client, the second line that of the server. Unless a section says otherwise, VIs have Reliable Delivery. `0` is
the result of a librpma call; as a request, that of `rpma_ep_next_conn_req`.
"""


def code(word):
    """A word with its name of the API, if it has one, as code."""
    return re.sub(r"^[A-Z][A-Z_]+[A-Z]|^0$", lambda name: f"`{name.group()}`", word)


def wrapped(text, indent=""):
    return textwrap.fill(text, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def line(end_words):
    return ", ".join(code(word) for word in end_words) or "–"


def cell(name, situation, client, server):
    if not situation.applies(client, server):
        return "–"
    client_words, server_words = words(name, client, server, "loopback")
    return f"{line(client_words)}<br>{line(server_words)}"


def notes(name):
    """What is to be said below a table."""
    said = []
    for one in EXPECTED[name].get("exceptions", ()):
        if "backend" in one:
            who = f"the {APIS[one[one['side']]]} {one['side']}"
            gets = "sometimes gets" if one.get("sometimes") else "gets"
            said.append(f"{BACKENDS[one['backend']]}, {who} {gets} {line(one['words'])}"
                        f"{pair_of(one)}. {one['note']}")
        elif "note" in one:
            said.append(one["note"])
    said += EXPECTED[name].get("notes", ())
    if "without" in EXPECTED[name]:
        said.append(f"–: {EXPECTED[name]['without']}")
    return list(dict.fromkeys(said))


def pair_of(exception):
    other = "server" if exception["side"] == "client" else "client"
    return f" from a {APIS[exception[other]]} {other}" if other in exception else ""


def page():
    from situations import SITUATIONS
    parts = [INTRODUCTION]
    for name, situation in SITUATIONS.items():
        text = EXPECTED[name]
        rows = [f"| {APIS[client]} | " + " | ".join(cell(name, situation, client, server) for server in APIS) + " |"
                for client in APIS]
        parts.append("\n".join([f"## {text['title']}\n", wrapped(text["text"]) + "\n",
                                "| client | " + " | ".join(f"{api} server" for api in APIS.values()) + " |",
                                "|---|---|---|---|", *rows]) + "\n")
        if said := notes(name):
            parts.append("\n".join(wrapped(f"- {note}", "  ") for note in said) + "\n")
    return "\n".join(parts)


def check_page(write):
    text = page()
    if write:
        PAGE.parent.mkdir(exist_ok=True)
        PAGE.write_text(text, encoding="utf-8")
        return 0
    there = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    for difference in difflib.unified_diff(there.splitlines(), text.splitlines(), str(PAGE), "expected", lineterm=""):
        print(difference)
    return int(there != text)
