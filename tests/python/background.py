# SPDX-License-Identifier: BSD-3-Clause
"""Calls in other threads and in tasks, for the tests of all APIs."""
import asyncio
import functools
import sys
import threading
import time

from viaduct import _lifetime

TIMEOUT = 60  # seconds; reached only if a call hangs


class Background:
    """A call in another thread. result() waits for it and returns its result or raises its exception."""

    def __init__(self, call, *arguments, **options):
        self._thread = threading.Thread(target=self._run, args=(call, arguments, options), daemon=True)
        self._thread.start()

    def _run(self, call, arguments, options):
        self._error = None
        try:
            self._result = call(*arguments, **options)
        except BaseException as error:
            self._error = error

    def runs(self):
        return self._thread.is_alive()

    def result(self, timeout=TIMEOUT):
        self._thread.join(timeout)
        assert not self._thread.is_alive(), "a call hangs"
        if self._error is not None:
            raise self._error
        return self._result


def join(threads):
    """Waits for all of these Background calls, and returns their results or raises all of their exceptions."""
    results, errors, end = [], [], time.monotonic() + TIMEOUT
    for thread in threads:
        try:
            results.append(thread.result(end - time.monotonic()))
        except Exception as error:
            errors.append(error)
    if errors:
        raise ExceptionGroup("calls in other threads", errors)
    return results


def all_of(calls):
    """Makes each call in a thread of its own."""
    return join([Background(call) for call in calls])


def runs(main):
    """Runs a test that is a coroutine."""
    @functools.wraps(main)
    def test(*arguments, **fixtures):
        asyncio.run(asyncio.wait_for(main(*arguments, **fixtures), TIMEOUT))
    return test


def lets_others_run(call):
    """Whether another thread runs during a call, which is repeated until then."""
    call()  # what it imports at first may let them run, too
    gate = threading.Lock()
    gate.acquire()
    other = Background(gate.acquire)
    usual = sys.getswitchinterval()
    sys.setswitchinterval(2 * TIMEOUT)  # threads run only when others let them
    try:
        gate.release()
        end = time.monotonic() + TIMEOUT
        while other.runs() and time.monotonic() < end:
            call()
        return not other.runs()
    finally:
        sys.setswitchinterval(usual)


def threads_that_call(monkeypatch, owner, name):
    """Returns the set of threads that call a function from now on."""
    threads, function = set(), getattr(owner, name)

    def noting(*arguments, **options):
        threads.add(threading.get_ident())
        return function(*arguments, **options)
    monkeypatch.setattr(owner, name, noting)
    return threads


def until_it_waits_for_a_child(monkeypatch, close):
    """Starts a thread that closes an object, and returns when it waits for another thread that ends a child, or is
    over."""
    waits, wait = threading.Event(), _lifetime._await_return
    monkeypatch.setattr(_lifetime, "_await_return", lambda ending: (waits.set(), wait(ending)))
    closing = Background(close)
    while closing.runs() and not waits.is_set():
        pass
    return closing


def use_until_gone(thing, uses, says_gone):
    """Repeats all calls until each has failed because the object no longer exists, which says_gone() detects in the
    exception. says_gone() raises unexpected exceptions."""
    left = list(uses)
    while left:
        for use in list(left):
            try:
                use(thing)
            except Exception as error:
                if says_gone(error):
                    left.remove(use)


def end_in_use(make, end, use, users, rounds, shown=lambda thing: thing):
    """Creates and ends objects repeatedly while threads use them, or what `shown` returns for them."""
    done, current = threading.Event(), []

    def work():
        while not done.is_set():
            for thing in current:
                use(thing)
    workers = [Background(work) for _ in range(users)]
    for _ in range(rounds):
        thing = make()
        current[:] = [shown(thing)]
        time.sleep(0)  # lets other threads use it
        end(thing)
    done.set()
    join(workers)
