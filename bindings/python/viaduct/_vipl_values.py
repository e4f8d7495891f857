# SPDX-License-Identifier: BSD-3-Clause
"""The values of viaduct.vipl: codes, errors, addresses and attributes."""
from __future__ import annotations

import dataclasses
import enum
import typing

from viaduct import _vipl, errors
from viaduct._lifetime import Resource
from viaduct._vipl_work import ERROR_MASK, Descriptor, Status, StatusOperation

if typing.TYPE_CHECKING:
    from viaduct._vipl_vi import Vi
    from viaduct.vipl import CompletionQueue, Nic, Ptag


class ReturnCode(enum.IntEnum):
    """What calls return (VIP_RETURN)."""
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


_TEXTS = {
    ReturnCode.NOT_DONE: "nothing is complete yet, or the wait was given up",
    ReturnCode.INVALID_PARAMETER: "a parameter is invalid, or an object is closed",
    ReturnCode.ERROR_RESOURCE: "resources are missing, or the object is in use",
    ReturnCode.TIMEOUT: "the time-out has passed",
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


class Error(errors.Error):
    """A call of VIPL failed; `code` is a ReturnCode."""


class TimeoutError(Error, errors.TimeoutError):
    """The time-out of a call has passed."""


class DescriptorError(Error):
    """A descriptor completed with an error: `descriptor`, whose status tells. None: there was none on the queue."""

    def __init__(self, call: str, descriptor: Descriptor | None) -> None:
        text = "the queue is empty"
        if descriptor is not None:
            text = ", ".join(f"VIP_STATUS_{error.name}" for error in Status if error & descriptor.status & ERROR_MASK)
        errors.Error.__init__(self, call, ReturnCode.DESCRIPTOR_ERROR, "VIP_DESCRIPTOR_ERROR", text)
        self.descriptor = descriptor


def error_of(call: str, code: int) -> Error:
    """The exception for a failed call; the extension module calls it, too."""
    kind = TimeoutError if code == ReturnCode.TIMEOUT else Error
    member = ReturnCode(code)
    return kind(call, member, f"VIP_{member.name}", _TEXTS.get(member, ""))


class State(enum.IntEnum):
    """The states of a VI (VIP_STATE_)."""
    IDLE = _vipl.VIP_STATE_IDLE
    CONNECTED = _vipl.VIP_STATE_CONNECTED
    CONNECT_PENDING = _vipl.VIP_STATE_CONNECT_PENDING
    ERROR = _vipl.VIP_STATE_ERROR


class ReliabilityLevel(enum.IntFlag):
    """What a connection promises (VIP_SERVICE_): messages at most once; exactly once and in order; and, the last, sends
    that complete once the data are in the peer's memory."""
    UNRELIABLE = _vipl.VIP_SERVICE_UNRELIABLE
    RELIABLE_DELIVERY = _vipl.VIP_SERVICE_RELIABLE_DELIVERY
    RELIABLE_RECEPTION = _vipl.VIP_SERVICE_RELIABLE_RECEPTION


class ErrorCode(enum.IntEnum):
    """What happened unasked (VIP_ERROR_)."""
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


class ResourceCode(enum.IntEnum):
    """What it happened to (VIP_RESOURCE_)."""
    NIC = _vipl.VIP_RESOURCE_NIC
    VI = _vipl.VIP_RESOURCE_VI
    CQ = _vipl.VIP_RESOURCE_CQ
    DESCRIPTOR = _vipl.VIP_RESOURCE_DESCRIPTOR


class NetAddress(typing.NamedTuple):
    """The address of a NIC and a discriminator, which tells its services apart (VIP_NET_ADDRESS). One of two bytes is
    the same service as the port of librpma, or the connection qualifier of DAT, of that number, big endian."""
    host: bytes
    discriminator: bytes = b""


Discriminator = typing.Union[int, str, bytes]


def discriminator_bytes(value: Discriminator) -> bytes:
    if isinstance(value, int):
        return value.to_bytes(2, "big")
    return value.encode() if isinstance(value, str) else value


def to_raw_address(address: NetAddress) -> _vipl.VIP_NET_ADDRESS:
    return _vipl.VIP_NET_ADDRESS(*address)


def from_raw_address(raw: _vipl.VIP_NET_ADDRESS) -> NetAddress:
    return NetAddress(raw.HostAddress[:raw.HostAddressLen], raw.HostAddress[raw.HostAddressLen:])


@dataclasses.dataclass(frozen=True)
class NicAttributes:
    """What a NIC is and can do (VIP_NIC_ATTRIBUTES). Lengths and sizes are in bytes."""
    name: str
    hardware_version: int
    provider_version: int
    local_nic_address: bytes
    thread_safe: bool
    max_discriminator_len: int
    max_register_bytes: int
    max_register_regions: int
    max_register_block_bytes: int
    max_vi: int
    max_descriptors_per_queue: int
    max_segments_per_desc: int
    max_cq: int
    max_cq_entries: int
    max_transfer_size: int
    native_mtu: int
    max_ptags: int
    reliability_level_support: ReliabilityLevel
    rdma_read_support: ReliabilityLevel


@dataclasses.dataclass(frozen=True)
class ViAttributes:
    """What a VI is to be (VIP_VI_ATTRIBUTES). Both ends of a connection need the same level, transfer size and quality
    of service.

    max_transfer_size                   bytes of one descriptor; None: the most that the NIC takes
    qos                                 quality of service; 0 is the only one there is
    ptag                                the protection tag; None: that of the NIC or, of a peer, not known
    enable_rdma_write, enable_rdma_read what the peer may do to memory that allows it
    """
    reliability_level: ReliabilityLevel = ReliabilityLevel.RELIABLE_DELIVERY
    max_transfer_size: int | None = None
    qos: int = 0
    ptag: Ptag | None = None
    enable_rdma_write: bool = False
    enable_rdma_read: bool = False


@dataclasses.dataclass(frozen=True)
class MemAttributes:
    """What a region is to be (VIP_MEM_ATTRIBUTES): its protection tag (None: that of the NIC), and what peers may
    do."""
    ptag: Ptag | None = None
    enable_rdma_write: bool = False
    enable_rdma_read: bool = False


class ViInfo(typing.NamedTuple):
    """What Vi.query() tells. A queue is empty where nothing is posted or waits to be taken."""
    state: State
    attributes: ViAttributes
    send_queue_empty: bool
    recv_queue_empty: bool


class ErrorDescriptor(typing.NamedTuple):
    """An asynchronous error (VIP_ERROR_DESCRIPTOR); None where no such object is concerned."""
    nic: Nic
    vi: Vi | None
    cq: CompletionQueue | None
    descriptor: Descriptor | None
    operation: StatusOperation
    resource_code: ResourceCode
    error_code: ErrorCode


class Handled(Resource):
    """What has a handle in VIPL. One that is closed keeps its own, which is invalid then, as calls tell."""

    handle: int

    def __init__(self, handle: int, *parents: Resource) -> None:
        self.handle = handle
        super().__init__(*parents)
