# SPDX-License-Identifier: BSD-3-Clause
"""Network interfaces."""
from __future__ import annotations

import dataclasses
import ipaddress
import typing
import weakref

from viaduct import _core, _lifetime, _vipl
from viaduct._arguments import awaits, checked
from viaduct.memory import Buffer, Pinned, buffer_of
from viaduct.vipl.addresses import Discriminator, NetAddress, discriminator_bytes, from_raw_address
from viaduct.vipl.completion_queues import CompletionQueue
from viaduct.vipl.connections import ConnectionRequest
from viaduct.vipl.constants import ErrorCode, ReliabilityLevel, ResourceCode, StatusOperation
from viaduct.vipl.descriptors import Descriptor
from viaduct.vipl.memory import MemAttributes, Ptag, Region
from viaduct.vipl.objects import Handled
from viaduct.vipl.vis import Vi, ViAttributes
from viaduct.vipl.waiting import in_thread


@checked
def open_nic(name: str = "VINIC") -> Nic:
    """VipOpenNic. Opens a network interface, and returns it.

    name: "VINIC", which is the default device; "VINIC0", "VINIC1" ...; names of historical implementations; or a name
    of viaduct.core.devices(). Raises Error: INVALID_PARAMETER (there is no such NIC), ERROR_RESOURCE.
    """
    return Nic(name)


@dataclasses.dataclass(frozen=True)
class NicAttributes:
    """The attributes and limits of a NIC (VIP_NIC_ATTRIBUTES). Lengths and sizes are in bytes."""
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


class ErrorDescriptor(typing.NamedTuple):
    """An asynchronous error (VIP_ERROR_DESCRIPTOR). Fields for objects that it does not concern are None."""
    nic: Nic
    vi: Vi | None
    cq: CompletionQueue | None
    descriptor: Descriptor | None
    operation: StatusOperation
    resource_code: ResourceCode
    error_code: ErrorCode


class Nic(Handled):
    """An open network interface. Created by open_nic(); close() is VipCloseNic.

    attributes    its attributes and limits

    Handlers must not close the NIC.
    """

    def __init__(self, name: str) -> None:
        own = _core.Owned(_vipl, "VipCloseNic", _vipl.VipOpenNic, name)
        self.handle = own.handle
        self._ptag: Ptag | None = None
        self._ptags: weakref.WeakValueDictionary[int, Ptag] = weakref.WeakValueDictionary()
        self._vis: weakref.WeakValueDictionary[int, Vi] = weakref.WeakValueDictionary()
        self._cqs: weakref.WeakValueDictionary[int, CompletionQueue] = weakref.WeakValueDictionary()
        self.attributes = self.query()
        super().__init__(own)

    def _description(self) -> str:
        return self.attributes.name

    def query(self) -> NicAttributes:
        """VipQueryNic. Returns the attributes."""
        raw = _vipl.VipQueryNic(self.handle)
        return NicAttributes(raw.Name, raw.HardwareVersion, raw.ProviderVersion, raw.LocalNicAddress,
                             bool(raw.ThreadSafe), raw.MaxDiscriminatorLen, raw.MaxRegisterBytes,
                             raw.MaxRegisterRegions, raw.MaxRegisterBlockBytes, raw.MaxVI, raw.MaxDescriptorsPerQueue,
                             raw.MaxSegmentsPerDesc, raw.MaxCQ, raw.MaxCQEntries, raw.MaxTransferSize, raw.NativeMTU,
                             raw.MaxPtags, ReliabilityLevel(raw.ReliabilityLevelSupport),
                             ReliabilityLevel(raw.RDMAReadSupport))

    # ---- Objects on the NIC ----

    @property
    def ptag(self) -> Ptag:
        """The protection tag of objects created without one."""
        return _lifetime.only_one(self, "_ptag", self.create_ptag)

    def create_ptag(self) -> Ptag:
        """VipCreatePtag. Returns a new protection tag. Raises Error(ERROR_RESOURCE) if the NIC has no more tags."""
        return Ptag(self)

    def register_mem(self, memory: Buffer | int, attributes: MemAttributes = MemAttributes()) -> Region:
        """VipRegisterMem. Registers a buffer, or that many bytes of new memory (viaduct.alloc()), and returns the
        region.

        The buffer is not copied, and can neither be moved nor resized until the region is closed. Raises Error:
        INVALID_PARAMETER (no bytes), INVALID_PTAG, ERROR_RESOURCE; TypeError if the object has no buffer;
        BufferError if the buffer is not contiguous; ValueError if peers may write to read-only memory, such as
        bytes.
        """
        return Region(self, Pinned(buffer_of(memory)), attributes)

    def create_cq(self, entries: int = 256) -> CompletionQueue:
        """VipCreateCQ. Returns a completion queue for that many entries. Raises Error: INVALID_PARAMETER (0),
        ERROR_RESOURCE (more than the NIC supports)."""
        return CompletionQueue(self, entries)

    def create_vi(self, attributes: ViAttributes = ViAttributes(), send_cq: CompletionQueue | None = None,
                  recv_cq: CompletionQueue | None = None) -> Vi:
        """VipCreateVi. Returns a new VI, which is idle.

        send_cq, recv_cq: completion queues that report completed descriptors of its queues. Raises Error:
        INVALID_RELIABILITY_LEVEL, INVALID_MTU, INVALID_QOS, INVALID_PTAG, INVALID_RDMAREAD, INVALID_PARAMETER (a
        completion queue of another NIC), ERROR_RESOURCE.
        """
        return Vi(self, attributes, send_cq, recv_cq)

    def _to_raw(self, attributes: ViAttributes, ptag: Ptag) -> _vipl.VIP_VI_ATTRIBUTES:
        raw = _vipl.VIP_VI_ATTRIBUTES()
        raw.ReliabilityLevel = attributes.reliability_level
        size = attributes.max_transfer_size
        raw.MaxTransferSize = self.attributes.max_transfer_size if size is None else size
        raw.QoS = attributes.qos
        raw.Ptag = ptag.handle
        raw.EnableRdmaWrite = attributes.enable_rdma_write
        raw.EnableRdmaRead = attributes.enable_rdma_read
        return raw

    def _from_raw(self, raw: _vipl.VIP_VI_ATTRIBUTES) -> ViAttributes:
        return ViAttributes(ReliabilityLevel(raw.ReliabilityLevel), raw.MaxTransferSize, raw.QoS,
                            self._ptags.get(raw.Ptag), bool(raw.EnableRdmaWrite), bool(raw.EnableRdmaRead))

    # ---- Connections ----

    def net_address(self, discriminator: Discriminator = b"", host: str | bytes | None = None) -> NetAddress:
        """Returns an address: that of this NIC or, with `host`, that of another one.

        host: bytes, or an address in digits ("10.0.0.3"). A number as discriminator means two bytes, big-endian.
        Raises ValueError if the text is not an address, OverflowError if the number is not below 65536.
        """
        if host is None:
            host = self.attributes.local_nic_address
        elif isinstance(host, str):
            host = ipaddress.ip_address(host).packed
        return NetAddress(host, discriminator_bytes(discriminator))

    def _address(self, address: NetAddress | Discriminator) -> _vipl.VIP_NET_ADDRESS:
        """Returns an address, or that of this NIC with a discriminator, as the structure of C."""
        return _vipl.VIP_NET_ADDRESS(*(address if isinstance(address, NetAddress) else self.net_address(address)))

    @awaits("connection request")
    def connect_wait(self, local: NetAddress | Discriminator, timeout: float | None = None) -> ConnectionRequest:
        """VipConnectWait. Waits for a request with this discriminator, and returns it.

        Clients that connect while no call waits get NO_MATCH. Raises TimeoutError after `timeout` seconds (0: checks
        once); Error(INVALID_PARAMETER) if `local` is not an address of this NIC.
        """
        return self._request(self._address(local), timeout)

    @awaits("connection request")
    async def connect_wait_async(self, local: NetAddress | Discriminator,
                                 timeout: float | None = None) -> ConnectionRequest:
        """Waits for a request with this discriminator in a thread of its own, without blocking the asyncio loop, and
        returns it. The errors are those of connect_wait()."""
        address = self._address(local)
        return await in_thread(
            lambda stop: self._request(address, timeout, stop), ConnectionRequest.reject)

    def _request(self, *arguments: object) -> ConnectionRequest:
        own = _core.Owned(_vipl, "VipConnectReject", _vipl.VipConnectWait, self.handle, *arguments)
        return ConnectionRequest(self, own)

    # ---- Asynchronous errors ----

    def error_callback(self, handler: typing.Callable[[ErrorDescriptor], object] | None) -> None:
        """VipErrorCallback. Sets a handler: handler(error) gets each asynchronous error, an ErrorDescriptor.

        A thread of the NIC makes the calls, one at a time; a call of the previous handler may still be running.
        Exceptions of the handler are passed to sys.unraisablehook. None: errors are logged.
        """
        _vipl.VipErrorCallback(self.handle, (weakref.ref(self), handler), handler and _on_error)

    def _error_descriptor(self, raw: _vipl.VIP_ERROR_DESCRIPTOR) -> ErrorDescriptor:
        vi = self._vis.get(raw.ViHandle)
        descriptor = vi._posted.get(raw.DescriptorPtr) if vi else None
        if vi and raw.ErrorCode in (ErrorCode.POST_DESC, ErrorCode.VI_OVERRUN):
            vi._take(raw.DescriptorPtr)  # it was not posted
        return ErrorDescriptor(self, vi, self._cqs.get(raw.CQHandle), descriptor, StatusOperation(raw.OpCode),
                               ResourceCode(raw.ResourceCode), ErrorCode(raw.ErrorCode))

    # ---- Names and surroundings ----

    def ns_init(self, path: str | None = None) -> None:
        """VipNSInit. Starts the name service, with a file in the format of /etc/hosts or, without `path`, the system's
        resolver. Raises Error: INVALID_PARAMETER (the file cannot be read), ERROR_NAMESERVICE (it is running already).
        """
        _vipl.VipNSInit(self.handle, path)

    def ns_get_host_by_name(self, name: str, index: int = 0) -> NetAddress:
        """VipNSGetHostByName. Returns an address of a host; index 0 is the first one, 1 the second.

        Waits for the system's resolver. Raises Error(ERROR_NAMESERVICE) if the name is not known, there is no such
        address, or the name service is not running.
        """
        return from_raw_address(_vipl.VipNSGetHostByName(self.handle, name, index))

    def ns_get_host_by_addr(self, address: NetAddress) -> str:
        """VipNSGetHostByAddr. Returns the name of a host. Raises Error: ERROR_NAMESERVICE (the address is not known, or
        the name service is not running), INVALID_PARAMETER."""
        return _vipl.VipNSGetHostByAddr(self.handle, _vipl.VIP_NET_ADDRESS(*address))

    def ns_shutdown(self) -> None:
        """VipNSShutdown. Stops the name service. Raises Error(ERROR_NAMESERVICE) if it is not running."""
        _vipl.VipNSShutdown(self.handle)

    def query_system_management_info(self, number_of_hops: int = 1, *,
                                     info_type: int = _vipl.VIP_SMI_AUTODISCOVERY) -> list[NetAddress]:
        """VipQuerySystemManagementInfo. Returns the addresses of the NICs that are found within that many hops. Raises
        Error(ERROR_NOT_SUPPORTED) for another info_type than VIP_SMI_AUTODISCOVERY."""
        return [from_raw_address(raw)
                for raw in _vipl.VipQuerySystemManagementInfo(self.handle, info_type, number_of_hops)]


def _on_error(context: typing.Any, raw: _vipl.VIP_ERROR_DESCRIPTOR) -> None:
    reference, handler = context
    nic = reference()
    if nic is not None:
        handler(nic._error_descriptor(raw))
