# SPDX-License-Identifier: BSD-3-Clause
"""The exceptions of DAT."""
from __future__ import annotations

import builtins
import enum

from viaduct import _dat, errors
from viaduct._arguments import checked
from viaduct.dat.constants import EventNumber, ReturnSubtype, ReturnType

_WAYS_OUT = {  # of states in which an endpoint cannot connect
    ReturnSubtype.INVALID_STATE_EP_CONNECTED: ", and can connect again after disconnect() and reset()",
    ReturnSubtype.INVALID_STATE_EP_DISCONNECTED: ", and can connect again after reset()",
}


class Error(errors.Error):
    """A call failed.

    code       a ReturnType; of ConnectionFailed an EventNumber
    subtype    a ReturnSubtype: the argument, state or resource that was the reason
    text       the name of the subtype, and the reason in words
    """

    def __init__(self, call: str, code: enum.IntEnum, subtype: ReturnSubtype, name: str, text: str) -> None:
        super().__init__(call, code, name, text)
        self.subtype = subtype

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.call, self.code, self.subtype, self.name, self.text)


class TimeoutError(Error, errors.TimeoutError):
    """The timeout of a call, or of an attempt to connect, has expired."""


class ConnectionFailed(Error, builtins.ConnectionError):
    """An endpoint was not connected; `code` is the EventNumber with the reason. It is also a ConnectionError."""


@checked
def strerror(result: int) -> tuple[str, str]:
    """Returns the names of the type and the subtype of a result. Raises Error(INVALID_PARAMETER) if it is not a result
    of DAT."""
    return _dat.dat_strerror(result)


def error_of(call: str, result: int) -> Error:
    """Returns the exception for a failed call. The extension module calls it, too."""
    try:
        name, subname = strerror(result)
    except Error:
        name, subname = f"DAT_RETURN {result:#010x}", ""
    try:
        code = ReturnType(result & _dat.DAT_TYPE_MASK)
        subtype = ReturnSubtype(result & _dat.DAT_SUBTYPE_MASK)
    except ValueError:  # a result of another provider
        code, subtype = ReturnType.INTERNAL_ERROR, ReturnSubtype.NO_SUBTYPE
    if call in ("dat_ep_connect", "dat_ep_dup_connect", "dat_ep_common_connect"):
        subname += _WAYS_OUT.get(subtype, "")
    timed_out = code is ReturnType.TIMEOUT_EXPIRED or (call, code) == ("dat_cno_wait", ReturnType.QUEUE_EMPTY)
    return (TimeoutError if timed_out else Error)(call, code, subtype, name, subname)


def connection_error(call: str, number: EventNumber) -> Error:
    """Returns the exception for an event that ends an attempt to connect."""
    timed_out = number is EventNumber.CONNECTION_EVENT_TIMED_OUT
    return (TimeoutError if timed_out else ConnectionFailed)(call, number, ReturnSubtype.NO_SUBTYPE,
                                                             "DAT_" + number.name, "")
