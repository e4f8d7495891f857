#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks that the tables of vi-run's tracer have every call: test_trace_tables.py SOURCE_DIRECTORY. The compiler
compares the signatures with the headers."""
import pathlib
import re
import sys

SOURCE = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(SOURCE / "tools/run/trace"))
sys.dont_write_bytecode = True
import generate  # noqa: E402, from that directory

MAPS = {"vipl": "vipl/vipl.map", "dat2": "udat/registry/libdat2.map", "dat1": "udat/dat1/libdat.map",
        "rpma": "rpma/librpma.map"}
PREFIX = {"vipl": "Vip", "dat2": "dat_", "dat1": "dat_", "rpma": "rpma_"}
# Functions of providers, inline functions, and a type.
NO_CALLS = {"dat_provider_init", "dat_provider_fini", "dat_strerror_extension", "dat_strerror_ext_status",
            "rpma_log_function"}


def main():
    api = SOURCE / "api"
    includes = [api / "vipl/include", api / "udat/include", api / "rpma/include"]
    complaints = []
    for name, path in MAPS.items():
        table = generate.Table(SOURCE / f"tools/run/trace/{name}.json", includes, 0)
        exported = set(re.findall(r"^\s+(\w+);", (api / path).read_text(), re.M))
        declared = {function for function in table.headers.functions if function.startswith(PREFIX[name])} - NO_CALLS
        calls = set(table.calls)
        for what, difference in (("not exported", calls - exported), ("not in the table", exported - calls),
                                 ("declared and not in the table", declared - calls)):
            complaints += [f"{name}: {call} is {what}" for call in sorted(difference)]
    print("\n".join(complaints) or "ok")
    sys.exit(1 if complaints else 0)


if __name__ == "__main__":
    main()
