# SPDX-License-Identifier: BSD-3-Clause
"""VIPL, the Virtual Interface Provider Library of the "Intel Virtual Interface Architecture Developer's Guide".

A server and a client, each a process:

    with vipl.open_nic() as nic:
        vi = nic.create_vi()
        region = nic.register_mem(bytearray(64))
        vi.post_recv(region[:])
        nic.connect_wait(4711, timeout=5).accept(vi)
        print(bytes(vi.recv_wait(timeout=5).data))

    with vipl.open_nic() as nic:
        vi = nic.create_vi()
        region = nic.register_mem(bytearray(b"over the valley"))
        vi.connect_request(nic.net_address(4711), timeout=5)
        vi.post_send(region[:])
        vi.send_wait(timeout=5)

Names are those of the guide without their prefix and their object: VipConnectRequest is Vi.connect_request. What a call
of the guide needs besides, and most programs choose alike, has defaults: a protection tag, descriptors, attributes.

Calls that fail raise Error, whose `code` is a ReturnCode; where a time-out has passed, TimeoutError; where a descriptor
completed with an error, DescriptorError. Time-outs are in seconds, None waits for ever, and Ctrl-C ends every wait.
Every object may be used by several threads at once. A connection that breaks is told by Nic.error_callback().
"""
from __future__ import annotations

import ipaddress
import typing
import weakref

from viaduct import _naming, _vipl
from viaduct._vipl_values import (Discriminator, Error, ErrorCode, ErrorDescriptor, DescriptorError, Handled,
                                  MemAttributes, NetAddress, NicAttributes, ReliabilityLevel, ResourceCode, ReturnCode,
                                  State, TimeoutError, ViAttributes, ViInfo, discriminator_bytes, from_raw_address,
                                  to_raw_address)
from viaduct._vipl_values import error_of as _error
from viaduct._vipl_vi import Vi
from viaduct._vipl_waiting import Arrivals, in_thread, result_in_time, result_in_time_async
from viaduct._vipl_work import (Control, Descriptor, DescriptorPool, Operation, Remote, Segment, Segments, Status,
                                StatusOperation)
from viaduct.memory import Buffer, Pinned, alloc

__all__ = ["CompletionQueue", "ConnectionRequest", "Control", "CqEntry", "Descriptor", "DescriptorError", "Error",
           "ErrorCode", "ErrorDescriptor", "MemAttributes", "NetAddress", "Nic", "NicAttributes", "Operation", "Ptag",
           "Region", "ReliabilityLevel", "Remote", "ResourceCode", "ReturnCode", "Segment", "State", "Status",
           "StatusOperation", "TimeoutError", "Vi", "ViAttributes", "ViInfo", "alloc", "open_nic"]


def open_nic(name: str = "VINIC") -> Nic:
    """VipOpenNic. Opens a network interface: "VINIC", "VINIC0", "VINIC1" ..., historical names, or those of
    viaduct.core.devices(). Raises Error: INVALID_PARAMETER (no such NIC), ERROR_RESOURCE."""
    return Nic(_vipl.VipOpenNic(name))


class Nic(Handled):
    """An open network interface. open_nic() makes it; close() is VipCloseNic.

    attributes      what it is and can do
    """

    def __init__(self, handle: int) -> None:
        super().__init__(handle)
        self._ptag: Ptag | None = None
        self._ptags: weakref.WeakValueDictionary[int, Ptag] = weakref.WeakValueDictionary()
        self._vis: weakref.WeakValueDictionary[int, Vi] = weakref.WeakValueDictionary()
        self._cqs: weakref.WeakValueDictionary[int, CompletionQueue] = weakref.WeakValueDictionary()
        self.attributes = self.query()

    def _release(self) -> None:
        _vipl.VipCloseNic(self.handle)

    def query(self) -> NicAttributes:
        """VipQueryNic."""
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
        """The protection tag of what is made without another one."""
        if self._ptag is None or self._ptag.closed:
            self._ptag = self.create_ptag()
        return self._ptag

    def create_ptag(self) -> Ptag:
        """VipCreatePtag. Raises Error(ERROR_RESOURCE)."""
        return Ptag(self, _vipl.VipCreatePtag(self.handle))

    def register_mem(self, memory: Buffer | int, attributes: MemAttributes = MemAttributes()) -> Region:
        """VipRegisterMem. Registers a buffer, or that many bytes of new shareable memory (viaduct.alloc). The buffer is
        not copied, and stays where it is until the region is closed. Raises Error: INVALID_PARAMETER (no memory),
        INVALID_PTAG, ERROR_RESOURCE; TypeError for what is no buffer; ValueError where peers are to write what is only
        read, such as bytes."""
        return Region(self, Pinned(alloc(memory) if isinstance(memory, int) else memory), attributes)

    def create_cq(self, entries: int = 256) -> CompletionQueue:
        """VipCreateCQ. Raises Error: INVALID_PARAMETER (no entries), ERROR_RESOURCE (too many)."""
        return CompletionQueue(self, _vipl.VipCreateCQ(self.handle, entries))

    def create_vi(self, attributes: ViAttributes = ViAttributes(), send_cq: CompletionQueue | None = None,
                  recv_cq: CompletionQueue | None = None) -> Vi:
        """VipCreateVi. Makes an idle VI; the completions of its queues are found on the VI or, where one is given, by
        way of a completion queue. Raises Error: INVALID_RELIABILITY_LEVEL, INVALID_MTU, INVALID_QOS, INVALID_PTAG,
        INVALID_RDMAREAD, INVALID_PARAMETER (a queue of another NIC), ERROR_RESOURCE."""
        return Vi(self, attributes, send_cq, recv_cq)

    def _to_raw(self, attributes: ViAttributes) -> _vipl.VIP_VI_ATTRIBUTES:
        raw = _vipl.VIP_VI_ATTRIBUTES()
        raw.ReliabilityLevel = attributes.reliability_level
        size = attributes.max_transfer_size
        raw.MaxTransferSize = self.attributes.max_transfer_size if size is None else size
        raw.QoS = attributes.qos
        raw.Ptag = (attributes.ptag or self.ptag).handle
        raw.EnableRdmaWrite = attributes.enable_rdma_write
        raw.EnableRdmaRead = attributes.enable_rdma_read
        return raw

    def _from_raw(self, raw: _vipl.VIP_VI_ATTRIBUTES) -> ViAttributes:
        return ViAttributes(ReliabilityLevel(raw.ReliabilityLevel), raw.MaxTransferSize, raw.QoS,
                            self._ptags.get(raw.Ptag), bool(raw.EnableRdmaWrite), bool(raw.EnableRdmaRead))

    # ---- Connections ----

    def net_address(self, discriminator: Discriminator = b"", host: str | bytes | None = None) -> NetAddress:
        """An address: that of this NIC, or of another host's (bytes, or their text: "10.0.0.3"). Numbers are
        discriminators of two bytes. Raises ValueError where the text is no address."""
        if host is None:
            host = self.attributes.local_nic_address
        elif isinstance(host, str):
            host = ipaddress.ip_address(host).packed
        return NetAddress(host, discriminator_bytes(discriminator))

    def _address(self, address: NetAddress | Discriminator) -> _vipl.VIP_NET_ADDRESS:
        return to_raw_address(address if isinstance(address, NetAddress) else self.net_address(address))

    def connect_wait(self, local: NetAddress | Discriminator, timeout: float | None = None) -> ConnectionRequest:
        """VipConnectWait. Waits for a request with this discriminator at this NIC; 0: looks once. Clients that ask
        while no call waits get NO_MATCH. Raises TimeoutError; Error: INVALID_PARAMETER (not an address of this NIC)."""
        return ConnectionRequest(self, *_vipl.VipConnectWait(self.handle, self._address(local), timeout))

    async def connect_wait_async(self, local: NetAddress | Discriminator,
                                 timeout: float | None = None) -> ConnectionRequest:
        """As connect_wait(), for asyncio; a thread waits."""
        address = self._address(local)
        return await in_thread(
            lambda stop: ConnectionRequest(self, *_vipl.VipConnectWait(self.handle, address, timeout, stop)),
            ConnectionRequest.reject)

    # ---- Asynchronous errors ----

    def error_callback(self, handler: typing.Callable[[ErrorDescriptor], object] | None) -> None:
        """VipErrorCallback. The handler is called from a thread of the NIC, with one error at a time, from now on; what
        it raises goes to sys.unraisablehook. None: errors are logged."""
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
        """VipNSInit. Starts the name service, from a file in the format of /etc/hosts or else the system's. Raises
        Error: INVALID_PARAMETER (the file cannot be read), ERROR_NAMESERVICE (it runs already)."""
        _vipl.VipNSInit(self.handle, path)

    def ns_get_host_by_name(self, name: str, index: int = 0) -> NetAddress:
        """VipNSGetHostByName. An address of a host: the first one, second one ... Raises Error(ERROR_NAMESERVICE)."""
        return from_raw_address(_vipl.VipNSGetHostByName(self.handle, name, index))

    def ns_get_host_by_addr(self, address: NetAddress) -> str:
        """VipNSGetHostByAddr. The name of a host. Raises Error: ERROR_NAMESERVICE, INVALID_PARAMETER."""
        return _vipl.VipNSGetHostByAddr(self.handle, to_raw_address(address))

    def ns_shutdown(self) -> None:
        """VipNSShutdown. Raises Error(ERROR_NAMESERVICE) where it does not run."""
        _vipl.VipNSShutdown(self.handle)

    def query_system_management_info(self, number_of_hops: int = 1, *,
                                     info_type: int = _vipl.VIP_SMI_AUTODISCOVERY) -> list[NetAddress]:
        """VipQuerySystemManagementInfo. The NICs that are found within so many hops. Raises Error(ERROR_NOT_SUPPORTED)
        for another kind of information than autodiscovery."""
        return [from_raw_address(raw)
                for raw in _vipl.VipQuerySystemManagementInfo(self.handle, info_type, number_of_hops)]


def _on_error(context: typing.Any, raw: _vipl.VIP_ERROR_DESCRIPTOR) -> None:
    reference, handler = context
    nic = reference()
    if nic is not None:
        handler(nic._error_descriptor(raw))


class Ptag(Handled):
    """A protection tag: VIs use memory of their own tag only. Nic.create_ptag() makes it."""

    def __init__(self, nic: Nic, handle: int) -> None:
        super().__init__(handle, nic)
        self.nic = nic
        self._pool = DescriptorPool()
        self._chunks: list[Segment] = []
        nic._ptags[handle] = self

    def destroy(self) -> None:
        """VipDestroyPtag. Raises Error(ERROR_RESOURCE) where a VI or a region uses it; close() closes these first."""
        if not self._children:
            self._deregister_chunks()
        _vipl.VipDestroyPtag(self.nic.handle, self.handle)
        self._released()

    def _release(self) -> None:
        self._deregister_chunks()
        _vipl.VipDestroyPtag(self.nic.handle, self.handle)

    def descriptor(self, segments: Segments = (), operation: Operation = Operation.SENDRECV,
                   remote: Remote | None = None, immediate: int | None = None, fence: bool = False) -> Descriptor:
        """A descriptor in memory of this tag's own, which is used again when the descriptor is no more; the arguments
        are those of Descriptor.set()."""
        count = 1 if isinstance(segments, Segment) else len(segments)
        descriptor = self._pool.descriptor(count + (remote is not None), self._register_chunk)
        return descriptor.set(segments, operation, remote, immediate, fence)

    def _register_chunk(self, view: memoryview) -> Segment:
        pinned = Pinned(view)
        raw = _vipl.VIP_MEM_ATTRIBUTES()
        raw.Ptag = self.handle
        handle = _vipl.VipRegisterMem(self.nic.handle, pinned.address, pinned.nbytes, raw)
        self._chunks.append(Segment(pinned.address, handle, pinned.view))
        return self._chunks[-1]

    def _deregister_chunks(self) -> None:
        self._pool = DescriptorPool()
        while self._chunks:
            chunk = self._chunks.pop()
            _vipl.VipDeregisterMem(self.nic.handle, chunk.address, chunk.handle)


class Region(Handled):
    """Registered memory. Nic.register_mem() makes it.

    handle      its memory handle, which names it at peers, too
    view        its bytes
    remote      what peers need to reach it: send them its two numbers

    `region[8:16]` is a segment for descriptors.
    """

    def __init__(self, nic: Nic, pinned: Pinned, attributes: MemAttributes) -> None:
        self.nic = nic
        self._pinned = pinned
        self._ptag = attributes.ptag or nic.ptag
        raw = self._to_raw(attributes, self._ptag)
        super().__init__(_vipl.VipRegisterMem(nic.handle, pinned.address, pinned.nbytes, raw), nic, self._ptag)
        self.view = pinned.view

    def deregister(self) -> None:
        """VipDeregisterMem. Operations that come later, or are under way, end with a protection error. The same as
        close(), but with errors."""
        _vipl.VipDeregisterMem(self.nic.handle, self._pinned.address, self.handle)
        self._released()
        self._pinned.release()

    def _release(self) -> None:
        _vipl.VipDeregisterMem(self.nic.handle, self._pinned.address, self.handle)
        self._pinned.release()

    @property
    def remote(self) -> Remote:
        return Remote(self._pinned.address, self.handle)

    def __len__(self) -> int:
        return self._pinned.nbytes

    def __getitem__(self, part: slice) -> Segment:
        """Raises ValueError for steps."""
        start, stop = self._pinned.extent(part)
        return Segment(self._pinned.address + start, self.handle, self.view[start:stop])

    def descriptor(self, offset: int, segments: Segments = (), operation: Operation = Operation.SENDRECV,
                   remote: Remote | None = None, immediate: int | None = None, fence: bool = False) -> Descriptor:
        """A descriptor in this region, at a multiple of 64 bytes, with room for as many segments as it is given, or
        one; the arguments are those of Descriptor.set(). Ptag.descriptor() finds memory by itself. Raises ValueError
        where there is no room, or the place is not aligned."""
        count = 1 if isinstance(segments, Segment) else len(segments)
        place = self[offset:offset + 32 + 16 * max(count + (remote is not None), 1)]
        return Descriptor(place).set(segments, operation, remote, immediate, fence)

    def query(self) -> MemAttributes:
        """VipQueryMem."""
        raw = _vipl.VipQueryMem(self.nic.handle, self._pinned.address, self.handle)
        return MemAttributes(self.nic._ptags.get(raw.Ptag), bool(raw.EnableRdmaWrite), bool(raw.EnableRdmaRead))

    def set_attributes(self, attributes: MemAttributes) -> None:
        """VipSetMemAttributes. Raises Error: INVALID_PTAG, ERROR_NOT_SUPPORTED (by RDMA devices)."""
        ptag = attributes.ptag or self.nic.ptag
        _vipl.VipSetMemAttributes(self.nic.handle, self._pinned.address, self.handle, self._to_raw(attributes, ptag))
        self._depend_on(self.nic, ptag)
        self._ptag = ptag

    def _to_raw(self, attributes: MemAttributes, ptag: Ptag) -> _vipl.VIP_MEM_ATTRIBUTES:
        if attributes.enable_rdma_write and self._pinned.readonly:
            raise ValueError("the memory may not be written")
        raw = _vipl.VIP_MEM_ATTRIBUTES()
        raw.Ptag = ptag.handle
        raw.EnableRdmaWrite = attributes.enable_rdma_write
        raw.EnableRdmaRead = attributes.enable_rdma_read
        return raw


class CqEntry(typing.NamedTuple):
    """A queue that has a completed descriptor: that of a VI, for receives or for sends."""
    vi: Vi
    recv_queue: bool

    def done(self) -> Descriptor | None:
        """Takes the descriptor: Vi.recv_done() or Vi.send_done()."""
        return self.vi.recv_done() if self.recv_queue else self.vi.send_done()


class CompletionQueue(Handled):
    """Tells which of many queues have completed descriptors. Nic.create_cq() makes it, Nic.create_vi() connects it."""

    def __init__(self, nic: Nic, handle: int) -> None:
        super().__init__(handle, nic)
        self.nic = nic
        self._arrivals: Arrivals[CqEntry | None] = Arrivals()
        nic._cqs[handle] = self

    def destroy(self) -> None:
        """VipDestroyCQ. Raises Error(ERROR_RESOURCE) where a VI uses it; close() closes the VI first."""
        _vipl.VipDestroyCQ(self.handle)
        self._released()
        self._arrivals.fail(_error("VipCQNotify", ReturnCode.INVALID_PARAMETER))

    def _release(self) -> None:
        _vipl.VipDestroyCQ(self.handle)
        self._arrivals.fail(_error("VipCQNotify", ReturnCode.INVALID_PARAMETER))

    def resize(self, entries: int) -> None:
        """VipResizeCQ. Raises Error: INVALID_PARAMETER (no entries), ERROR_RESOURCE (too many, or too few for those
        that wait)."""
        _vipl.VipResizeCQ(self.handle, entries)

    def done(self) -> CqEntry | None:
        """VipCQDone. Takes the oldest entry; None where there is none."""
        entry = self._arrivals.take()
        while entry is None and (raw := _vipl.VipCQDone(self.handle)) is not None:
            entry = self._entry(*raw)
        return entry

    def wait(self, timeout: float | None = None) -> CqEntry:
        """VipCQWait. As done(), waiting for an entry. Raises TimeoutError."""
        entry = None
        while entry is None:
            if self._arrivals.busy:
                entry = result_in_time("VipCQWait", self._arrivals, self._ask, timeout)
            else:
                entry = self._entry(*_vipl.VipCQWait(self.handle, timeout))
        return entry

    async def wait_async(self, timeout: float | None = None) -> CqEntry:
        """As wait(), for asyncio."""
        entry = None
        while entry is None:
            entry = await result_in_time_async("VipCQWait", self._arrivals, self._ask, timeout)
        return entry

    def notify(self, handler: typing.Callable[[CompletionQueue, CqEntry | None], object]) -> None:
        """VipCQNotify. Calls the handler once, with the next entry, from a thread of the queue; None: that of a VI that
        is gone by now. What it raises goes to sys.unraisablehook."""
        _vipl.VipCQNotify(self.handle, (weakref.ref(self), handler), _on_entry)

    def _entry(self, vi: int, recv_queue: bool) -> CqEntry | None:
        """None: the VI is gone by now."""
        found = self.nic._vis.get(vi)
        return None if found is None else CqEntry(found, recv_queue)

    def _ask(self) -> None:
        _vipl.VipCQNotify(self.handle, (weakref.ref(self), CompletionQueue._arrive), _on_entry)

    def _arrive(self, entry: CqEntry | None) -> None:
        self._arrivals.put(entry)


def _on_entry(context: typing.Any, nic: int, vi: int, recv_queue: bool) -> None:
    reference, handler = context
    cq = reference()
    if cq is not None:
        handler(cq, cq._entry(vi, recv_queue))


class ConnectionRequest(Handled):
    """A request for a connection. Nic.connect_wait() makes it. One that is closed without an answer is refused.

    remote_address, remote_attributes   of the VI that asks
    """

    def __init__(self, nic: Nic, remote: _vipl.VIP_NET_ADDRESS, attributes: _vipl.VIP_VI_ATTRIBUTES,
                 handle: int) -> None:
        super().__init__(handle, nic)
        self.nic = nic
        self.remote_address = from_raw_address(remote)
        self.remote_attributes = nic._from_raw(attributes)

    def accept(self, vi: Vi) -> None:
        """VipConnectAccept. Connects an idle VI with the peer's. Raises TimeoutError: the peer has given up; Error:
        INVALID_RELIABILITY_LEVEL, INVALID_MTU, INVALID_QOS (not those of the peer: another VI may be tried),
        INVALID_STATE (not idle)."""
        try:
            _vipl.VipConnectAccept(self.handle, vi.handle)
        except TimeoutError:
            self._released()
            raise
        self._released()

    def reject(self) -> None:
        """VipConnectReject. Refuses; the peer gets REJECT."""
        _vipl.VipConnectReject(self.handle)
        self._released()

    def _release(self) -> None:
        _vipl.VipConnectReject(self.handle)


_naming.adopt(__name__, __all__)
