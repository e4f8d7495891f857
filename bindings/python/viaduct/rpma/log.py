# SPDX-License-Identifier: BSD-3-Clause
"""The log of librpma."""
from __future__ import annotations

import typing

from viaduct import _rpma
from viaduct._arguments import checked
from viaduct.rpma.constants import LogLevel, LogThreshold

LogFunction = typing.Callable[[LogLevel, str, typing.Optional[str], int, typing.Optional[str]], object]


@checked
def log_set_threshold(threshold: LogThreshold, level: LogLevel) -> None:
    """Sets the highest level of messages that are reported."""
    _rpma.rpma_log_set_threshold(threshold, level)


@checked
def log_get_threshold(threshold: LogThreshold) -> LogLevel:
    """Returns the highest level of messages that are reported."""
    return LogLevel(_rpma.rpma_log_get_threshold(threshold))


@checked
def log_set_function(function: LogFunction | None) -> None:
    """Sets the function that gets the messages: function(level, text, file, line, name).

    file, line and name are the place in the library; file and name may be None. Any thread may call the function,
    also several at the same time. It must not call viaduct.rpma. Its exceptions are passed to sys.unraisablehook. None
    sets the default function, which writes to syslog(3) and, up to LogThreshold.AUX, to stderr.
    """
    if function is None:
        _rpma.rpma_log_set_function(None)
        return
    if not callable(function):
        raise TypeError(f"function must be callable or None, not {function!r}")
    receive = function

    def deliver(level: int, file: str | None, line: int, name: str | None, text: str) -> None:
        receive(LogLevel(level), text.rstrip("\n"), file, line, name)
    _rpma.rpma_log_set_function(deliver)
