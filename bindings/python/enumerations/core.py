# SPDX-License-Identifier: BSD-3-Clause
"""The enumerations of viaduct.core: see cmake/constants.py."""
ENUMERATIONS = [
    ("Code", "IntEnum", "Code", "The reason why a call failed."),
    ("Reliability", "IntEnum", "Reliability", """What a connection guarantees.

UNRELIABLE            a message arrives at most once
RELIABLE_DELIVERY     messages arrive exactly once, in order
RELIABLE_RECEPTION    the same, and a send completes when its data are in the peer's memory"""),
    ("State", "IntEnum", "EndpointState", "The states of an endpoint."),
    ("Operation", "IntEnum", "CompletedOperation", "The operation that a completion reports."),
    ("CompletionCode", "IntEnum", "CompletionCode", "The outcome of a request."),
    ("ConnectionEventKind", "IntEnum", "ConnectionEventKind", """\
The outcome of a connection or of an attempt to connect. CONFLICT: the attributes of peer-to-peer partners
differ. LOST: it failed, or the peer's process died."""),
    ("AsyncEventKind", "IntEnum", "AsyncEventKind", "The asynchronous events of a device."),
]
