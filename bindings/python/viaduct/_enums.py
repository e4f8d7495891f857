# SPDX-License-Identifier: BSD-3-Clause
"""Enumerations of numbers that print their names. Those of the module enum print numbers."""
from __future__ import annotations

import enum
import typing


def _format(member: typing.Any, format_spec: str) -> str:
    """Formats the number if the specification is one of numbers, such as "d" or "#x"; otherwise the name."""
    if format_spec[-1:] in tuple("bcdeEfFgGnoxX%"):
        return format(int(member.value), format_spec)
    return format(str(member), format_spec)


class IntEnum(enum.IntEnum):
    """An enumeration whose members are numbers."""
    __str__ = enum.Enum.__str__
    __format__ = _format


class IntFlag(enum.IntFlag):
    """An enumeration whose members are bits, which can be combined."""
    __str__ = enum.Flag.__str__
    __format__ = _format
