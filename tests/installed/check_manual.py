#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""check_manual.py PREFIX: checks that an installed tree has a manual page for each function of librpma.h, and for those
functions of other APIs that must have one"""

import pathlib
import re
import sys

prefix = pathlib.Path(sys.argv[1])
manual = next(prefix.rglob("man3")).parent
functions = [name for header, pattern in (("librpma.h", r"^(?:int|const char\*) (rpma_\w+)\("),
                                          ("vipl.h", r"^extern VIP_RETURN (Vip\w+)\("))
             for name in re.findall(pattern, (prefix / "include" / header).read_text(), re.MULTILINE)]
functions += ["dat_ep_dup_connect"]


def fault_of(function: str) -> str | None:
    page = next(manual.glob(f"man3/{function}.3*"), manual)
    if not page.is_file():
        return "no page"
    text = page.read_text()
    if redirection := re.fullmatch(r"\.so (\S+)\n", text):
        text = (manual / redirection[1]).read_text()
    return None if re.search(rf"^\.F[no] .*\b{function}\b", text, re.MULTILINE) else "the page does not show it"


faults = {function: fault for function in functions if (fault := fault_of(function))}
for function, fault in faults.items():
    print(f"{function}: {fault}")
print(f"{len(functions)} functions, {len(faults)} faults")
sys.exit(bool(faults) or not functions)
