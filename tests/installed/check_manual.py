#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""check_manual.py PREFIX: checks that an installed tree has a manual page for each function of librpma.h, vipl.h and
dat2/*.h"""

import pathlib
import re
import sys

prefix = pathlib.Path(sys.argv[1])
manual = next(prefix.rglob("man3")).parent
APIS = ("3", "librpma.h", r"^(?:int|const char\*) (rpma_\w+)\("), ("3vipl", "vipl.h", r"^extern \w+ (Vip\w+)\("), \
       ("3dat", "dat2/*.h", r"^(?:static inline )?DAT_RETURN DAT_API (dat_\w+)\(")
functions = {name: section for section, headers, pattern in APIS for header in (prefix / "include").glob(headers)
             for name in re.findall(pattern, header.read_text(), re.MULTILINE)}


def fault_of(function: str, section: str) -> str | None:
    page = manual / "man3" / f"{function}.{section}"
    if not page.exists():
        return "no page"
    text = page.read_text()
    if redirection := re.fullmatch(r"\.so (\S+)\n", text):
        text = (manual / redirection[1]).read_text()
    return None if re.search(rf"^\.F[no] .*\b{function}\b", text, re.MULTILINE) else "the page does not show it"


faults = {function: fault for function, section in functions.items() if (fault := fault_of(function, section))}
for function, fault in faults.items():
    print(f"{function}: {fault}")
print(f"{len(functions)} functions, {len(faults)} faults")
sys.exit(bool(faults) or len(functions) < 200)
