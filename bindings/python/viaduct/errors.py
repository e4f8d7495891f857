# SPDX-License-Identifier: BSD-3-Clause
"""What calls raise: Error, and where a time-out has passed TimeoutError. Each API has subclasses of both."""
from __future__ import annotations

import builtins
import enum

__all__ = ["Error", "TimeoutError"]


class Error(Exception):
    """A call failed.

    call    its name in C
    code    the API's code, a member of its enumeration
    name    the name of the code in C
    text    what it means
    """

    def __init__(self, call: str, code: enum.IntEnum, name: str, text: str) -> None:
        super().__init__(f"{call}: {name}: {text}" if text else f"{call}: {name}")
        self.call = call
        self.code = code
        self.name = name
        self.text = text

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.call, self.code, self.name, self.text)


class TimeoutError(Error, builtins.TimeoutError):
    """The time-out of a call has passed."""
