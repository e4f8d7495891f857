# SPDX-License-Identifier: BSD-3-Clause
"""The base class of the objects of the core, and waiting."""
from __future__ import annotations

import math
import time
import typing

from viaduct import _core
from viaduct._lifetime import Resource


class Held(Resource):
    """Holds an object of the extension module, `_raw`, until it is closed."""

    def _release(self) -> None:
        vars(self).pop("_raw", None)

    def _require_open(self) -> None:
        """Raises ValueError if it is closed."""
        getattr(self, "_raw")

    def __getattr__(self, name: str) -> typing.NoReturn:
        if name == "_raw":
            raise ValueError("the object was made by the parent process, before fork()" if self._inherited else
                             f"the {type(self).__name__} is closed")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


T = typing.TypeVar("T")
_SLICE = 0.1  # seconds: how long a wait may take to notice that its object is closed


def repeat(attempt: typing.Callable[[float], T | None], timeout: float | None) -> T | None:
    """Calls attempt(seconds), which waits at most that long, until it returns something other than None.

    Returns that result, or None when the timeout has expired. attempt() looks up its object each time, so that it
    raises ValueError once the object is closed.
    """
    end = math.inf if timeout is None else time.monotonic() + timeout
    while True:
        left = max(end - time.monotonic(), 0)
        result = attempt(min(left, _SLICE))
        if result is not None or left == 0:
            return result


def next_of(take: typing.Callable[[], T | None], fd: int, timeout: float | None) -> T | None:
    """Returns what take() returns, or None when the timeout has expired. take() does not wait, and looks up its object
    as attempt() of repeat() does. The descriptor may be readable although take() finds nothing."""
    def attempt(seconds: float) -> T | None:
        if (result := take()) is None and seconds != 0 and _core.wait_readable(fd, seconds):
            result = take()
        return result
    return repeat(attempt, timeout)
