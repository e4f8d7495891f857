# SPDX-License-Identifier: BSD-3-Clause
"""Waiting for file descriptors in asyncio."""
from __future__ import annotations

import asyncio
import collections
import typing
import weakref

T = typing.TypeVar("T")

_waiters: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, dict[int, list[asyncio.Future[None]]]]
_waiters = weakref.WeakKeyDictionary()


def _wake(loop: asyncio.AbstractEventLoop, fd: int) -> None:
    loop.remove_reader(fd)
    for future in _waiters[loop].pop(fd, []):
        if not future.done():
            future.set_result(None)


async def readable(fd: int) -> None:
    """Waits until a descriptor is readable. If several tasks wait for one descriptor, all of them wake."""
    loop = asyncio.get_running_loop()
    waiters = _waiters.setdefault(loop, collections.defaultdict(list))
    future = loop.create_future()
    loop.remove_reader(fd)  # of waiting tasks, possibly for a closed file with the same number
    loop.add_reader(fd, _wake, loop, fd)
    waiters[fd].append(future)
    try:
        await future
    finally:
        if future in waiters.get(fd, ()):  # cancelled
            waiters[fd].remove(future)
            if not waiters[fd]:
                del waiters[fd]
                loop.remove_reader(fd)


async def until(fd: int, attempt: typing.Callable[[], T | None], timeout: float | None = None) -> T | None:
    """Calls attempt(), and again whenever the descriptor becomes readable, until it returns something other than None.

    Returns that result, or None when the timeout has expired (seconds; None: no timeout).
    """
    try:
        async with asyncio.timeout(timeout):  # wait_for() of Python 3.11 may lose a cancellation
            while (result := attempt()) is None:
                await readable(fd)
            return result
    except TimeoutError:
        return attempt()
