# SPDX-License-Identifier: BSD-3-Clause
"""Interrupts calls of the package wherever a signal handler or a finalizer may run in them: before each bytecode."""
import itertools
import os
import sys

import viaduct
from viaduct._lifetime import Resource
from viaduct.vipl import Descriptor

PACKAGE = os.path.dirname(viaduct.__file__)


def _is_in_finalizer(frame):
    """Python does not pass on exceptions of finalizers."""
    while frame.f_code not in (_run.__code__, Resource.__del__.__code__, Descriptor.__del__.__code__):
        frame = frame.f_back
    return frame.f_code is not _run.__code__


def _run(call, place, act):
    """Makes a call, and calls act() in it before the bytecode of the package with that number. Returns whether the call
    came that far."""
    left = [place]

    def trace(frame, event, argument):
        if not frame.f_code.co_filename.startswith(PACKAGE) or _is_in_finalizer(frame):
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
        result = call()  # kept, because its finalizer is not a part of the call
    finally:
        sys.settrace(former)
    del result
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
