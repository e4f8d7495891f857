#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""abi_test.py CXX INCLUDE_DIRECTORY [--without-verbs]

Compares the librpma.h in INCLUDE_DIRECTORY with stock librpma's: the same program, which prints the type of every
function, every value and every offset, is compiled against each of them and must print the same. With --without-verbs
the new header is compiled where <infiniband/verbs.h> cannot be found, so that its own definitions are compared.
Where librpma-dev is not installed there is nothing to compare: exit status 77.
"""
import difflib
import os
import pathlib
import re
import subprocess
import sys
import tempfile

STOCK = pathlib.Path("/usr/include/librpma.h")
SKIPPED = 77

WC_MEMBERS = ("wr_id status opcode vendor_err byte_len imm_data invalidated_rkey qp_num src_qp wc_flags pkey_index slid"
              " sl dlid_path_bits")
VERBS = re.compile(r"\bIBV_(?:WC|ADVISE_MR)_[A-Z_0-9]+\b")


def without_comments(text):
    return re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.DOTALL)


def own_verbs(include_directory):
    """The definitions that stand in for <infiniband/verbs.h>."""
    return include_directory / "viaduct" / "ibv_types.h"


def facts_program(ours):
    """A program about everything that stock's header declares."""
    stock = without_comments(STOCK.read_text(encoding="utf-8"))
    functions = sorted(set(re.findall(r"\b(rpma_\w+)\s*\((?!\*)[^;]*?\);", stock)) - {"rpma_log_function"})
    values = sorted(set(re.findall(r"\bRPMA_[A-Z_0-9]+\b", stock)))
    verbs = sorted(set(VERBS.findall(without_comments(own_verbs(ours).read_text(encoding="utf-8")))))
    lines = ["#include <librpma.h>", "#include <cstddef>", "#include <cstdio>", "#include <typeinfo>", "int main() {"]
    lines += [f'std::printf("{name}: %s\\n", typeid(decltype({name})).name());' for name in functions]
    lines.append('std::printf("rpma_log_function: %s\\n", typeid(rpma_log_function).name());')
    lines += [f'std::printf("{name}: %lld\\n", (long long)({name}));' for name in values + verbs]
    lines += [f'std::printf("ibv_wc.{m}: %zu\\n", offsetof(ibv_wc, {m}));' for m in WC_MEMBERS.split()]
    lines += [f'std::printf("pdata.{m}: %zu\\n", offsetof(rpma_conn_private_data, {m}));' for m in ("ptr", "len")]
    lines += [f'std::printf("sizeof {t}: %zu\\n", sizeof({t}));' for t in ("ibv_wc", "rpma_conn_private_data")]
    return "\n".join(lines) + "\n}\n", len(functions)


def options_without_verbs(compiler, directory):
    """Every system directory as before, except that /usr/include has no infiniband/."""
    listing = subprocess.run([compiler, "-E", "-x", "c++", "-v", os.devnull], check=True, text=True,
                             capture_output=True).stderr
    paths = re.search(r"#include <\.\.\.> search starts here:\n(.*?)End of search list", listing, re.DOTALL).group(1)
    options = ["-nostdinc"]
    for path in map(pathlib.Path, paths.split()):
        if (path / "infiniband").exists():
            farm = pathlib.Path(directory, "include")
            farm.mkdir()
            for entry in path.iterdir():
                if entry.name != "infiniband":
                    (farm / entry.name).symlink_to(entry)
            path = farm
        options += ["-isystem", str(path)]
    return options


def facts(compiler, program, directory, options):
    source, binary = pathlib.Path(directory, "facts.cpp"), pathlib.Path(directory, "facts")
    source.write_text(program, encoding="ascii")
    subprocess.run([compiler, "-std=c++17", "-w", *options, source, "-o", binary], check=True)
    return subprocess.run([binary], check=True, text=True, capture_output=True).stdout.splitlines()


def main():
    compiler, ours, *rest = sys.argv[1:]
    ours = pathlib.Path(ours)
    if not STOCK.exists() or not own_verbs(ours).exists():
        print("this library is stock, or librpma-dev is not installed: nothing to compare with")
        return SKIPPED
    program, functions = facts_program(ours)
    with tempfile.TemporaryDirectory() as directory:
        stock = facts(compiler, program, directory, [])
        hidden = options_without_verbs(compiler, directory) if rest == ["--without-verbs"] else []
        new = facts(compiler, program, directory, [f"-I{ours}", *hidden])
    differences = list(difflib.unified_diff(stock, new, "stock", "new", lineterm="", n=0))
    for line in differences:
        print(line)
    print(f"{functions} functions, {len(stock)} facts, {'different' if differences else 'the same'}")
    return bool(differences) or functions != 84


sys.exit(main())
