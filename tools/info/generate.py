#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""generate.py CODES DIRECTORY: writes NAME_codes.cpp for each header that CODES names, with the function NAME_codes()
of errors.hpp. The headers of DAT 1.2 and 2.0 exclude each other.

CODES has the codes of each API, by their kind. A code has a meaning and a section, unless its kind has one; it may have
usual causes, a name if it is a number, and "only", the name of the header that has it if the other one does not. Before
sections comes the document, if the API has one."""
import argparse
import json
import pathlib


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("codes", type=pathlib.Path)
    parser.add_argument("directory", type=pathlib.Path)
    options = parser.parse_args()
    for api in json.loads(options.codes.read_text()).values():
        for name, header in api["headers"].items():
            lines = [f"// Generated from {options.codes.name} by generate.py.", f"#include <{header}>",
                     '#include "tools/info/errors.hpp"', "namespace viaduct::info {",
                     "constexpr Explanation codes[] = {"]
            for kind in api["kinds"]:
                for entry in kind["codes"]:
                    lines += explanation(name, api.get("document", ""), kind, **entry)
            lines += ["};", f"std::span<const Explanation> {name}_codes() noexcept {{ return codes; }}", "}", ""]
            (options.directory / f"{name}_codes.cpp").write_text("\n".join(lines))


def explanation(header, document, kind, *, code, meaning, causes="", section=None, name=None, only=None):
    """The initializer of a code, in a list that is empty if the header lacks the code."""
    words = name or code, kind["kind"], meaning, causes, document + (section or kind["section"])
    return [f"{{{code}, {', '.join(map(json.dumps, words))}}},"] if only in (None, header) else []


if __name__ == "__main__":
    main()
