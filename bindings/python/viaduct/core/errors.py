# SPDX-License-Identifier: BSD-3-Clause
"""What the calls of the core raise."""
from __future__ import annotations

import os

from viaduct import errors
from viaduct.core.constants import Code
from viaduct.core.structures import Completion


class Error(errors.Error):
    """A call of the core failed; `code` is a Code, and `call` names the method."""


class TimeoutError(Error, errors.TimeoutError):
    """A time-out has passed."""


class RequestError(Error):
    """A request failed; `code` is a CompletionCode, and `completion` the whole of it."""

    def __init__(self, call: str, completion: Completion) -> None:
        errors.Error.__init__(self, call, completion.code, completion.code.name, completion.operation.name)
        self.completion = completion

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.call, self.completion)


def error_of(call: str, code: int, where: str = "", number: int = 0) -> Error:
    """The exception for a failed call; the extension module calls it, too."""
    kind = TimeoutError if code == Code.TIMED_OUT else Error
    text = ": ".join(part for part in (where, os.strerror(number) if number else "") if part)
    return kind(call, Code(code), Code(code).name, text)
