# SPDX-License-Identifier: BSD-3-Clause
"""Interface adapters, and the objects created from them."""
from __future__ import annotations

import typing

from viaduct import _core, _dat
from viaduct._arguments import checked
from viaduct.dat.constants import (CloseFlags, EvdFlags, IaAttrMask, IaCounterType, MemPrivFlags, ProviderAttrMask,
                                   PspFlags, VaType)
from viaduct.dat.dispatchers import Agent, Cno, Evd, raw_agent
from viaduct.dat.endpoints import Ep, Srq
from viaduct.dat.memory import Lmr, Pz
from viaduct.dat.objects import Counting, counters_of, handle_of, object_of
from viaduct.dat.registry import DEFAULT_IA
from viaduct.dat.service_points import Csp, Psp, Rsp
from viaduct.dat.structures import Comm, EpAttr, IaAttr, LmrTriplet, ProviderAttr
from viaduct.memory import Buffer

EVD_ASYNC_EXISTS = _dat.DAT_EVD_ASYNC_EXISTS  # for ia_open(): another open instance of the adapter has the EVD


@checked
def ia_open(name: str = DEFAULT_IA, async_evd_min_qlen: int = 8, async_evd: Evd | int | None = None, *,
            version: tuple[int, int] = (_dat.DAT_VERSION_MAJOR, _dat.DAT_VERSION_MINOR),
            thread_safety: bool = True) -> Ia:
    """Opens an adapter of the registry, and returns it (dat_ia_openv).

    async_evd: the EVD of another adapter that takes its asynchronous events, or EVD_ASYNC_EXISTS. By default the
    adapter creates an EVD for at least async_evd_min_qlen events. Raises Error(PROVIDER_NOT_FOUND); its subtype
    tells which property no entry has: the name, the version, or the thread safety.
    """
    wanted = async_evd if isinstance(async_evd, int) else handle_of(async_evd)
    own = Ia._make(_dat.dat_ia_openv, name, async_evd_min_qlen, wanted, *version, thread_safety)
    return Ia(name, own)


class Ia(Counting):
    """An interface adapter. Created by ia_open(). Closing it closes everything created from it.

    name        the name under which it was opened
    async_evd   the EVD of its asynchronous events; None if another open instance of the adapter has it
    """

    _counters = counters_of("DCNT_IA_")
    _ended_by = "dat_ia_close"
    _end_arguments = (CloseFlags.ABRUPT,)

    def __init__(self, name: str, own: _core.Owned) -> None:
        self.name = name
        async_evd: int = own.result[0]
        known = object_of(async_evd)
        self.async_evd = known if isinstance(known, Evd) else None
        super().__init__(own, self.async_evd)
        if self.async_evd is None and async_evd != EVD_ASYNC_EXISTS:
            its_own = Evd._make(int, async_evd)
            its_own.hand_over()
            self.async_evd = Evd(self, its_own, owned=False)

    def _description(self) -> str:
        return self.name

    def close(self, flags: CloseFlags | None = None) -> None:
        """Closes the adapter, after everything created from it (dat_ia_close).

        With CloseFlags.GRACEFUL it raises Error(INVALID_STATE) instead if objects remain. Waits until waiting
        threads and running agents have returned; agents must not call it.
        """
        if flags != CloseFlags.GRACEFUL or self.closed:
            super().close()
            return
        evd = self.async_evd
        if evd is not None and evd.ia is self and evd._notifier is not None:
            evd._notifier.close()  # of which the program does not know
        self._own.end_with(_dat.dat_ia_close, self.handle, flags)
        super().close()  # what the library has closed with it: the EVD of asynchronous events

    def free(self) -> None:
        """Same as close(CloseFlags.GRACEFUL)."""
        self.close(CloseFlags.GRACEFUL)

    def query(self, mask: IaAttrMask = IaAttrMask.ALL) -> IaAttr:
        """Returns the adapter's attributes (dat_ia_query)."""
        return IaAttr._of(_dat.dat_ia_query(self.handle, mask, ProviderAttrMask.NONE)[1])

    def query_provider(self, mask: ProviderAttrMask = ProviderAttrMask.ALL) -> ProviderAttr:
        """Returns the provider's attributes (dat_ia_query)."""
        return ProviderAttr._of(_dat.dat_ia_query(self.handle, IaAttrMask.NONE, mask)[2])

    @property
    def address(self) -> str:
        """The adapter's address in digits, to which peers connect; empty if it has none."""
        address = self.query(IaAttrMask.IA_ADDRESS_PTR).ia_address_ptr
        return address[0] if address else ""

    # ---- What is made from it ----

    def pz_create(self) -> Pz:
        """Returns a new protection zone."""
        return Pz(self)

    def evd_create(self, evd_min_qlen: int, flags: EvdFlags = EvdFlags.DEFAULT, cno: Cno | None = None) -> Evd:
        """Returns a new event dispatcher for at least evd_min_qlen events of the kinds `flags`.

        cno: a CNO to notify. Raises Error(INSUFFICIENT_RESOURCES) if the adapter does not support queues of that
        length.
        """
        return Evd(self, Evd._make(_dat.dat_evd_create, self.handle, evd_min_qlen, handle_of(cno), flags), cno)

    def cno_create(self, agent: Agent | None = None) -> Cno:
        """Returns a new notification object, which calls the agent, if there is one."""
        return Cno(self, Cno._make(_dat.dat_cno_create, self.handle, raw_agent(agent)))

    def cno_fd_create(self) -> Cno:
        """Returns a new notification object with a file descriptor."""
        own = Cno._make(_dat.dat_cno_fd_create, self.handle)
        return Cno(self, own, own.result[0])

    def lmr_create(self, region: Buffer | Lmr, pz: Pz, privileges: MemPrivFlags | None = None,
                   va_type: VaType = VaType.VA, shared_memory_id: bytes | None = None) -> Lmr:
        """Registers memory, and returns the region (dat_lmr_create).

        region              a buffer, which is pinned until the region is closed, or another region
        privileges          who has which access; by default all access for everybody. A read-only buffer cannot be
                            written in any case
        shared_memory_id    40 bytes that identify memory shared by processes (DAT_MEM_TYPE_SHARED_VIRTUAL)

        A pinned buffer can neither be moved nor resized; it is not copied. Raises TypeError if the object has no
        buffer, BufferError if it is not contiguous; Error: INVALID_PARAMETER (no bytes), MODEL_NOT_SUPPORTED
        (VaType.ZB).
        """
        return Lmr(self, region, pz, privileges, va_type, shared_memory_id)

    def lmr_sync_rdma_read(self, pieces: typing.Sequence[LmrTriplet]) -> None:
        """Makes what this process wrote visible to reads of peers (dat_lmr_sync_rdma_read). Needed if the provider's
        lmr_sync_req is true."""
        _dat.dat_lmr_sync_rdma_read(self.handle, pieces)

    def lmr_sync_rdma_write(self, pieces: typing.Sequence[LmrTriplet]) -> None:
        """Makes what peers wrote visible to this process (dat_lmr_sync_rdma_write). Needed if the provider's
        lmr_sync_req is true."""
        _dat.dat_lmr_sync_rdma_write(self.handle, pieces)

    def srq_create(self, pz: Pz, max_recv_dtos: int, max_recv_iov: int = 1,
                   low_watermark: int = _dat.DAT_SRQ_LW_DEFAULT) -> Srq:
        """Returns a new shared receive queue for max_recv_dtos receives of at most max_recv_iov pieces. Raises Error:
        INSUFFICIENT_RESOURCES (more than the adapter supports), MODEL_NOT_SUPPORTED (the adapter does not support
        them)."""
        return Srq(self, pz, max_recv_dtos, max_recv_iov, low_watermark)

    def ep_create(self, pz: Pz | None, recv_evd: Evd | None, request_evd: Evd | None, connect_evd: Evd | None,
                  attributes: EpAttr | None = None, srq: Srq | None = None) -> Ep:
        """Returns a new endpoint; its receives, requests and connections report to these EVDs, or nowhere if one is
        None.

        attributes: None means the provider's defaults. With an SRQ (dat_ep_create_with_srq), it takes its receives
        from that queue, and attributes are needed. Raises Error: INVALID_HANDLE (an object of another adapter, or
        closed), INVALID_PARAMETER (an attribute is not supported).
        """
        raw = None if attributes is None else {name: value for name, value in vars(attributes).items()
                                               if not name.endswith("_specific")}  # not those of the provider
        zone, received, requested, connected = (handle_of(part) for part in (pz, recv_evd, request_evd, connect_evd))
        if srq is None:
            own = Ep._make(_dat.dat_ep_create, self.handle, zone, received, requested, connected, raw)
        else:
            own = Ep._make(_dat.dat_ep_create_with_srq, self.handle, zone, received, requested, connected, srq.handle,
                           raw)
        return Ep(self, own, pz_handle=pz, recv_evd_handle=recv_evd, request_evd_handle=request_evd,
                  connect_evd_handle=connect_evd, srq_handle=srq)

    def psp_create(self, conn_qual: int, evd: Evd, flags: PspFlags = PspFlags.CONSUMER) -> Psp:
        """Returns a new public service point, which starts to listen immediately. PspFlags.PROVIDER: each request has
        an endpoint. Raises Error: CONN_QUAL_IN_USE, CONN_QUAL_UNAVAILABLE."""
        return Psp(self, conn_qual, evd, flags)

    def psp_create_any(self, evd: Evd, flags: PspFlags = PspFlags.CONSUMER) -> Psp:
        """Returns a new public service point with a conn_qual that the provider chooses. Raises
        Error(CONN_QUAL_UNAVAILABLE) if none is free."""
        return Psp(self, None, evd, flags)

    def rsp_create(self, conn_qual: int, ep: Ep | None, evd: Evd) -> Rsp:
        """Returns a new reserved service point for an endpoint; None: for one that the provider creates. Raises Error:
        CONN_QUAL_IN_USE, CONN_QUAL_UNAVAILABLE, INVALID_STATE (the endpoint is in use)."""
        return Rsp(self, conn_qual, ep, evd)

    def csp_create(self, comm: Comm, host: str, port: int, evd: Evd) -> Csp:
        """Returns a new common service point at a port of a host, which is a name or an address of the adapter.

        Waits for the system's resolver if the host is a name. Raises socket.gaierror if it is not known; Error:
        PORT_IN_USE, COMM_NOT_SUPPORTED, INVALID_ADDRESS.
        """
        return Csp(self, comm, host, port, evd)

    # ---- Counters of ports ----

    def start_counter(self, kind: IaCounterType) -> None:
        """Starts counters that are sampled (dat_ib_start_counter). Raises Error(NOT_IMPLEMENTED) if there are none."""
        _dat.dat_ib_start_counter(self.handle, kind)

    def stop_counter(self, kind: IaCounterType) -> None:
        """Stops such counters (dat_ib_stop_counter). Raises Error(NOT_IMPLEMENTED) if there are none."""
        _dat.dat_ib_stop_counter(self.handle, kind)
