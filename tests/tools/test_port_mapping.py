#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks tools/port/mapping.json against the public headers: test_port_mapping.py SOURCE_DIRECTORY VI_INFO [MAPPING]

Every name that a header declares must have an entry, every member of a structure of attributes a row in a table, and
every name in the file must exist. The limits must be those that vi-info prints.
"""
import collections
import json
import pathlib
import os
import re
import subprocess
import sys

ROOT = pathlib.Path(sys.argv[1])
VI_INFO = sys.argv[2]
MAPPING = pathlib.Path(sys.argv[3] if len(sys.argv) > 3 else ROOT / "tools/port/mapping.json")
TRACE = ROOT / "tools/run/trace"
INCLUDES = [ROOT / "api" / api / "include" for api in ("vipl", "udat", "rpma")]
APIS = "vipl", "dat", "rpma"
HOW = "one-to-one", "pattern", "by-hand"
KINDS = "function", "type", "constants", "state", "event", "error", "status"
ASPECTS = {"ownership", "blocking", "time", "order", "threads", "errors"}
GUARD = re.compile(r"_H$|^_VIPL_$")
sys.path.insert(0, str(TRACE))
sys.dont_write_bytecode = True
import generate  # noqa: E402, from that directory

# The structures whose members the table of attributes must name, by the column, and setters that count as members.
ATTRIBUTES = {
    "vipl": ("api/vipl/include/vipl.h", ("VIP_NIC_ATTRIBUTES", "VIP_VI_ATTRIBUTES")),
    "dat": ("api/udat/include/dat2/*.h", ("dat_ia_attr", "dat_ep_attr")),
    "core": ("core/include/viaduct/*.hpp", ("DeviceAttributes", "EndpointAttributes", "EndpointConfig")),
}
SETTERS = re.compile(r"\b(rpma_\w*cfg_set_\w+)\(")


class Header:
    """The names that some headers declare, and the parameters of their functions."""

    def __init__(self, *paths):
        self.names, self.prototypes = set(), {}
        for path in paths:
            self.read(path.read_text())

    def read(self, text):
        text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.S).replace("\\\n", " ")
        self.names |= {name for name in re.findall(r"^\s*#\s*define\s+(\w+)", text, re.M) if not GUARD.search(name)}
        text = re.sub(r"^\s*#.*", "", text, flags=re.M)
        text = re.sub(r'extern "C" \{|VIPL_EXTENSION|DAT_API', "", text)
        self.names |= set(re.findall(r"\b(?:struct|union|enum)\s+(\w+)\s*[{;]", text))
        for values in re.findall(r"\benum\b[^{;]*\{([^}]*)\}", text):
            self.names |= set(re.findall(r"(\w+)\s*(?:=[^,]*)?(?:,|$)", values))
        nested = None
        while nested != text:
            nested, text = text, re.sub(r"(\)?)\s*\{[^{}]*\}", lambda body: ");" if body[1] else " ", text)
        self.read_declarations(text)

    def read_declarations(self, text):
        for declaration in (" ".join(part.split()) for part in text.split(";")):
            if declaration.startswith("typedef"):
                name = re.search(r"\(\s*\*\s*(\w+)\)", declaration) or re.match(r"typedef void (\w+)\(", declaration)
                self.names.add((name or re.search(r"(\w+)$", declaration)).group(1))
            elif function := re.search(r"\b(\w+)\s*\((.*)\)", declaration):
                self.names.add(function.group(1))
                self.prototypes[function.group(1)] = function.group(2).count(",")


def headers():
    include = ROOT / "api"
    found = {
        "vipl": Header(include / "vipl/include/vipl.h"),
        "rpma": Header(include / "rpma/include/librpma.h", include / "rpma/include/viaduct/ibv_types.h"),
        "dat2": Header(*sorted((include / "udat/include/dat2").glob("*.h"))),
        "dat1": Header(*sorted((include / "udat/include/dat").glob("*.h"))),
    }
    for api, least in ("vipl", 46), ("rpma", 84), ("dat2", 82), ("dat1", 72):  # the parser must not miss all of them
        assert len(found[api].prototypes) >= least, f"{api}: {len(found[api].prototypes)} functions"
    return found


def words_of(*patterns):
    return " ".join(path.read_text() for pattern in patterns for path in sorted(ROOT.glob(pattern)))


def names_of(entry):
    return [entry["name"], *entry.get("members", [])]


def members_of(structure, text):
    """Of `struct NAME {...}` or `typedef struct {...} NAME`, without functions."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.S)
    body = re.search(rf"\bstruct {structure} \{{(.*?)\n\}}", text, re.S) or \
        re.search(rf"typedef struct \{{([^}}]*)\}} {structure};", text)
    declarations = [re.split("[={]", part)[0] for part in body.group(1).split(";") if part.strip() and "(" not in part]
    names = [re.search(r"(\w+)\W*(?:\[\w+\])?\s*$", declaration).group(1) for declaration in declarations]
    return [name for name in names if name != "attributes"]  # which has rows of its own


def limits_of(backend):
    environment = os.environ | {"VIADUCT_BACKEND": backend}
    output = subprocess.check_output([VI_INFO, "--json", "viaduct-lo"], env=environment, timeout=60)
    return json.loads(output)["limits"]


class Mapping:
    def __init__(self):
        data = json.loads(MAPPING.read_text())
        self.topics, self.entries, self.apis = data["topics"], data["entries"], data["apis"]
        self.traced_as = data["traced_as"]
        self.tables = data["tables"]
        self.headers = headers()
        self.declared = {api: self.headers[api].names for api in ("vipl", "rpma")}
        self.declared["dat"] = self.headers["dat1"].names | self.headers["dat2"].names
        self.labels = {api: {entry["name"] for entry in self.entries[api]} for api in APIS}
        self.core = set(re.findall(r"\w+", words_of("core/include/viaduct/*.hpp")))
        python = words_of("bindings/python/viaduct/core/*.py", "bindings/python/viaduct/_lifetime.py")
        self.python = set(re.findall(r"(?:class|def) (\w+)", python)) | set(re.findall(r"^\s*(\w+) = ", python, re.M))
        # The enumerations of viaduct.core and their members are made from those of the core.
        self.python |= set(re.findall(r'\("(\w+)"', words_of("bindings/python/enumerations/core.py")))
        self.python |= {re.sub("(?<=[a-z])(?=[A-Z])", "_", word).upper() for word in self.core}

    def faults(self):
        for api in APIS:
            yield from self.faults_of_names(api)
            for entry in self.entries[api]:
                for fault in self.faults_of_entry(api, entry):
                    yield f"{api}: {entry['name']}: {fault}"
        yield from self.faults_of_topics()
        yield from self.faults_of_traces()
        yield from self.faults_of_tables()
        yield from self.faults_of_attributes()
        yield from self.faults_of_limits()

    def rows(self):
        for table in self.tables.values():
            for part in table.get("parts", [table]):
                yield from part["rows"]

    def faults_of_tables(self):
        """Every row has a cell for each API, and every name in it exists."""
        known = set().union(*self.declared.values())
        for row in self.rows():
            for api in self.apis:
                for text in re.findall(r"`([^`]+)`", row[api]):
                    exists = True
                    if re.match(r"(Vip|VIP_|dat_|DAT_|rpma_|RPMA_|IBV_)", text):
                        exists = text in known
                    elif re.match(r"[A-Z]\w*::\w+$", text):
                        exists = set(text.split("::")) <= self.core
                    if not exists:
                        yield f"{row['about']}: {api}: {text} does not exist"

    def faults_of_attributes(self):
        named = {api: " ".join(row[api] for part in self.tables["attributes"]["parts"] for row in part["rows"])
                 for api in self.apis}
        wanted = {("rpma", name) for name in SETTERS.findall(words_of("api/rpma/include/librpma.h"))}
        for api, (pattern, structures) in ATTRIBUTES.items():
            for structure in structures:
                members = members_of(structure, words_of(pattern))
                assert len(members) > 3, f"{structure}: {members}"
                wanted |= {(api, member) for member in members}
        for api, name in sorted(wanted):
            if not re.search(rf"\b{name}\b", named[api]):
                yield f"attributes: {api}: {name} is in no row"

    def faults_of_limits(self):
        for backend in "loopback", "tcp":
            actual = limits_of(backend)
            for row in self.tables["limits"]["rows"]:
                if row[backend] != actual[row["limit"]]:
                    yield f"limits: {row['limit']} of {backend} is {actual[row['limit']]}, not {row[backend]}"

    def faults_of_names(self, api):
        listed = collections.Counter(name for entry in self.entries[api] for name in names_of(entry))
        for name in sorted(self.declared[api] - set(listed)):
            yield f"{api}: {name} has no entry"
        for name, count in listed.items():
            if count > 1:
                yield f"{api}: {name} is in {count} entries"

    def faults_of_entry(self, api, entry):
        label = entry["name"] not in self.declared[api]
        if label and "members" not in entry:
            yield "does not exist"
        for name in entry.get("members", []):
            if name not in self.declared[api]:
                yield f"its member {name} does not exist"
        if entry["kind"] not in KINDS:
            yield f"unknown kind {entry['kind']}"
        if entry["topic"] not in self.topics:
            yield f"unknown topic {entry['topic']}"
        if set(entry["to"]) != {*APIS, "core"} - {api}:
            yield f"its targets are {sorted(entry['to'])}"
        for target, counterpart in entry["to"].items():
            yield from self.faults_of_counterpart(target, counterpart)
        yield from self.faults_of_version(api, entry)

    def faults_of_counterpart(self, target, counterpart):
        if counterpart["how"] not in HOW:
            yield f"to {target}: unknown kind of mapping {counterpart['how']}"
        if not counterpart["names"] and not counterpart.get("python") and "note" not in counterpart:
            yield f"to {target}: neither a name nor a note"
        for name in counterpart["names"]:
            if target == "core":
                exists = set(name.split("::")) <= self.core
            else:
                exists = name in self.declared[target] | self.labels[target]
            if not exists:
                yield f"to {target}: {name} does not exist"
        if "rewrite" in counterpart:
            yield from self.faults_of_rule(target, counterpart)
        for name in counterpart.get("python", []):
            if not set(name.split(".")) <= self.python:
                yield f"to Python: {name} does not exist"

    def faults_of_rule(self, target, counterpart):
        rule = counterpart["rewrite"]
        if counterpart["how"] != "one-to-one":
            yield f"to {target}: it is rewritten, but not one to one"
        for name in re.findall(r"\b(?:Vip|VIP|dat|DAT|rpma|ibv)\w+", json.dumps([rule["to"], rule.get("calls")])):
            if not any(name in declared for declared in self.declared.values()):
                yield f"to {target}: it is rewritten to {name}, which does not exist"

    def faults_of_version(self, api, entry):
        """Functions that DAT 1.2 lacks or declares with other parameters need a remark."""
        new, old = self.headers["dat2"].prototypes, self.headers["dat1"].prototypes
        for name in names_of(entry) if api == "dat" else []:
            if name in new and new[name] != old.get(name) and "dat_1_2" not in entry:
                yield f"{name} differs in DAT 1.2, and nothing says so"

    def faults_of_topics(self):
        used = {entry["topic"] for api in APIS for entry in self.entries[api]}
        for name, topic in self.topics.items():
            if name not in used:
                yield f"topic {name} has no entry"
            for api in self.apis:
                for aspect in set(topic[api]) - ASPECTS:
                    yield f"topic {name}: unknown aspect {aspect}"

    def faults_of_traces(self):
        """Functions that no trace shows under their name are macros or inline functions."""
        traced = {name for path in sorted(TRACE.glob("*.json")) for name in generate.Table(path, INCLUDES, 0).calls}
        macros = macro_calls(words_of("api/udat/include/*/*.h"))
        for name in {name for header in self.headers.values() for name in header.prototypes} | set(macros):
            if name not in traced and name not in self.traced_as:
                yield f"{name} is in no trace, and traced_as lacks it"
        for name, shown in self.traced_as.items():
            if shown != macros.get(name, ""):
                yield f"{name} is traced as {macros.get(name, '')}, not {shown}"


def macro_calls(text):
    """The functions that macros of DAT call, with the operation of dat_extension_op."""
    text, macros = text.replace("\\\n", " "), {}
    for name, parameters, body in re.findall(r"^#define (dat_\w+)(\(?)(.*)", text, re.M):
        called = re.search(r"\b(dat_\w+)\(" if parameters else r"(dat_\w+)", body)
        operation = re.search(r"DAT_IB_\w+?_OP\b", body)
        if called:
            macros[name] = f"dat_extension_op({operation[0]})" if operation else called[1]
    return {name: macros.get(called, called) for name, called in macros.items()}


def main():
    faults = list(Mapping().faults())
    print("\n".join(faults) if faults else "every name has an entry, and every entry exists")
    return 1 if faults else 0


sys.exit(main())
