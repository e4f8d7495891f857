# SPDX-License-Identifier: BSD-3-Clause
"""The enumerations of VIPL."""
from __future__ import annotations

from viaduct import _vipl
from viaduct._enums import IntEnum, IntFlag


class ReturnCode(IntEnum):
    """The return values of calls (VIP_RETURN)."""
    SUCCESS = _vipl.VIP_SUCCESS
    NOT_DONE = _vipl.VIP_NOT_DONE
    INVALID_PARAMETER = _vipl.VIP_INVALID_PARAMETER
    ERROR_RESOURCE = _vipl.VIP_ERROR_RESOURCE
    TIMEOUT = _vipl.VIP_TIMEOUT
    REJECT = _vipl.VIP_REJECT
    INVALID_RELIABILITY_LEVEL = _vipl.VIP_INVALID_RELIABILITY_LEVEL
    INVALID_MTU = _vipl.VIP_INVALID_MTU
    INVALID_QOS = _vipl.VIP_INVALID_QOS
    INVALID_PTAG = _vipl.VIP_INVALID_PTAG
    INVALID_RDMAREAD = _vipl.VIP_INVALID_RDMAREAD
    DESCRIPTOR_ERROR = _vipl.VIP_DESCRIPTOR_ERROR
    INVALID_STATE = _vipl.VIP_INVALID_STATE
    ERROR_NAMESERVICE = _vipl.VIP_ERROR_NAMESERVICE
    NO_MATCH = _vipl.VIP_NO_MATCH
    NOT_REACHABLE = _vipl.VIP_NOT_REACHABLE
    ERROR_NOT_SUPPORTED = _vipl.VIP_ERROR_NOT_SUPPORTED
    INVALID_ADDRESS = _vipl.VIP_INVALID_ADDRESS


class State(IntEnum):
    """The states of a VI (VIP_STATE_)."""
    IDLE = _vipl.VIP_STATE_IDLE
    CONNECTED = _vipl.VIP_STATE_CONNECTED
    CONNECT_PENDING = _vipl.VIP_STATE_CONNECT_PENDING
    ERROR = _vipl.VIP_STATE_ERROR


class ReliabilityLevel(IntFlag):
    """What a connection guarantees (VIP_SERVICE_).

    UNRELIABLE            a message arrives at most once
    RELIABLE_DELIVERY     messages arrive exactly once, in order
    RELIABLE_RECEPTION    the same, and a send completes when its data are in the peer's memory
    """
    UNRELIABLE = _vipl.VIP_SERVICE_UNRELIABLE
    RELIABLE_DELIVERY = _vipl.VIP_SERVICE_RELIABLE_DELIVERY
    RELIABLE_RECEPTION = _vipl.VIP_SERVICE_RELIABLE_RECEPTION


class ErrorCode(IntEnum):
    """What an asynchronous error reports (VIP_ERROR_)."""
    POST_DESC = _vipl.VIP_ERROR_POST_DESC
    CONN_LOST = _vipl.VIP_ERROR_CONN_LOST
    RECVQ_EMPTY = _vipl.VIP_ERROR_RECVQ_EMPTY
    VI_OVERRUN = _vipl.VIP_ERROR_VI_OVERRUN
    RDMAW_PROT = _vipl.VIP_ERROR_RDMAW_PROT
    RDMAW_DATA = _vipl.VIP_ERROR_RDMAW_DATA
    RDMAW_ABORT = _vipl.VIP_ERROR_RDMAW_ABORT
    RDMAR_PROT = _vipl.VIP_ERROR_RDMAR_PROT
    COMP_PROT = _vipl.VIP_ERROR_COMP_PROT
    RDMA_TRANSPORT = _vipl.VIP_ERROR_RDMA_TRANSPORT
    CATASTROPHIC = _vipl.VIP_ERROR_CATASTROPHIC


class ResourceCode(IntEnum):
    """The kind of object that an asynchronous error concerns (VIP_RESOURCE_)."""
    NIC = _vipl.VIP_RESOURCE_NIC
    VI = _vipl.VIP_RESOURCE_VI
    CQ = _vipl.VIP_RESOURCE_CQ
    DESCRIPTOR = _vipl.VIP_RESOURCE_DESCRIPTOR


class Operation(IntEnum):
    """The operation of a descriptor of the send queue (VIP_CONTROL_OP_)."""
    SENDRECV = _vipl.VIP_CONTROL_OP_SENDRECV
    RDMAWRITE = _vipl.VIP_CONTROL_OP_RDMAWRITE
    RDMAREAD = _vipl.VIP_CONTROL_OP_RDMAREAD


class Control(IntFlag):
    """Options of a descriptor (VIP_CONTROL_)."""
    IMMEDIATE = _vipl.VIP_CONTROL_IMMEDIATE
    QFENCE = _vipl.VIP_CONTROL_QFENCE


class Status(IntFlag):
    """The outcome of a descriptor (VIP_STATUS_)."""
    DONE = _vipl.VIP_STATUS_DONE
    FORMAT_ERROR = _vipl.VIP_STATUS_FORMAT_ERROR
    PROTECTION_ERROR = _vipl.VIP_STATUS_PROTECTION_ERROR
    LENGTH_ERROR = _vipl.VIP_STATUS_LENGTH_ERROR
    PARTIAL_ERROR = _vipl.VIP_STATUS_PARTIAL_ERROR
    DESC_FLUSHED_ERROR = _vipl.VIP_STATUS_DESC_FLUSHED_ERROR
    TRANSPORT_ERROR = _vipl.VIP_STATUS_TRANSPORT_ERROR
    RDMA_PROT_ERROR = _vipl.VIP_STATUS_RDMA_PROT_ERROR
    REMOTE_DESC_ERROR = _vipl.VIP_STATUS_REMOTE_DESC_ERROR
    IMMEDIATE = _vipl.VIP_STATUS_IMMEDIATE


ERROR_MASK = Status(_vipl.VIP_STATUS_ERROR_MASK)


class StatusOperation(IntEnum):
    """The operation of a completed descriptor (VIP_STATUS_OP_)."""
    SEND = _vipl.VIP_STATUS_OP_SEND
    RECEIVE = _vipl.VIP_STATUS_OP_RECEIVE
    RDMA_WRITE = _vipl.VIP_STATUS_OP_RDMA_WRITE
    REMOTE_RDMA_WRITE = _vipl.VIP_STATUS_OP_REMOTE_RDMA_WRITE
    RDMA_READ = _vipl.VIP_STATUS_OP_RDMA_READ
