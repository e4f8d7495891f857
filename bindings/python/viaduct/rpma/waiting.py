# SPDX-License-Identifier: BSD-3-Clause
"""Waiting in asyncio."""
from __future__ import annotations

import typing

from viaduct import _waiting
from viaduct.rpma.errors import TimeoutError

T = typing.TypeVar("T")


async def until(fd: int, call: typing.Callable[[float], T], timeout: float | None) -> T:
    """Calls call(0) whenever the descriptor is readable, until it does not raise TimeoutError. Raises that after
    `timeout` seconds."""
    def attempt() -> T | None:
        try:
            return call(0)
        except TimeoutError:
            return None
    result = await _waiting.until(fd, attempt, timeout)
    return call(0) if result is None else result
