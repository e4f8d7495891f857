#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""abi_test.py CXX INCLUDE_DIRECTORY

Compares the dat2/*.h in INCLUDE_DIRECTORY with those of stock libdapl-dev: the same program, which prints the type of
every function, every value, every size and every offset that stock's headers have, is compiled against each of them and
must print the same. Where libdapl-dev is not installed there is nothing to compare: exit status 77.
"""
import difflib
import pathlib
import re
import subprocess
import sys
import tempfile

STOCK = pathlib.Path("/usr/include/dat2")
SKIPPED = 77
FEWEST_FACTS = 1390  # should the parsing below break, so few would be a lie

# Broken in stock's headers: it leads to a name that does not exist, or a space makes it no macro with arguments.
BROKEN = {"DAT_IA_FIELD_IA_MAX_DTO_PER_OP", "DAT_IA_HA_RELATED"}

# Names that a program cannot print, each with the reason.
NO_VALUE = {
    "DAT_API", "DAT_EXPORT", "IN", "OUT", "INOUT",  # expand to nothing
    "DAT_PROVIDER_INIT_FUNC_NAME", "DAT_PROVIDER_FINI_FUNC_NAME",  # names of functions of a provider
    "DAT_RMR_BIND_COMPLETION_STATUS",  # a type
    "DAT_OS_WAIT_PROXY_AGENT_NULL",  # a structure
    "max_mtu_size", "max_rdma_read_per_ep",  # members, see ALIASES
    "dat_ib_post_recv_ud", "dat_query_counters", "dat_print_counters",  # other names of calls
}
ALIASES = [("dat_ia_attr", "max_mtu_size"), ("dat_ia_attr", "max_rdma_read_per_ep")]


def without_comments(text):
    return re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.DOTALL).replace("\\\n", " ")


def stock_text():
    """What applies to Linux programs."""
    texts = {path.name: without_comments(path.read_text(encoding="latin-1")) for path in STOCK.glob("*.h")}
    platform = texts["dat_platform_specific.h"]
    start, end = platform.index("defined(__linux__)"), platform.index("defined(_MSC_VER)")
    texts["dat_platform_specific.h"] = platform[start:end]
    return "\n".join(texts[name] for name in sorted(texts))


def members(body):
    """The members of a structure, those of named inner unions as inner.member."""
    inner = re.search(r"\bunion\s*\{([^{}]*)\}\s*(\w*)\s*;", body)
    if inner:
        prefix = f"{inner[2]}." if inner[2] else ""
        own = [inner[2]] if inner[2] else []
        rest = body[:inner.start()] + body[inner.end():]
        return members(rest) + own + [prefix + name for name in members(inner[1])]
    return re.findall(r"(\w+)\s*(?:\[[^;]*\])?\s*;", body)


def structures(text):
    """Tag and members of each structure and union."""
    pattern = r"\b(?:struct|union)\s+(dat_\w+)\s*\{((?:[^{}]|\{[^{}]*\})*)\}"
    return {tag: members(body) for tag, body in re.findall(pattern, text)}


def facts_program(text):
    """A program about everything that stock's headers declare."""
    functions = sorted(set(re.findall(r"\bextern\s+DAT_RETURN\s+DAT_API\s+(dat_\w+)", text)))
    macros = set(re.findall(r"#define\s+(\w+)[ \t]+\S", text)) - NO_VALUE - BROKEN
    strings = {name for name in macros if re.search(rf'#define\s+{name}\s+"|#define\s+{name}\s+DAT_IB_ATTR', text)}
    enumerators = set()
    for body in re.findall(r"\benum\s+\w+\s*\{([^}]*)\}", text):
        body = re.sub(r"#[^\n]*", "", body)
        enumerators |= set(re.findall(r"(?:^|,)\s*(\w+)", body))
    types = set(re.findall(r"\btypedef\b[^;{}()]*?(\w+)\s*;", text)) | set(re.findall(r"\}\s*(DAT_\w+)\s*;", text))
    types |= set(re.findall(r"\btypedef\s+\w+\s*\(\s*(?:DAT_API\s*)?\*\s*(\w+)\s*\)", text))
    print_type = 'std::printf("{0}: %s %zu\\n", typeid({0}).name(), sizeof({0}));'
    lines = ["#include <netinet/in.h>", "#include <dat2/udat.h>", "#include <dat2/dat_registry.h>",
             "#include <dat2/dat_ib_extensions.h>",
             "#include <cstddef>", "#include <cstdio>", "#include <typeinfo>", "int main() {"]
    lines += [f'std::printf("{name}: %s\\n", typeid(decltype({name})).name());' for name in functions]
    lines += [f'std::printf("{name}: %lld\\n", (long long)({name}));'
              for name in sorted((macros | enumerators) - strings) if not name.startswith("_")]
    lines += [f'std::printf("{name}: %s\\n", {name});' for name in sorted(strings)]
    lines += [print_type.format(name) for name in sorted(types)]
    for tag, names in sorted(structures(text).items()):
        lines += [f'std::printf("{tag}.{name}: %zu %zu %s\\n", offsetof({tag}, {name}), sizeof({tag}::{name}), '
                  f'typeid(decltype({tag}::{name})).name());' for name in names if "." not in name]
        lines += [f'std::printf("{tag}.{name}: %zu\\n", offsetof({tag}, {name}));' for name in names if "." in name]
    lines += [f'std::printf("{tag}.{name}: %zu\\n", offsetof({tag}, {name}));' for tag, name in ALIASES]
    return "\n".join(lines) + "\n}\n"


def macro_functions(directory):
    """Names of macros that look like functions, with how many arguments they take."""
    text = "\n".join(without_comments(path.read_text(encoding="latin-1")) for path in directory.glob("*.h"))
    found = re.findall(r"#define\s+((?:dat|DAT)_\w+)\s?\(([\w\s,]*)\)\s*[(*d]", text)
    return {f"{name}/{len(arguments.split(','))}" for name, arguments in found}


def facts(compiler, program, directory, options):
    source, binary = pathlib.Path(directory, "facts.cpp"), pathlib.Path(directory, "facts")
    source.write_text(program, encoding="ascii")
    subprocess.run([compiler, "-std=gnu++17", "-w", *options, source, "-o", binary], check=True)
    return subprocess.run([binary], check=True, text=True, capture_output=True).stdout.splitlines()


def main():
    compiler, ours = sys.argv[1:]
    ours = pathlib.Path(ours)
    if not STOCK.exists() or ours == STOCK.parent:
        print("these headers are stock, or libdapl-dev is not installed: nothing to compare with")
        return SKIPPED
    program = facts_program(stock_text())
    with tempfile.TemporaryDirectory() as directory:
        stock = facts(compiler, program, directory, [])
        new = facts(compiler, program, directory, [f"-I{ours}"])
    differences = list(difflib.unified_diff(stock, new, "stock", "new", lineterm="", n=0))
    differences += [f"missing macro: {name}" for name in macro_functions(STOCK) - macro_functions(ours / "dat2")]
    for line in differences:
        print(line)
    print(f"{len(stock)} facts, {'different' if differences else 'the same'}")
    return bool(differences) or len(stock) < FEWEST_FACTS


sys.exit(main())
