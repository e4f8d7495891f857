# SPDX-License-Identifier: BSD-3-Clause
"""Passing results from notify handlers to the threads and tasks that wait for them."""
from __future__ import annotations

import asyncio
import collections
import concurrent.futures
import threading
import time
import typing

from viaduct.vipl.constants import ReturnCode
from viaduct.vipl.errors import error_of

T = typing.TypeVar("T")


class Arrivals(typing.Generic[T]):
    """Results that notify handlers have taken from a queue and that no thread or task has taken yet. A handler that has
    found the queue empty brings none: 0 or None.

    If a task is cancelled, its result goes to the next thread or task that requests one. Thread-safe.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()  # guards the attributes below; reentrant, because ask() may free objects
        self._asked = 0
        self._waiting: list[concurrent.futures.Future[T | None]] = []
        self._ready: collections.deque[T] = collections.deque()

    @property
    def busy(self) -> bool:
        """Whether a result is available or expected. If so, waiting on the queue itself may fail to return."""
        return self._asked != 0 or bool(self._ready)

    def take(self) -> T | None:
        """Returns an available result, or None."""
        if not self._ready:  # the usual case, without the lock
            return None
        with self._lock:
            return self._ready.popleft() if self._ready else None

    def future(self, ask: typing.Callable[[], None]) -> concurrent.futures.Future[T | None]:
        """Returns the future of the next put(). ask() requests one call of that; its exceptions are raised."""
        future: concurrent.futures.Future[T | None] = concurrent.futures.Future()
        with self._lock:
            if self._ready:
                future.set_result(self._ready.popleft())
                return future
            self._waiting = [waiter for waiter in self._waiting if not waiter.cancelled()]
            if self._asked <= len(self._waiting):  # fewer: put() is about to pass a result on
                ask()
                self._asked += 1
            self._waiting.append(future)
        return future

    def put(self, news: T | None) -> None:
        """Passes on the result of a handler."""
        with self._lock:
            self._asked -= 1
        self._pass_on(news)

    def give_back(self, future: concurrent.futures.Future[T | None]) -> None:
        """Abandons a future. If it already has a result, the next request gets that."""
        if not future.cancel() and future.exception() is None:
            self._pass_on(future.result())

    def _pass_on(self, news: T | None) -> None:
        with self._lock:
            while self._waiting:
                future = self._waiting.pop(0)
                if future.set_running_or_notify_cancel():
                    break
            else:
                if news:
                    self._ready.append(news)
                return
        future.set_result(news)

    def fail(self, error: Exception) -> None:
        """Fails all futures: no result will come."""
        with self._lock:
            self._asked = 0
            self._ready.clear()
            waiting, self._waiting = self._waiting, []
        for future in waiting:
            if future.set_running_or_notify_cancel():
                future.set_exception(error)


async def in_thread(call: typing.Callable[[threading.Event], T], undo: typing.Callable[[T], None]) -> T:
    """Awaits a call that blocks until its event is set, in a new thread: the threads of a pool might all wait for each
    other. If the task is cancelled, the call is ended, and undo() reverts what it did at the last moment."""
    stop = threading.Event()
    result: concurrent.futures.Future[T] = concurrent.futures.Future()
    result.set_running_or_notify_cancel()  # it cannot be cancelled

    def run() -> None:
        try:
            result.set_result(call(stop))
        except Exception as error:
            result.set_exception(error)
    threading.Thread(target=run, name="viaduct.vipl", daemon=True).start()
    future = asyncio.wrap_future(result)
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        stop.set()
        await asyncio.wait([future])
        if future.exception() is None:
            undo(future.result())
        raise


def time_left(timeout: float | None) -> typing.Callable[[], float | None]:
    """Returns a function that returns how many seconds are left of the timeout; None: it has none."""
    end = None if timeout is None else time.monotonic() + timeout
    return lambda: None if end is None else max(0.0, end - time.monotonic())


def result_in_time(call: str, arrivals: Arrivals[T], ask: typing.Callable[[], None], timeout: float | None) -> T:
    """Waits for the next result, and returns it. Raises TimeoutError; a result that arrives later goes to the next
    request."""
    news, left = None, time_left(timeout)
    while not news:  # ask() raises an exception if the queue is still empty
        future = arrivals.future(ask)
        try:
            news = future.result(left())
        except concurrent.futures.TimeoutError:
            news = _result_after_all(call, future)
        except BaseException:
            arrivals.give_back(future)
            raise
    return news


async def result_in_time_async(call: str, arrivals: Arrivals[T], ask: typing.Callable[[], None],
                               timeout: float | None) -> T:
    """Waits for the next result without blocking the asyncio loop, and returns it. Raises TimeoutError; a result that
    arrives later goes to the next request."""
    news, left = None, time_left(timeout)
    while not news:
        future = arrivals.future(ask)
        try:
            async with asyncio.timeout(left()):
                news = await asyncio.wrap_future(future)
        except TimeoutError:
            news = _result_after_all(call, future)
        except BaseException:
            arrivals.give_back(future)
            raise
    return news


def _result_after_all(call: str, future: concurrent.futures.Future[T]) -> T:
    """Returns a result that arrived at the last moment; raises TimeoutError if there is none."""
    if future.cancel():
        raise error_of(call, ReturnCode.TIMEOUT) from None
    return future.result()
