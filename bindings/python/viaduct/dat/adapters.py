# SPDX-License-Identifier: BSD-3-Clause
"""Interface adapters, and what is made from them."""
from __future__ import annotations

import typing

from viaduct import _dat
from viaduct.dat.constants import CloseFlags, EvdFlags, IaCounterType, MemPrivFlags, PspFlags, VaType
from viaduct.dat.dispatchers import Agent, Cno, Evd, create_cno, create_cno_with_fd, create_evd
from viaduct.dat.endpoints import Ep, Srq, create_ep
from viaduct.dat.masks import IaAttrMask, ProviderAttrMask
from viaduct.dat.memory import Lmr, Pz
from viaduct.dat.objects import Counting, counters_of, handle_of, object_of
from viaduct.dat.registry import DEFAULT_IA
from viaduct.dat.service_points import Csp, Psp, Rsp
from viaduct.dat.structures import Comm, EpAttr, IaAttr, LmrTriplet, ProviderAttr
from viaduct.memory import Buffer

EVD_ASYNC_EXISTS = _dat.DAT_EVD_ASYNC_EXISTS  # for ia_open(): another opening of this adapter has the EVD of its errors


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
