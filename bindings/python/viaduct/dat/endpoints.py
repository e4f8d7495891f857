# SPDX-License-Identifier: BSD-3-Clause
"""Endpoints and shared receive queues."""
from __future__ import annotations

import asyncio
import socket
import typing

from viaduct import _dat
from viaduct.dat.constants import CloseFlags, CompletionFlags, ConnectFlags, EpState, Qos
from viaduct.dat.errors import connection_error
from viaduct.dat.events import ConnectionEvent, Event
from viaduct.dat.masks import EpParamMask, SrqParamMask
from viaduct.dat.memory import Pz
from viaduct.dat.objects import Counting, DatObject, counters_of, handle_of, object_of
from viaduct.dat.structures import Address, Comm, EpAttr, EpParam, LmrTriplet, RmrTriplet, SrqParam

if typing.TYPE_CHECKING:
    from viaduct.dat.adapters import Ia
    from viaduct.dat.dispatchers import Evd

__all__ = ["Ep", "Pieces", "Srq"]

Piece = typing.Union[LmrTriplet, typing.Tuple[int, int, int]]
Pieces = typing.Union[LmrTriplet, typing.Sequence[Piece]]  # one piece, or some
Target = typing.Union[RmrTriplet, typing.Tuple[int, int, int]]


def _sequence(pieces: Pieces) -> typing.Sequence[Piece]:
    return (pieces,) if isinstance(pieces, LmrTriplet) else pieces


def socket_address(host: str, port: int = 0) -> Address:
    """The address of a host, whose name is looked up. Raises socket.gaierror where there is none."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return str(found[0][4][0]), port


class Ep(Counting):
    """An endpoint (dat_ep_create): one end of a connection.

    connect_evd     the dispatcher that tells what becomes of connections

    Posts return at once; a completion of the EVD for receives or requests tells of the end, with `cookie` (64 bits).
    They raise Error(INVALID_PARAMETER) for more pieces than the endpoint's attributes allow, Error(INVALID_STATE) where
    it was never connected, Error(INSUFFICIENT_RESOURCES) where its queue is full. Memory is checked later: the
    completion tells.

    Closed in any state: a connection ends, a request for one is rejected, what is posted is flushed.
    """

    _counters = counters_of("DCNT_EP_")

    def __init__(self, ia: Ia, handle: int, **parts: DatObject | None) -> None:
        super().__init__(handle, ia, *parts.values())
        self.ia = ia
        self._parts = parts  # by the names of their fields in EpParam

    @property
    def connect_evd(self) -> Evd | None:
        return typing.cast("Evd | None", self._parts.get("connect_evd_handle"))

    # ---- Connections ----

    def connect(self, host: str, conn_qual: int, timeout: float | None = None, private_data: bytes = b"",
                qos: Qos = Qos.BEST_EFFORT, flags: ConnectFlags = ConnectFlags.DEFAULT) -> None:
        """Begins to connect with a service point; an event of the connect EVD tells the rest. host: an address, or a
        name that is looked up. timeout: seconds, after which it tells CONNECTION_EVENT_TIMED_OUT; None for ever.
        private_data: at most max_private_data_size of the provider's attributes. Raises Error(INVALID_STATE) unless the
        endpoint is Unconnected."""
        _dat.dat_ep_connect(self.handle, socket_address(host), conn_qual, timeout, private_data, qos, flags)

    def dup_connect(self, connected_ep: Ep, timeout: float | None = None, private_data: bytes = b"",
                    qos: Qos = Qos.BEST_EFFORT) -> None:
        """As connect(), to the service point to which another endpoint is connected."""
        _dat.dat_ep_dup_connect(self.handle, connected_ep.handle, timeout, private_data, qos)

    def common_connect(self, host: str, port: int, timeout: float | None = None, private_data: bytes = b"") -> None:
        """As connect(), to a common service point. The endpoint needs a communicator: modify(comm=Comm(...))."""
        _dat.dat_ep_common_connect(self.handle, socket_address(host, port), timeout, private_data)

    async def connect_async(self, host: str, conn_qual: int, timeout: float | None = None, private_data: bytes = b"",
                            qos: Qos = Qos.BEST_EFFORT,
                            flags: ConnectFlags = ConnectFlags.DEFAULT) -> ConnectionEvent:
        """Connects, and returns the event, with the peer's private data. Raises ConnectionFailed, and TimeoutError
        where the time-out has passed. A task that is cancelled gives the attempt up."""
        self.connect(host, conn_qual, timeout, private_data, qos, flags)
        try:
            return await self._outcome("dat_ep_connect", None)
        except asyncio.CancelledError:
            self._give_up()
            raise

    async def disconnect_async(self, flags: CloseFlags = CloseFlags.GRACEFUL,
                               timeout: float | None = None) -> ConnectionEvent:
        """Disconnects, and returns the event that tells of the end. Raises TimeoutError."""
        self.disconnect(flags)
        return await self._connection_event(timeout)

    async def _outcome(self, call: str, timeout: float | None) -> ConnectionEvent:
        event = await self._connection_event(timeout)
        if not event.established:
            raise connection_error(call, event.event_number)
        return event

    def _give_up(self) -> None:
        """Ends an attempt that nobody waits for any more, and its events."""
        if self.connect_evd is not None and not self.closed:
            self.disconnect(CloseFlags.ABRUPT)
            self.connect_evd._discard(self._is_about)

    def _is_about(self, event: Event) -> bool:
        return isinstance(event, ConnectionEvent) and event.ep_handle == self.handle

    async def _connection_event(self, timeout: float | None) -> ConnectionEvent:
        """The next event of this endpoint's connection; other events of the EVD are for others."""
        if self.connect_evd is None:
            raise ValueError("the endpoint has no EVD for connections")
        return typing.cast(ConnectionEvent, await self.connect_evd._await(self._is_about, timeout))

    def disconnect(self, flags: CloseFlags = CloseFlags.GRACEFUL) -> None:
        """Begins to end the connection: GRACEFUL when posted requests are done, ABRUPT at once. An event tells both
        ends of the end. Raises Error(INVALID_STATE) where there is none."""
        _dat.dat_ep_disconnect(self.handle, flags)

    def reset(self) -> None:
        """Makes a disconnected endpoint fit to be connected again."""
        _dat.dat_ep_reset(self.handle)

    # ---- Posting ----

    def post_recv(self, pieces: Pieces, cookie: int = 0, flags: CompletionFlags = CompletionFlags.DEFAULT) -> None:
        """Memory for the next message. May be posted before connecting."""
        _dat.dat_ep_post_recv(self.handle, _sequence(pieces), cookie, flags)

    def post_send(self, pieces: Pieces, cookie: int = 0, flags: CompletionFlags = CompletionFlags.DEFAULT) -> None:
        """A message, to the peer's next receive."""
        _dat.dat_ep_post_send(self.handle, _sequence(pieces), cookie, flags)

    def post_send_with_invalidate(self, pieces: Pieces, rmr_context: int, cookie: int = 0,
                                  flags: CompletionFlags = CompletionFlags.DEFAULT, invalidate: bool = True) -> None:
        """A message that also ends an RMR of the peer's, one of rmr_create_for_ep()."""
        _dat.dat_ep_post_send_with_invalidate(self.handle, _sequence(pieces), cookie, flags, invalidate, rmr_context)

    def post_rdma_write(self, pieces: Pieces, target: Target, cookie: int = 0,
                        flags: CompletionFlags = CompletionFlags.DEFAULT) -> None:
        """Writes to the peer's memory. Raises Error(LENGTH_ERROR) where that is too small."""
        _dat.dat_ep_post_rdma_write(self.handle, _sequence(pieces), cookie, target, flags)

    def post_rdma_read(self, pieces: Pieces, source: Target, cookie: int = 0,
                       flags: CompletionFlags = CompletionFlags.DEFAULT) -> None:
        """Reads the peer's memory. Raises Error(LENGTH_ERROR) where the pieces are too small for it."""
        _dat.dat_ep_post_rdma_read(self.handle, _sequence(pieces), cookie, source, flags)

    def post_rdma_read_to_rmr(self, target: Target, source: Target, cookie: int = 0,
                              flags: CompletionFlags = CompletionFlags.DEFAULT) -> None:
        """Reads the peer's memory into what an RMR of this side shows."""
        _dat.dat_ep_post_rdma_read_to_rmr(self.handle, target, cookie, source, flags)

    def post_rdma_write_immed(self, pieces: Pieces, target: Target, immed_data: int, cookie: int = 0,
                              flags: CompletionFlags = CompletionFlags.DEFAULT) -> None:
        """Writes to the peer's memory and completes a receive of his with 32 bits. Both ends get an IbDtoEvent, as for
        the two below."""
        _dat.dat_ib_post_rdma_write_immed(self.handle, _sequence(pieces), cookie, target, immed_data, flags)

    def post_fetch_and_add(self, add: int, result: Piece, target: Target, cookie: int = 0,
                           flags: CompletionFlags = CompletionFlags.DEFAULT) -> None:
        """Adds to 8 aligned bytes of the peer; `result` (8 bytes) gets what they were. The peer's region needs
        MemPrivFlags.REMOTE_ATOMIC."""
        _dat.dat_ib_post_fetch_and_add(self.handle, add, result, cookie, target, flags)

    def post_cmp_and_swap(self, compare: int, swap: int, result: Piece, target: Target, cookie: int = 0,
                          flags: CompletionFlags = CompletionFlags.DEFAULT) -> None:
        """Puts `swap` in the place of `compare` into 8 aligned bytes of the peer; `result` gets what they were."""
        _dat.dat_ib_post_cmp_and_swap(self.handle, compare, swap, result, cookie, target, flags)

    # ---- Its own state ----

    @property
    def state(self) -> EpState:
        """Where it is between Unconnected and Disconnected."""
        return self.get_status()[0]

    def get_status(self) -> tuple[EpState, bool, bool]:
        """The state, whether no receive is outstanding, and whether no request is."""
        state, recv_idle, request_idle = _dat.dat_ep_get_status(self.handle)
        return EpState(state), recv_idle, request_idle

    def query(self, mask: EpParamMask = EpParamMask.ALL) -> EpParam:
        """What it is made of, and whom it is connected with."""
        return EpParam._of(_dat.dat_ep_query(self.handle, mask))

    def modify(self, **changes: DatObject | Comm | int) -> None:
        """Changes fields of its EpParam or EpAttr, by their names: modify(recv_evd_handle=evd, max_recv_dtos=32).
        Objects stand for their handles. Raises Error(INVALID_STATE) for fields that the endpoint's state protects, and
        TypeError for others that it has not."""
        mask = EpParamMask(0)
        raw: dict[str, typing.Any] = {}
        attributes: dict[str, typing.Any] = {}
        for name, value in changes.items():
            in_attributes = name in EpAttr.__dataclass_fields__
            key = ("EP_ATTR_" if in_attributes else "") + name.upper()
            if key not in EpParamMask.__members__:
                raise TypeError(f"{name} is no field of an endpoint")
            mask |= EpParamMask[key]
            (attributes if in_attributes else raw)[name] = _raw(value)
        _dat.dat_ep_modify(self.handle, mask, {**raw, "ep_attr": attributes})
        for name, value in changes.items():
            if name.endswith("_handle"):
                self._parts[name] = value if isinstance(value, DatObject) else object_of(typing.cast(int, value))
        self._depend_on(self.ia, *(part for part in self._parts.values() if part is not None))

    def recv_query(self) -> tuple[int, int]:
        """How many receives it holds, and how far those of a shared queue lie apart. What the provider does not know
        (ep_recv_info_supported) is DAT_VALUE_UNKNOWN."""
        return _dat.dat_ep_recv_query(self.handle)

    def set_watermark(self, soft_high_watermark: int, hard_high_watermark: int) -> None:
        """How many receives of an SRQ it may hold before it complains, or breaks; -1 (DAT_WATERMARK_INFINITE): any
        number. Raises Error(MODEL_NOT_SUPPORTED) for others where the provider has none (srq_watermarks_supported)."""
        _dat.dat_ep_set_watermark(self.handle, soft_high_watermark, hard_high_watermark)

    def _destroy(self) -> None:
        _dat.dat_ep_free(self.handle)


def _raw(value: DatObject | Comm | int) -> object:
    if isinstance(value, DatObject):
        return value.handle
    return vars(value) if isinstance(value, Comm) else value


class Srq(DatObject):
    """A shared receive queue (dat_srq_create): receives for the messages of several endpoints."""

    def __init__(self, ia: Ia, pz: Pz, max_recv_dtos: int, max_recv_iov: int, low_watermark: int) -> None:
        attributes = {"max_recv_dtos": max_recv_dtos, "max_recv_iov": max_recv_iov, "low_watermark": low_watermark}
        super().__init__(_dat.dat_srq_create(ia.handle, pz.handle, attributes), ia, pz)
        self.ia = ia

    def post_recv(self, pieces: Pieces, cookie: int = 0) -> None:
        """Memory for a message to any of the endpoints."""
        _dat.dat_srq_post_recv(self.handle, _sequence(pieces), cookie)

    def resize(self, max_recv_dtos: int) -> None:
        """Room for that many receives. Raises Error(INVALID_STATE) where more are posted."""
        _dat.dat_srq_resize(self.handle, max_recv_dtos)

    def set_lw(self, low_watermark: int) -> None:
        """With fewer receives than that an asynchronous event tells so, once."""
        _dat.dat_srq_set_lw(self.handle, low_watermark)

    def query(self, mask: SrqParamMask = SrqParamMask.ALL) -> SrqParam:
        """What it is made of."""
        return SrqParam._of(_dat.dat_srq_query(self.handle, mask))

    def _destroy(self) -> None:
        _dat.dat_srq_free(self.handle)


def create_ep(ia: Ia, pz: Pz | None, recv_evd: Evd | None, request_evd: Evd | None, connect_evd: Evd | None,
              attributes: EpAttr | None, srq: Srq | None) -> Ep:
    raw = None if attributes is None else attributes._settable()
    zone, received, requested, connected = (handle_of(part) for part in (pz, recv_evd, request_evd, connect_evd))
    if srq is None:
        handle = _dat.dat_ep_create(ia.handle, zone, received, requested, connected, raw)
    else:
        handle = _dat.dat_ep_create_with_srq(ia.handle, zone, received, requested, connected, srq.handle, raw)
    return Ep(ia, handle, pz_handle=pz, recv_evd_handle=recv_evd, request_evd_handle=request_evd,
              connect_evd_handle=connect_evd, srq_handle=srq)
