# SPDX-License-Identifier: BSD-3-Clause
"""What the objects of the core have in common."""
from __future__ import annotations

import time
import typing

from viaduct import _core
from viaduct._lifetime import Resource


class Held(Resource):
    """Holds an object of the core, `_raw`, until it is closed."""

    def _release(self) -> None:
        del self._raw

    def __getattr__(self, name: str) -> typing.NoReturn:
        if name == "_raw":
            raise ValueError(f"the {type(self).__name__} is closed")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def next_of(take: typing.Callable[[], typing.Any], fd: int, timeout: float | None) -> typing.Any:
    """What take() gives, waiting for it; None where nothing came in time. The descriptor may be readable for nothing."""
    end = None if timeout is None else time.monotonic() + timeout
    while (result := take()) is None:
        left = None if end is None else max(end - time.monotonic(), 0)
        if left == 0 or not _core.wait_readable(fd, left):
            return take()
    return result
