# SPDX-License-Identifier: BSD-3-Clause
"""The enumerations of the core."""
from __future__ import annotations

from viaduct._enums import IntEnum, IntFlag


class Code(IntEnum):
    """The reason why a call failed."""
    OK = 0
    WOULD_BLOCK = 1
    INVALID_PARAMETER = 2
    INVALID_STATE = 3
    INVALID_RELIABILITY = 4
    INVALID_TRANSFER_SIZE = 5
    INVALID_QOS = 6
    INVALID_RDMA_READ = 7
    NO_RESOURCES = 8
    BUSY = 9
    QUEUE_FULL = 10
    TIMED_OUT = 11
    NO_LISTENER = 12
    REJECTED = 13
    UNREACHABLE = 14
    PERMISSION_DENIED = 15
    UNSUPPORTED = 16
    SYSTEM_ERROR = 17


class Access(IntFlag):
    """The access of peers to a memory region or through an endpoint."""
    NONE = 0
    REMOTE_WRITE = 1
    REMOTE_READ = 2
    REMOTE_ATOMIC = 4
    ALL = 7


def rights_of(access: Access) -> tuple[bool, bool, bool]:
    """Returns an Access as the three arguments of the extension module."""
    return bool(access & Access.REMOTE_WRITE), bool(access & Access.REMOTE_READ), bool(access & Access.REMOTE_ATOMIC)


class Reliability(IntEnum):
    """What a connection guarantees.

    UNRELIABLE            a message arrives at most once
    RELIABLE_DELIVERY     messages arrive exactly once, in order
    RELIABLE_RECEPTION    the same, and a send completes when its data are in the peer's memory
    """
    UNRELIABLE = 0
    RELIABLE_DELIVERY = 1
    RELIABLE_RECEPTION = 2


class State(IntEnum):
    """The states of an endpoint."""
    UNCONNECTED = 0
    RESERVED = 1
    TENTATIVE_PENDING = 2
    PASSIVE_PENDING = 3
    ACTIVE_PENDING = 4
    CONNECTED = 5
    DISCONNECT_PENDING = 6
    DISCONNECTED = 7


class Opcode(IntEnum):
    SEND = 0
    RDMA_WRITE = 1
    RDMA_READ = 2
    ATOMIC_WRITE = 3
    FLUSH = 4
    SEND_INVALIDATE = 5
    FETCH_ADD = 7
    COMPARE_SWAP = 8


class Operation(IntEnum):
    """The operation that a completion reports."""
    SEND = 0
    RDMA_WRITE = 1
    RDMA_READ = 2
    ATOMIC_WRITE = 3
    FLUSH = 4
    BIND_WINDOW = 5
    FETCH_ADD = 6
    COMPARE_SWAP = 7
    RECEIVE = 8
    RECEIVE_RDMA_WRITE = 9


class CompletionCode(IntEnum):
    """The outcome of a request."""
    SUCCESS = 0
    LOCAL_FORMAT = 1
    LOCAL_LENGTH = 2
    LOCAL_PROTECTION = 3
    REMOTE_PROTECTION = 4
    REMOTE_OPERATION = 5
    REMOTE_LENGTH = 6
    TRANSPORT = 7
    PARTIAL_MESSAGE = 8
    FLUSHED = 9


class ConnectionEventKind(IntEnum):
    """The outcome of a connection or of an attempt to connect. CONFLICT: the attributes of peer-to-peer partners
    differ. LOST: it failed, or the peer's process died."""
    ESTABLISHED = 0
    REJECTED = 1
    TIMED_OUT = 2
    CONFLICT = 3
    UNREACHABLE = 4
    DISCONNECTED = 5
    LOST = 6


class AsyncEventKind(IntEnum):
    """The asynchronous events of a device."""
    RECEIVE_QUEUE_EMPTY = 0
    REMOTE_WRITE_PROTECTION = 1
    REMOTE_WRITE_ABORTED = 2
    REMOTE_READ_PROTECTION = 3
    COMPLETION_QUEUE_OVERRUN = 4
    SHARED_RECEIVE_QUEUE_LIMIT = 5
