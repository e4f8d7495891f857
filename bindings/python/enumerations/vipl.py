# SPDX-License-Identifier: BSD-3-Clause
"""The enumerations of viaduct.vipl: see cmake/constants.py."""
ENUMERATIONS = [
    ("ReturnCode", "IntEnum", "VIP_RETURN: VIP_((?!ERROR$).*)", "The return values of calls (VIP_RETURN)."),
    ("State", "IntEnum", "VIP_STATE_(.*)", "The states of a VI (VIP_STATE_)."),
    ("ReliabilityLevel", "IntFlag", "VIP_SERVICE_(UNRELIABLE|RELIABLE_.*)", """\
What a connection guarantees (VIP_SERVICE_).

UNRELIABLE            a message arrives at most once
RELIABLE_DELIVERY     messages arrive exactly once, in order
RELIABLE_RECEPTION    the same, and a send completes when its data are in the peer's memory"""),
    ("ErrorCode", "IntEnum", "VIP_ERROR_CODE: VIP_ERROR_(.*)", "What an asynchronous error reports (VIP_ERROR_)."),
    ("ResourceCode", "IntEnum", "VIP_RESOURCE_(.*)",
     "The kind of object that an asynchronous error concerns (VIP_RESOURCE_)."),
    ("Operation", "IntEnum", "VIP_CONTROL_OP_((?!RESERVED).*)",
     "The operation of a descriptor of the send queue (VIP_CONTROL_OP_)."),
    ("Control", "IntFlag", "VIP_CONTROL_((?!OP_|RESERVED).*)", "Options of a descriptor (VIP_CONTROL_)."),
    ("Status", "IntFlag", "VIP_STATUS_((?!OP_|RESERVED).*)", "The outcome of a descriptor (VIP_STATUS_)."),
    ("StatusOperation", "IntEnum", "VIP_STATUS_OP_(.*)", "The operation of a completed descriptor (VIP_STATUS_OP_)."),
]
