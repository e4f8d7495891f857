# SPDX-License-Identifier: BSD-3-Clause
"""Names that users see."""
from __future__ import annotations

import sys
import types
import typing


def adopt(module: str, names: typing.Iterable[str]) -> None:
    """Lets errors, help() and pickles say that what a module shows of the modules behind it is its own."""
    members = vars(sys.modules[module])
    for name in names:
        member = members[name]
        if isinstance(member, (type, types.FunctionType)) and member.__module__.startswith("viaduct._"):
            member.__module__ = module
