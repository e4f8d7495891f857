# SPDX-License-Identifier: BSD-3-Clause
"""The structures of DAT. Their fields have the names of C."""
from __future__ import annotations

import dataclasses
import enum
import typing

from viaduct import _dat
from viaduct.dat.constants import (CompletionFlags, EpCreatorForPsp, EpState, EvdFlags, EvdState, Extension, HaLb,
                                   IovOwnership, MemPrivFlags, MemType, ProxyType, PspFlags, PzSupport, Qos, RmrScope,
                                   ServiceType, SrqState, VaType)

__all__ = ["Address", "Comm", "CnoParam", "CrParam", "CspParam", "EpAttr", "EpParam", "EvdParam", "IaAttr",
           "LmrParam", "LmrTriplet", "ProviderAttr", "ProviderInfo", "PspParam", "PzParam", "RmrParam", "RmrTriplet",
           "RspParam", "SrqParam"]

Address = typing.Tuple[str, int]  # an address in digits, and a port
NamedAttr = typing.Tuple[str, str]
S = typing.TypeVar("S", bound="Structure")


class RmrTriplet(typing.NamedTuple):
    """A piece of the peer's memory."""
    virtual_address: int
    segment_length: int
    rmr_context: int


class _LmrTriplet(typing.NamedTuple):
    virtual_address: int
    segment_length: int
    lmr_context: int


class LmrTriplet(_LmrTriplet):
    """A piece of local memory. A piece created by an Lmr keeps the region open; its `view` is the memory."""
    view: memoryview
    lmr: object


@dataclasses.dataclass
class Structure:
    """A dataclass created from the output of the library."""

    @classmethod
    def _of(cls: type[S], raw: dict[str, typing.Any]) -> S:
        """Returns the structure for a dictionary of fields. A field whose default is a member of an enumeration, or a
        structure, gets a value of that type."""
        values = dict(raw)
        for field in dataclasses.fields(cls):
            if isinstance(field.default, enum.Enum):
                values[field.name] = type(field.default)(raw[field.name])
            elif isinstance(field.default_factory, type) and issubclass(field.default_factory, Structure):
                values[field.name] = field.default_factory._of(raw[field.name])
        return cls(**values)


@dataclasses.dataclass
class ProviderInfo(Structure):
    """An entry of the registry: the name of an adapter, and the version of DAT of its provider."""
    ia_name: str = ""
    dapl_version_major: int = _dat.DAT_VERSION_MAJOR
    dapl_version_minor: int = _dat.DAT_VERSION_MINOR
    is_thread_safe: bool = True


@dataclasses.dataclass
class IaAttr(Structure):
    """The attributes and limits of an adapter. Sizes are in bytes."""
    adapter_name: str = ""
    vendor_name: str = ""
    hardware_version_major: int = 0
    hardware_version_minor: int = 0
    firmware_version_major: int = 0
    firmware_version_minor: int = 0
    ia_address_ptr: Address | None = None
    max_eps: int = 0
    max_dto_per_ep: int = 0
    max_rdma_read_per_ep_in: int = 0
    max_rdma_read_per_ep_out: int = 0
    max_evds: int = 0
    max_evd_qlen: int = 0
    max_iov_segments_per_dto: int = 0
    max_lmrs: int = 0
    max_lmr_block_size: int = 0
    max_lmr_virtual_address: int = 0
    max_pzs: int = 0
    max_message_size: int = 0
    max_rdma_size: int = 0
    max_rmrs: int = 0
    max_rmr_target_address: int = 0
    max_srqs: int = 0
    max_ep_per_srq: int = 0
    max_recv_per_srq: int = 0
    max_iov_segments_per_rdma_read: int = 0
    max_iov_segments_per_rdma_write: int = 0
    max_rdma_read_in: int = 0
    max_rdma_read_out: int = 0
    max_rdma_read_per_ep_in_guaranteed: bool = False
    max_rdma_read_per_ep_out_guaranteed: bool = False
    zb_supported: bool = False
    extension_supported: Extension = Extension.NONE
    extension_version: int = 0
    transport_attr: list[NamedAttr] = dataclasses.field(default_factory=list)
    vendor_attr: list[NamedAttr] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class ProviderAttr(Structure):
    """The attributes of a provider.

    evd_stream_merging_supported[a][b]: one EVD takes events of the kinds a and b (software, connection request, DTO,
    connection, RMR bind, asynchronous). provider_specific_attr: among others, what the InfiniBand extension supports;
    the names are constants of viaduct._dat (DAT_IB_ATTR_IMMED_DATA).
    """
    provider_name: str = ""
    provider_version_major: int = 0
    provider_version_minor: int = 0
    dapl_version_major: int = 0
    dapl_version_minor: int = 0
    lmr_mem_types_supported: int = 0
    iov_ownership_on_return: IovOwnership = IovOwnership.CONSUMER
    dat_qos_supported: Qos = Qos.BEST_EFFORT
    completion_flags_supported: CompletionFlags = CompletionFlags.DEFAULT
    is_thread_safe: bool = False
    max_private_data_size: int = 0
    supports_multipath: bool = False
    ep_creator: EpCreatorForPsp = EpCreatorForPsp.NEVER
    pz_support: PzSupport = PzSupport.UNIQUE
    optimal_buffer_alignment: int = 0
    evd_stream_merging_supported: tuple[tuple[bool, ...], ...] = ()
    srq_supported: bool = False
    srq_watermarks_supported: int = 0
    srq_ep_pz_difference_supported: bool = False
    srq_info_supported: int = 0
    ep_recv_info_supported: int = 0
    lmr_sync_req: bool = False
    dto_async_return_guaranteed: bool = False
    rdma_write_for_rdma_read_req: bool = False
    rdma_read_lmr_rmr_context_exposure: bool = False
    rmr_scope_supported: RmrScope = RmrScope.EP
    is_signal_safe: bool = False
    ha_supported: bool = False
    ha_loadbalancing: HaLb = HaLb.NONE
    provider_specific_attr: list[NamedAttr] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class PzParam(Structure):
    """The parameters of a protection zone."""
    ia_handle: int = 0


@dataclasses.dataclass
class LmrParam(Structure):
    """The parameters of a local memory region. region_desc: an address, or the handle of another region."""
    ia_handle: int = 0
    mem_type: MemType = MemType.VIRTUAL
    region_desc: int = 0
    length: int = 0
    pz_handle: int = 0
    mem_priv: MemPrivFlags = MemPrivFlags.NONE
    va_type: VaType = VaType.VA
    lmr_context: int = 0
    rmr_context: int = 0
    registered_size: int = 0
    registered_address: int = 0


@dataclasses.dataclass
class RmrParam(Structure):
    """The parameters of a remote memory region. lmr_triplet: (address, length, LMR context)."""
    ia_handle: int = 0
    pz_handle: int = 0
    lmr_triplet: tuple[int, int, int] = (0, 0, 0)
    mem_priv: MemPrivFlags = MemPrivFlags.NONE
    rmr_context: int = 0
    rmr_scope: RmrScope = RmrScope.EP
    va_type: VaType = VaType.VA


@dataclasses.dataclass
class Comm(Structure):
    """A communicator: the arguments of socket(2)."""
    domain: int = 0
    type: int = 0
    protocol: int = 0


@dataclasses.dataclass
class EpAttr(Structure):
    """The attributes of an endpoint. Sizes are in bytes (0: no limit), lengths of queues in operations, lists of memory
    pieces in pieces."""
    service_type: ServiceType = ServiceType.RC
    max_message_size: int = 0
    max_rdma_size: int = 0
    qos: Qos = Qos.BEST_EFFORT
    recv_completion_flags: CompletionFlags = CompletionFlags.DEFAULT
    request_completion_flags: CompletionFlags = CompletionFlags.DEFAULT
    max_recv_dtos: int = 16
    max_request_dtos: int = 16
    max_recv_iov: int = 4
    max_request_iov: int = 4
    max_rdma_read_in: int = 4
    max_rdma_read_out: int = 4
    srq_soft_hw: int = _dat.DAT_HW_DEFAULT
    max_rdma_read_iov: int = 1
    max_rdma_write_iov: int = 0
    ep_transport_specific: list[NamedAttr] = dataclasses.field(default_factory=list)
    ep_provider_specific: list[NamedAttr] = dataclasses.field(default_factory=list)

    def _settable(self) -> dict[str, typing.Any]:
        """The fields that the program may set."""
        return {name: value for name, value in vars(self).items() if not name.endswith("_specific")}


@dataclasses.dataclass
class EpParam(Structure):
    """The parameters of an endpoint and of its connection."""
    ia_handle: int = 0
    ep_state: EpState = EpState.UNCONNECTED
    comm: Comm = dataclasses.field(default_factory=Comm)
    local_ia_address_ptr: Address | None = None
    local_port_qual: int = 0
    remote_ia_address_ptr: Address | None = None
    remote_port_qual: int = 0
    pz_handle: int = 0
    recv_evd_handle: int = 0
    request_evd_handle: int = 0
    connect_evd_handle: int = 0
    srq_handle: int = 0
    ep_attr: EpAttr = dataclasses.field(default_factory=EpAttr)


@dataclasses.dataclass
class SrqParam(Structure):
    """The parameters of a shared receive queue. Counts that the provider does not maintain are DAT_VALUE_UNKNOWN."""
    ia_handle: int = 0
    srq_state: SrqState = SrqState.OPERATIONAL
    pz_handle: int = 0
    max_recv_dtos: int = 0
    max_recv_iov: int = 0
    low_watermark: int = 0
    available_dto_count: int = 0
    outstanding_dto_count: int = 0


@dataclasses.dataclass
class PspParam(Structure):
    """The parameters of a public service point."""
    ia_handle: int = 0
    conn_qual: int = 0
    evd_handle: int = 0
    psp_flags: PspFlags = PspFlags.CONSUMER


@dataclasses.dataclass
class RspParam(Structure):
    """The parameters of a reserved service point."""
    ia_handle: int = 0
    conn_qual: int = 0
    evd_handle: int = 0
    ep_handle: int = 0


@dataclasses.dataclass
class CspParam(Structure):
    """The parameters of a common service point."""
    ia_handle: int = 0
    comm: Comm = dataclasses.field(default_factory=Comm)
    address_ptr: Address | None = None
    evd_handle: int = 0


@dataclasses.dataclass
class CrParam(Structure):
    """The parameters of a connection request. private_data: over RDMA devices it may be padded with zeros."""
    remote_ia_address_ptr: Address | None = None
    remote_port_qual: int = 0
    private_data: bytes = b""
    local_ep_handle: int = 0


@dataclasses.dataclass
class EvdParam(Structure):
    """The parameters of an event dispatcher."""
    ia_handle: int = 0
    evd_qlen: int = 0
    evd_state: EvdState = EvdState.ENABLED
    cno_handle: int = 0
    evd_flags: EvdFlags = EvdFlags.DEFAULT


@dataclasses.dataclass
class CnoParam(Structure):
    """The parameters of a consumer notification object. proxy: a callable, a file descriptor, or None."""
    ia_handle: int = 0
    proxy_type: ProxyType = ProxyType.NONE
    proxy: typing.Any = None
