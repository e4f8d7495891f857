# SPDX-License-Identifier: BSD-3-Clause
"""The exceptions of the core."""
from __future__ import annotations

import os

from viaduct import errors
from viaduct.core.constants import Code
from viaduct.core.structures import Completion


class Error(errors.Error):
    """A call of the core failed. `code` is a Code, `call` the name of the method."""


class TimeoutError(Error, errors.TimeoutError):
    """The timeout of a call has expired; `code` is TIMED_OUT."""

    def _say(self, method: str, awaited: str, timeout: float) -> errors.TimeoutError:
        self.call = method
        return super()._say(method, awaited, timeout)


class RequestError(Error):
    """A request failed. `code` is a CompletionCode, `completion` the whole completion."""

    def __init__(self, call: str, completion: Completion) -> None:
        errors.Error.__init__(self, call, completion.code, completion.code.name, completion.operation.name)
        self.completion = completion

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.call, self.completion)


def error_of(call: str, code: int, where: str = "", number: int = 0) -> Error:
    """Returns the exception for a failed call. The extension module calls it, too."""
    kind = TimeoutError if code == Code.TIMED_OUT else Error
    text = ": ".join(part for part in (where, os.strerror(number) if number else "") if part)
    return kind(call, Code(code), Code(code).name, text)
