# SPDX-License-Identifier: BSD-3-Clause
"""Interrupts calls of the package wherever a signal handler or a finalizer may run in them: before each bytecode."""
import itertools
import os
import sys

import viaduct

PACKAGE = os.path.dirname(viaduct.__file__)


def _run(call, place, act):
    """Makes a call, and calls act() in it before the bytecode of the package with that number. Returns whether the call
    came that far."""
    left = [place]

    def trace(frame, event, argument):
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            left[0] -= 1
            if left[0] == -1:
                sys.settrace(None)
                act()
        return trace
    former = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(former)
    return left[0] < 0


def at_each_place(call, act):
    """Makes a call repeatedly, and calls act() at another place in it each time. Yields after each call."""
    for place in itertools.count():
        if not _run(call, place, act):
            return
        yield


def _interrupt():
    raise KeyboardInterrupt


def interrupted_at_each_place(prepare, call):
    """Interrupts call(prepare()) at another place each time with KeyboardInterrupt, and yields what prepare() has
    returned."""
    for place in itertools.count():
        prepared = prepare()
        try:
            if not _run(lambda: call(prepared), place, _interrupt):
                return
        except KeyboardInterrupt:
            pass
        yield prepared
