# SPDX-License-Identifier: BSD-3-Clause
"""The exceptions that calls raise: Error, and TimeoutError if a timeout has expired. Each API has subclasses."""
from __future__ import annotations

import builtins
import enum


class Error(Exception):
    """A call failed.

    call    the C name of the call (in viaduct.core: of the method)
    code    the error code of the API, a member of one of its enumerations
    name    the C name of that code
    text    the meaning of the code; may be empty
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
    """The timeout of a call has expired. It is also a builtins.TimeoutError."""

    def _say(self, method: str, awaited: str, timeout: float) -> TimeoutError:
        """Says what a method of Python has awaited, and for how long. Returns the exception itself."""
        self.text = f"no {awaited} within {timeout:g} s"
        self.args = (f"{self.call}: {self.name}: {self.text}",)
        return self
