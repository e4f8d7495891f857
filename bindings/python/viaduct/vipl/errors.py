# SPDX-License-Identifier: BSD-3-Clause
"""The exceptions of VIPL."""
from __future__ import annotations

from viaduct import errors
from viaduct.vipl.constants import ReturnCode, Status
from viaduct.vipl.descriptors import ERROR_MASK, Descriptor

_TEXTS = {
    ReturnCode.NOT_DONE: "nothing is complete yet, or the wait was given up",
    ReturnCode.INVALID_PARAMETER: "a parameter is invalid, or an object is closed",
    ReturnCode.ERROR_RESOURCE: "resources are missing, or the object is in use",
    ReturnCode.TIMEOUT: "the timeout has passed",
    ReturnCode.REJECT: "the peer has refused",
    ReturnCode.INVALID_RELIABILITY_LEVEL: "the reliability level is not supported, or not that of the peer",
    ReturnCode.INVALID_MTU: "the transfer size is not supported, or not that of the peer",
    ReturnCode.INVALID_QOS: "the quality of service is not supported, or not that of the peer",
    ReturnCode.INVALID_PTAG: "the protection tag is not one of this NIC",
    ReturnCode.INVALID_RDMAREAD: "RDMA read is not supported at this reliability level",
    ReturnCode.DESCRIPTOR_ERROR: "a descriptor completed with an error, or the queue is empty",
    ReturnCode.INVALID_STATE: "the VI is not in a state for this",
    ReturnCode.ERROR_NAMESERVICE: "the name is not known, or the name service is not there",
    ReturnCode.NO_MATCH: "nobody waits at this address",
    ReturnCode.NOT_REACHABLE: "the address cannot be reached",
    ReturnCode.ERROR_NOT_SUPPORTED: "this NIC does not support it",
}

_NOT_IDLE = "the VI is not idle; disconnect() makes it idle"
_STATE_TEXTS = {  # of INVALID_STATE, by call
    "VipConnectRequest": "the VI is not idle, or the request was ended; disconnect() makes it idle",
    "VipConnectPeerRequest": _NOT_IDLE,
    "VipConnectAccept": _NOT_IDLE,
    "VipSetViAttributes": _NOT_IDLE,
}


class Error(errors.Error):
    """A call of VIPL failed; `code` is a ReturnCode."""


class TimeoutError(Error, errors.TimeoutError):
    """The timeout of a call has expired; `code` is TIMEOUT."""


class DescriptorError(Error):
    """A descriptor completed with an error, or a queue had none.

    descriptor    the descriptor, whose status contains the error; None if the queue was empty. Pickling drops it.
    """

    def __init__(self, call: str, descriptor: Descriptor | None) -> None:
        text = "the queue is empty"
        if descriptor is not None:
            text = ", ".join(f"VIP_STATUS_{error.name}" for error in Status if error & descriptor.status & ERROR_MASK)
        errors.Error.__init__(self, call, ReturnCode.DESCRIPTOR_ERROR, "VIP_DESCRIPTOR_ERROR", text)
        self.descriptor = descriptor

    def __reduce__(self) -> tuple[object, ...]:
        """Without the descriptor, which is memory of this process."""
        return type(self), (self.call, None), {"args": self.args, "text": self.text}


def error_of(call: str, code: int, why: str = "") -> Error:
    """Returns the exception for a failed call; `why` are the words of the library, if it has any. The extension module
    calls it, too."""
    kind = TimeoutError if code == ReturnCode.TIMEOUT else Error
    member = ReturnCode(code)
    text = _TEXTS.get(member, "")
    if member is ReturnCode.INVALID_STATE:
        text = _STATE_TEXTS.get(call, text)
    return kind(call, member, f"VIP_{member.name}", ": ".join(part for part in (text, why) if part))
