# SPDX-License-Identifier: BSD-3-Clause
"""DAT 2.0, the user's Direct Access Programming Library (uDAPL).

A server and a client, each a process:

    with dat.ia_open() as ia:
        evd = ia.evd_create(16)                                 # takes all events but software events
        pz = ia.pz_create()
        lmr = ia.lmr_create(bytearray(64), pz)
        ep = ia.ep_create(pz, evd, evd, evd)
        ep.post_recv(lmr[:], cookie=1)
        psp = ia.psp_create(7204, evd)
        evd.wait(timeout=5).cr.accept(ep)
        evd.wait(timeout=5)                                     # CONNECTION_EVENT_ESTABLISHED
        received = evd.wait(timeout=5)
        print(bytes(lmr.view[:received.transfered_length]))

    with dat.ia_open() as ia:
        evd = ia.evd_create(16)
        pz = ia.pz_create()
        lmr = ia.lmr_create(b"over the valley", pz)
        ep = ia.ep_create(pz, evd, evd, evd)
        ep.connect("127.0.0.1", 7204, timeout=5)
        evd.wait(timeout=5)
        ep.post_send(lmr[:])
        evd.wait(timeout=5)

Calls of the API are methods of the object that is their first argument, under their names without "dat_" and the
object: dat_evd_wait() is Evd.wait(), dat_ep_create() Ia.ep_create(). Results that are no success are raised as Error.
Structures keep the names of C, and constants are members of enumerations: DAT_EP_STATE_CONNECTED is EpState.CONNECTED,
of which help(dat.EpState) tells. The enumerations:

    results         ReturnType, ReturnSubtype
    adapters        Extension, HaLb, HaRelationship, IaCounterType, IovOwnership, PzSupport
    memory          MemPrivFlags, MemType, RmrScope, VaType
    endpoints       CloseFlags, ConnectFlags, EpState, Qos, ServiceType, SrqState
    service points  EpCreatorForPsp, PspFlags
    transfers       CompletionFlags, Dtos, DtoCompletionStatus, IbExtType, IbOp, IbStatus
    events          EventNumber, EvdFlags, EvdState, ProxyType, HandleType, and reasons: EpAsyncErrorReason ...
    queries         which fields they ask for, for each structure: EpParamMask ...

The raw calls are in viaduct._dat.

Time-outs are in seconds, and None waits for ever; lengths are in bytes, queues in entries. Every object may be used by
several threads at once.
"""
from __future__ import annotations

import builtins
import enum
import typing

from viaduct import _dat, _dat_events, _dat_structures, _naming, errors
from viaduct._dat_constants import *
from viaduct._dat_endpoints import Ep, Srq, create_ep
from viaduct._dat_events import *
from viaduct._dat_evd import Agent, Cno, Evd, create_cno, create_cno_with_fd, create_evd
from viaduct._dat_masks import *
from viaduct._dat_memory import Lmr, Pz, Rmr
from viaduct._dat_object import Counting, DatObject, counters_of, handle_of, object_of
from viaduct._dat_results import *
from viaduct._dat_service_points import Cr, Csp, Psp, Rsp
from viaduct._dat_structures import *
from viaduct.memory import Buffer

__all__ = ["Agent", "Cno", "ConnectionFailed", "Cr", "Csp", "DEFAULT_IA", "DatObject", "EVD_ASYNC_EXISTS", "Ep",
           "Error", "Evd", "Ia", "Lmr", "Psp", "Pz", "Rmr", "Rsp", "Srq", "TimeoutError", "get_ia_handle", "ia_open",
           "ib_open_query", "registry_add_provider", "registry_list_providers", "registry_providers_related",
           "registry_remove_provider", "strerror"]
__all__ += _dat_events.__all__ + _dat_structures.__all__  # enumerations have pages of their own: help(dat.EpState)

DEFAULT_IA = "viaduct-lo"  # this host; another device where VIADUCT_BACKEND or VIADUCT_DEVICE says so
EVD_ASYNC_EXISTS = _dat.DAT_EVD_ASYNC_EXISTS  # for ia_open(): another opening of this adapter has the EVD of its errors


class Error(errors.Error):
    """A call failed.

    code        a ReturnType (of ConnectionFailed an EventNumber)
    subtype     a ReturnSubtype: which argument, state or resource it was
    """

    def __init__(self, call: str, code: enum.IntEnum, subtype: ReturnSubtype, name: str, text: str) -> None:
        super().__init__(call, code, name, text)
        self.subtype = subtype

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.call, self.code, self.subtype, self.name, self.text)


class TimeoutError(Error, errors.TimeoutError):
    """A time-out has passed."""


class ConnectionFailed(Error, builtins.ConnectionError):
    """An endpoint was not connected: `code` is the EventNumber that tells why."""


def strerror(result: int) -> tuple[str, str]:
    """The names of the type and the subtype of a result. Raises Error(INVALID_PARAMETER) where it is none."""
    return _dat.dat_strerror(result)


def _error(call: str, result: int) -> Error:
    """What a call raises that returned `result`."""
    try:
        name, subname = strerror(result)
    except Error:
        name, subname = f"DAT_RETURN {result:#010x}", ""
    try:
        code = ReturnType(result & _dat.DAT_TYPE_MASK)
        subtype = ReturnSubtype(result & _dat.DAT_SUBTYPE_MASK)
    except ValueError:  # of another provider
        code, subtype = ReturnType.INTERNAL_ERROR, ReturnSubtype.NO_SUBTYPE
    timed_out = code is ReturnType.TIMEOUT_EXPIRED or (call, code) == ("dat_cno_wait", ReturnType.QUEUE_EMPTY)
    text = "" if subtype is ReturnSubtype.NO_SUBTYPE else subname
    return (TimeoutError if timed_out else Error)(call, code, subtype, name, text)


def _connection_error(call: str, event: ConnectionEvent) -> Error:
    number = event.event_number
    timed_out = number is EventNumber.CONNECTION_EVENT_TIMED_OUT
    return (TimeoutError if timed_out else ConnectionFailed)(call, number, ReturnSubtype.NO_SUBTYPE,
                                                             "DAT_" + number.name, "")


# ---- The registry ----------------------------------------------------------------------------------------------------

def registry_list_providers(max_to_return: int | None = None) -> list[ProviderInfo]:
    """The adapters that can be opened: those of dat.conf, and Viaduct's own; or the first `max_to_return`."""
    room = 64 if max_to_return is None else max_to_return
    raw = _dat.dat_registry_list_providers(room)
    while max_to_return is None and len(raw) == room:
        room *= 2
        raw = _dat.dat_registry_list_providers(room)
    return [ProviderInfo._of(entry) for entry in raw]


def registry_add_provider(provider: int, info: ProviderInfo) -> None:
    """Registers a provider: the address of its DAT_PROVIDER, which must live until it is removed."""
    _dat.dat_registry_add_provider(provider, vars(info))


def registry_remove_provider(provider: int, info: ProviderInfo) -> None:
    """Takes a provider back."""
    _dat.dat_registry_remove_provider(provider, vars(info))


def registry_providers_related(name: str, other_name: str) -> HaRelationship:
    """Whether one adapter can stand in for another."""
    return HaRelationship(_dat.dat_registry_providers_related(name, other_name))


def get_ia_handle(ia: int) -> int:
    """The provider's handle of an adapter that has this number, or the number that has this handle
    (dats_get_ia_handle)."""
    return _dat.dats_get_ia_handle(ia)


def ib_open_query(name: str = DEFAULT_IA, ia_mask: IaAttrMask = IaAttrMask.ALL,
                  provider_mask: ProviderAttrMask = ProviderAttrMask.ALL) -> tuple[IaAttr, ProviderAttr]:
    """Attributes of an adapter that need not be opened for the question (dat_ib_open_query, dat_ib_close_query)."""
    handle, ia_attr, provider_attr = _dat.dat_ib_open_query(name, ia_mask, provider_mask)
    _dat.dat_ib_close_query(handle)
    return IaAttr._of(ia_attr), ProviderAttr._of(provider_attr)


def ia_open(name: str = DEFAULT_IA, async_evd_min_qlen: int = 8, async_evd: Evd | int | None = None, *,
            version: tuple[int, int] = (_dat.DAT_VERSION_MAJOR, _dat.DAT_VERSION_MINOR),
            thread_safety: bool = True) -> Ia:
    """Opens an adapter of the registry. async_evd: the EVD of another one that takes its asynchronous events, or
    EVD_ASYNC_EXISTS; without, it gets one with room for async_evd_min_qlen events. Raises Error(PROVIDER_NOT_FOUND),
    whose subtype tells what no entry has: the name, the version, the thread safety."""
    wanted = async_evd if isinstance(async_evd, int) else handle_of(async_evd)
    evd, ia = _dat.dat_ia_openv(name, async_evd_min_qlen, wanted, *version, thread_safety)
    return Ia(name, ia, evd)


class Ia(Counting):
    """An interface adapter (dat_ia_open). Closing it closes all that was made from it.

    name        under which it was opened
    async_evd   the EVD of its asynchronous events; None where another opening of the adapter has it
    """

    _counters = counters_of("DCNT_IA_")

    def __init__(self, name: str, handle: int, async_evd: int) -> None:
        super().__init__(handle)
        self.name = name
        known = object_of(async_evd)
        if not isinstance(known, Evd) and async_evd != EVD_ASYNC_EXISTS:
            known = Evd(self, async_evd, owned=False)
        self.async_evd = known if isinstance(known, Evd) else None

    def close(self, flags: CloseFlags | None = None) -> None:
        """Closes the adapter, and all that was made from it before. CloseFlags.GRACEFUL raises Error(INVALID_STATE)
        instead where something is left."""
        if flags is not CloseFlags.GRACEFUL or self.closed:
            super().close()
            return
        _dat.dat_ia_close(self.handle, flags)
        self._released()

    def free(self) -> None:
        """As close(CloseFlags.GRACEFUL)."""
        self.close(CloseFlags.GRACEFUL)

    def _destroy(self) -> None:
        _dat.dat_ia_close(self.handle, CloseFlags.ABRUPT)

    def query(self, mask: IaAttrMask = IaAttrMask.ALL) -> IaAttr:
        """What it is and can do."""
        return IaAttr._of(_dat.dat_ia_query(self.handle, mask, ProviderAttrMask.NONE)[1])

    def query_provider(self, mask: ProviderAttrMask = ProviderAttrMask.ALL) -> ProviderAttr:
        """What its provider can do."""
        return ProviderAttr._of(_dat.dat_ia_query(self.handle, IaAttrMask.NONE, mask)[2])

    @property
    def address(self) -> str:
        """Its address, in digits: what peers connect to."""
        address = self.query(IaAttrMask.IA_ADDRESS_PTR).ia_address_ptr
        return address[0] if address else ""

    # ---- What is made from it ----

    def pz_create(self) -> Pz:
        """A protection zone."""
        return Pz(self)

    def evd_create(self, evd_min_qlen: int, flags: EvdFlags = EvdFlags.DEFAULT, cno: Cno | None = None) -> Evd:
        """An event dispatcher for events of the kinds `flags`, with room for evd_min_qlen of them. cno: who is told of
        them, too. Raises Error(INSUFFICIENT_RESOURCES) where it is longer than the adapter has them."""
        return create_evd(self, evd_min_qlen, flags, cno)

    def cno_create(self, agent: Agent | None = None) -> Cno:
        """A notification object; agent: what it calls."""
        return create_cno(self, agent)

    def cno_fd_create(self) -> Cno:
        """A notification object with a descriptor."""
        return create_cno_with_fd(self)

    def lmr_create(self, region: Buffer | Lmr, pz: Pz, privileges: MemPrivFlags | None = None,
                   va_type: VaType = VaType.VA, shared_memory_id: bytes | None = None) -> Lmr:
        """Registers memory: anything with a buffer, which stays pinned until the region is closed, or another region.
        privileges: who may do what; without, everybody everything, except writing to a buffer that is read-only.
        shared_memory_id: 40 bytes that name memory which processes share (DAT_MEM_TYPE_SHARED_VIRTUAL). Raises
        Error(MODEL_NOT_SUPPORTED) for addresses from zero where the adapter lacks them."""
        return Lmr(self, region, pz, privileges, va_type, shared_memory_id)

    def lmr_sync_rdma_read(self, pieces: typing.Sequence[LmrTriplet]) -> None:
        """Makes what this process wrote seen by reading peers, where the provider needs it (lmr_sync_req)."""
        _dat.dat_lmr_sync_rdma_read(self.handle, pieces)

    def lmr_sync_rdma_write(self, pieces: typing.Sequence[LmrTriplet]) -> None:
        """Makes what peers wrote seen by this process, where the provider needs it."""
        _dat.dat_lmr_sync_rdma_write(self.handle, pieces)

    def srq_create(self, pz: Pz, max_recv_dtos: int, max_recv_iov: int = 1,
                   low_watermark: int = _dat.DAT_SRQ_LW_DEFAULT) -> Srq:
        """A shared receive queue for max_recv_dtos receives of at most max_recv_iov pieces."""
        return Srq(self, pz, max_recv_dtos, max_recv_iov, low_watermark)

    def ep_create(self, pz: Pz | None, recv_evd: Evd | None, request_evd: Evd | None, connect_evd: Evd | None,
                  attributes: EpAttr | None = None, srq: Srq | None = None) -> Ep:
        """An endpoint, whose receives, requests and connections report to these EVDs; where there is none, to nobody.
        attributes: without, the provider's default. With an SRQ (dat_ep_create_with_srq) its receives are those of that
        queue, and attributes are needed."""
        return create_ep(self, pz, recv_evd, request_evd, connect_evd, attributes, srq)

    def psp_create(self, conn_qual: int, evd: Evd, flags: PspFlags = PspFlags.CONSUMER) -> Psp:
        """A public service point, which listens at once. PROVIDER: each request brings an endpoint. Raises
        Error(CONN_QUAL_IN_USE)."""
        return Psp(self, conn_qual, evd, flags)

    def psp_create_any(self, evd: Evd, flags: PspFlags = PspFlags.CONSUMER) -> Psp:
        """A public service point at a conn_qual of the provider's choice."""
        return Psp(self, None, evd, flags)

    def rsp_create(self, conn_qual: int, ep: Ep | None, evd: Evd) -> Rsp:
        """A reserved service point for an endpoint; without, the provider makes one."""
        return Rsp(self, conn_qual, ep, evd)

    def csp_create(self, comm: Comm, host: str, port: int, evd: Evd) -> Csp:
        """A common service point at a port. Raises Error(PORT_IN_USE), Error(COMM_NOT_SUPPORTED)."""
        return Csp(self, comm, host, port, evd)

    # ---- Counters of ports ----

    def start_counter(self, kind: IaCounterType) -> None:
        """Starts counters that are sampled. Raises Error(NOT_IMPLEMENTED) where there are none."""
        _dat.dat_ib_start_counter(self.handle, kind)

    def stop_counter(self, kind: IaCounterType) -> None:
        """Stops them."""
        _dat.dat_ib_stop_counter(self.handle, kind)


_naming.adopt(__name__, __all__)
