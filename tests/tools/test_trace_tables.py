#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks that the tables of vi-run's tracer have every call: test_trace_tables.py SOURCE_DIRECTORY. The compiler
compares the signatures with the headers."""
import pathlib
import sys

SOURCE = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(SOURCE / "tools/run/trace"))
sys.dont_write_bytecode = True
import generate  # noqa: E402, from that directory

PREFIX = {"vipl": "Vip", "dat2": "dat_", "dat1": "dat_", "rpma": "rpma_"}
# Functions of providers, inline functions, and a type.
NO_CALLS = {"dat_provider_init", "dat_provider_fini", "dat_strerror_extension", "dat_strerror_ext_status",
            "rpma_log_function"}


def main():
    api = SOURCE / "api"
    includes = [api / "vipl/include", api / "udat/include", api / "rpma/include"]
    complaints = []
    for name, prefix in PREFIX.items():
        table = generate.Table(SOURCE / f"tools/run/trace/{name}.json", includes, 0)
        declared = {function for function in table.headers.functions if function.startswith(prefix)} - NO_CALLS
        complaints += [f"{name}: {call} is declared and not in the table" for call in sorted(declared - {*table.calls})]
    print("\n".join(complaints) or "ok")
    sys.exit(1 if complaints else 0)


if __name__ == "__main__":
    main()
