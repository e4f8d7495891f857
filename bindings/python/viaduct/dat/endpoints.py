# SPDX-License-Identifier: BSD-3-Clause
"""Endpoints and shared receive queues."""
from __future__ import annotations

import asyncio
import socket
import typing

from viaduct import _core, _dat
from viaduct._arguments import MISTAKES, explain, quick
from viaduct.dat.constants import CloseFlags, CompletionFlags, ConnectFlags, EpParamMask, EpState, Qos, SrqParamMask
from viaduct.dat.errors import connection_error
from viaduct.dat.events import ConnectionEvent, Event
from viaduct.dat.memory import Pz
from viaduct.dat.objects import Counting, DatObject, counters_of, object_of
from viaduct.dat.structures import Address, Comm, EpAttr, EpParam, LmrTriplet, RmrTriplet, SrqParam
from viaduct.memory import sequence_of

if typing.TYPE_CHECKING:
    from viaduct.dat.adapters import Ia
    from viaduct.dat.dispatchers import Evd

Piece = typing.Union[LmrTriplet, typing.Tuple[int, int, int]]
Pieces = typing.Union[LmrTriplet, typing.Sequence[Piece]]  # one piece or several
Target = typing.Union[RmrTriplet, typing.Tuple[int, int, int]]


def _sequence(pieces: Pieces) -> typing.Sequence[Piece]:
    return sequence_of(pieces, LmrTriplet)


def socket_address(host: str, port: int = 0) -> Address:
    """Returns the address of a host. Waits for the system's resolver if it is a name. Raises socket.gaierror if it is
    not known."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return str(found[0][4][0]), port


class Ep(Counting):
    """An endpoint: one end of a connection. Created by Ia.ep_create().

    connect_evd     the dispatcher for connection events

    Posts return immediately. An event of the receive EVD or request EVD reports the completion, with `cookie`, 64
    bits; memory is checked then. Posts raise Error: INVALID_PARAMETER (more pieces than the endpoint's attributes
    allow), INVALID_STATE (the endpoint was never connected), INSUFFICIENT_RESOURCES (its queue is full).

    Closing works in every state: a connection ends, a request for one is rejected, and posted requests are flushed.
    modify(), reset() and free() require that no other thread uses the endpoint meanwhile.
    """

    _counters = counters_of("DCNT_EP_")
    _ended_by = "dat_ep_free"

    def __init__(self, ia: Ia, own: _core.Owned, **parts: DatObject | None) -> None:
        self.ia = ia
        self._parts = parts  # objects, by the field names of EpParam
        super().__init__(own, ia, *parts.values())

    @property
    def connect_evd(self) -> Evd | None:
        """The dispatcher for connection events; None if there is none."""
        return typing.cast("Evd | None", self._parts.get("connect_evd_handle"))

    def _description(self) -> str:
        return self.state.name

    # ---- Connections ----

    def connect(self, host: str, conn_qual: int, timeout: float | None = None, private_data: bytes = b"",
                qos: Qos = Qos.BEST_EFFORT, flags: ConnectFlags = ConnectFlags.DEFAULT) -> None:
        """Starts to connect to a service point, and returns (dat_ep_connect). An event of the connect EVD reports the
        outcome.

        host            a name, or an address in digits
        timeout         seconds after which the event is CONNECTION_EVENT_TIMED_OUT; None: never; not 0
        private_data    bytes for the peer; at most max_private_data_size of the provider's attributes

        Waits for the system's resolver if the host is a name. Raises socket.gaierror if the host is not known;
        Error: INVALID_STATE (the endpoint is not unconnected, or has no connect EVD), INVALID_ADDRESS,
        INVALID_PARAMETER (timeout or private_data), MODEL_NOT_SUPPORTED (qos or flags other than the defaults).
        """
        _dat.dat_ep_connect(self.handle, socket_address(host), conn_qual, timeout, private_data, qos, flags)

    def dup_connect(self, connected_ep: Ep, timeout: float | None = None, private_data: bytes = b"",
                    qos: Qos = Qos.BEST_EFFORT) -> None:
        """Starts to connect to the service point to which another endpoint is connected, and returns
        (dat_ep_dup_connect). An event of the connect EVD reports the outcome. The other arguments and the errors are
        those of connect(); INVALID_STATE also if that endpoint is not connected."""
        _dat.dat_ep_dup_connect(self.handle, connected_ep.handle, timeout, private_data, qos)

    def common_connect(self, host: str, port: int, timeout: float | None = None, private_data: bytes = b"") -> None:
        """Starts to connect to a common service point, and returns (dat_ep_common_connect). An event of the connect EVD
        reports the outcome. The endpoint needs a communicator first: modify(comm=Comm(...)). `timeout`,
        `private_data` and the errors are those of connect()."""
        _dat.dat_ep_common_connect(self.handle, socket_address(host, port), timeout, private_data)

    async def connect_async(self, host: str, conn_qual: int, timeout: float | None = None, private_data: bytes = b"",
                            qos: Qos = Qos.BEST_EFFORT,
                            flags: ConnectFlags = ConnectFlags.DEFAULT) -> ConnectionEvent:
        """Connects, waits for the outcome, and returns the event, which has the peer's private data. For asyncio.

        Raises what connect() raises, TimeoutError after `timeout` seconds, ConnectionFailed if the event is not
        CONNECTION_EVENT_ESTABLISHED, ValueError if the endpoint has no connect EVD. Cancelling the task ends the
        attempt.
        """
        address, _ = await asyncio.to_thread(socket_address, host)
        self.connect(address, conn_qual, timeout, private_data, qos, flags)
        try:
            return await self._outcome("dat_ep_connect", None)
        except asyncio.CancelledError:
            self._give_up()
            raise

    async def disconnect_async(self, flags: CloseFlags = CloseFlags.GRACEFUL,
                               timeout: float | None = None) -> ConnectionEvent:
        """Disconnects, waits for the end, and returns the event that reports it. Raises what disconnect() raises, and
        TimeoutError after `timeout` seconds."""
        self.disconnect(flags)
        return await self._connection_event(timeout)

    async def _outcome(self, call: str, timeout: float | None) -> ConnectionEvent:
        event = await self._connection_event(timeout)
        if not event.established:
            raise connection_error(call, event.event_number)
        return event

    def _give_up(self) -> None:
        """Ends an attempt to connect that no task waits for any more, and takes its events."""
        if self.connect_evd is not None and not self.closed:
            self.disconnect(CloseFlags.ABRUPT)
            self.connect_evd._discard(self._is_about)

    def _is_about(self, event: Event) -> bool:
        return isinstance(event, ConnectionEvent) and event.ep_handle == self.handle

    async def _connection_event(self, timeout: float | None) -> ConnectionEvent:
        """Returns the next event of this endpoint's connection. Other events of the EVD are kept."""
        if self.connect_evd is None:
            raise ValueError("the endpoint has no EVD for connections")
        return typing.cast(ConnectionEvent, await self.connect_evd._await(self._is_about, timeout))

    def disconnect(self, flags: CloseFlags = CloseFlags.GRACEFUL) -> None:
        """Starts to end the connection and returns: GRACEFUL ends it when posted requests are complete, ABRUPT ends it
        immediately (dat_ep_disconnect).

        An event at both ends reports the end. Raises Error(INVALID_STATE) without a connection.
        """
        _dat.dat_ep_disconnect(self.handle, flags)

    def reset(self) -> None:
        """Makes a disconnected endpoint unconnected, so that it can connect again (dat_ep_reset). An unconnected
        endpoint stays as it is. Raises Error(INVALID_STATE) in other states."""
        _dat.dat_ep_reset(self.handle)

    # ---- Posting ----

    @quick
    def post_recv(self, pieces: Pieces, cookie: int = 0, flags: CompletionFlags = CompletionFlags.DEFAULT) -> None:
        """Posts memory for one message, also before connecting. Raises Error(INVALID_STATE) if the endpoint takes its
        receives from a shared queue."""
        try:
            _dat.dat_ep_post_recv(self.handle, _sequence(pieces), cookie, flags)
        except MISTAKES as error:
            explain(error, Ep.post_recv, locals())
            raise

    @quick
    def post_send(self, pieces: Pieces, cookie: int = 0, flags: CompletionFlags = CompletionFlags.DEFAULT) -> None:
        """Posts a message to the peer's next receive."""
        try:
            _dat.dat_ep_post_send(self.handle, _sequence(pieces), cookie, flags)
        except MISTAKES as error:
            explain(error, Ep.post_send, locals())
            raise

    def post_send_with_invalidate(self, pieces: Pieces, rmr_context: int, cookie: int = 0,
                                  flags: CompletionFlags = CompletionFlags.DEFAULT, invalidate: bool = True) -> None:
        """Posts a message that also invalidates an RMR of the peer: one of rmr_create_for_ep()."""
        _dat.dat_ep_post_send_with_invalidate(self.handle, _sequence(pieces), cookie, flags, invalidate, rmr_context)

    @quick
    def post_rdma_write(self, pieces: Pieces, target: Target, cookie: int = 0,
                        flags: CompletionFlags = CompletionFlags.DEFAULT) -> None:
        """Posts a write to the peer's memory. Raises Error(LENGTH_ERROR) if `target` is too small."""
        try:
            _dat.dat_ep_post_rdma_write(self.handle, _sequence(pieces), cookie, target, flags)
        except MISTAKES as error:
            explain(error, Ep.post_rdma_write, locals())
            raise

    @quick
    def post_rdma_read(self, pieces: Pieces, source: Target, cookie: int = 0,
                       flags: CompletionFlags = CompletionFlags.DEFAULT) -> None:
        """Posts a read of the peer's memory. Raises Error(LENGTH_ERROR) if the pieces are too small for it."""
        try:
            _dat.dat_ep_post_rdma_read(self.handle, _sequence(pieces), cookie, source, flags)
        except MISTAKES as error:
            explain(error, Ep.post_rdma_read, locals())
            raise

    def post_rdma_read_to_rmr(self, target: Target, source: Target, cookie: int = 0,
                              flags: CompletionFlags = CompletionFlags.DEFAULT) -> None:
        """Posts a read of the peer's memory into the memory of an RMR of this side."""
        _dat.dat_ep_post_rdma_read_to_rmr(self.handle, target, cookie, source, flags)

    def post_rdma_write_immed(self, pieces: Pieces, target: Target, immed_data: int, cookie: int = 0,
                              flags: CompletionFlags = CompletionFlags.DEFAULT) -> None:
        """Posts a write to the peer's memory that completes a receive of the peer with 32 bits. Both ends get an
        IbDtoEvent."""
        _dat.dat_ib_post_rdma_write_immed(self.handle, _sequence(pieces), cookie, target, immed_data, flags)

    def post_fetch_and_add(self, add: int, result: Piece, target: Target, cookie: int = 0,
                           flags: CompletionFlags = CompletionFlags.DEFAULT) -> None:
        """Posts an atomic addition to 8 bytes of the peer, at an address that is a multiple of 8. `result`, 8 bytes,
        receives their previous value.

        The completion is an IbDtoEvent. The peer's region needs MemPrivFlags.REMOTE_ATOMIC.
        """
        _dat.dat_ib_post_fetch_and_add(self.handle, add, result, cookie, target, flags)

    def post_cmp_and_swap(self, compare: int, swap: int, result: Piece, target: Target, cookie: int = 0,
                          flags: CompletionFlags = CompletionFlags.DEFAULT) -> None:
        """Posts an atomic comparison of 8 bytes of the peer, at an address that is a multiple of 8, with `compare`; if
        they are equal, `swap` replaces them.

        `result`, 8 bytes, receives their previous value. The completion is an IbDtoEvent. The peer's region needs
        MemPrivFlags.REMOTE_ATOMIC.
        """
        _dat.dat_ib_post_cmp_and_swap(self.handle, compare, swap, result, cookie, target, flags)

    # ---- Its own state ----

    @property
    def state(self) -> EpState:
        """The present state."""
        return self.get_status()[0]

    def get_status(self) -> tuple[EpState, bool, bool]:
        """Returns the state, whether no receive is outstanding, and whether no request is (dat_ep_get_status)."""
        state, recv_idle, request_idle = _dat.dat_ep_get_status(self.handle)
        return EpState(state), recv_idle, request_idle

    def query(self, mask: EpParamMask = EpParamMask.ALL) -> EpParam:
        """Returns its parameters (dat_ep_query)."""
        return EpParam._of(_dat.dat_ep_query(self.handle, mask))

    def modify(self, **changes: DatObject | Comm | int) -> None:
        """Changes fields of EpParam or EpAttr, by their names: modify(recv_evd_handle=evd, max_recv_dtos=32)
        (dat_ep_modify).

        An object is converted to its handle. Raises Error(INVALID_STATE) if the present state does not allow
        changing a field, TypeError if there is no such field.
        """
        mask = EpParamMask(0)
        raw: dict[str, typing.Any] = {}
        attributes: dict[str, typing.Any] = {}
        for name, value in changes.items():
            in_attributes = name in EpAttr.__dataclass_fields__
            key = ("EP_ATTR_" if in_attributes else "") + name.upper()
            if key not in EpParamMask.__members__:
                raise TypeError(f"{name} is no field of an endpoint") from None
            mask |= EpParamMask[key]
            (attributes if in_attributes else raw)[name] = _raw(value)
        _dat.dat_ep_modify(self.handle, mask, {**raw, "ep_attr": attributes})
        for name, value in changes.items():
            if name.endswith("_handle"):
                self._parts[name] = value if isinstance(value, DatObject) else object_of(typing.cast(int, value))
        self._depend_on(self.ia, *(part for part in self._parts.values() if part is not None))

    def recv_query(self) -> tuple[int, int]:
        """Returns the number of its receives that have not completed, and the span of those of a shared queue
        (dat_ep_recv_query). Numbers that the provider does not maintain (ep_recv_info_supported) are
        DAT_VALUE_UNKNOWN."""
        return _dat.dat_ep_recv_query(self.handle)

    def set_watermark(self, soft_high_watermark: int, hard_high_watermark: int) -> None:
        """Sets how many receives of a shared queue the endpoint may hold before an event reports it (soft), or the
        connection breaks (hard).

        -1 (DAT_WATERMARK_INFINITE) means any number. Raises Error(MODEL_NOT_SUPPORTED) for other numbers if the
        provider has no watermarks (srq_watermarks_supported).
        """
        _dat.dat_ep_set_watermark(self.handle, soft_high_watermark, hard_high_watermark)


def _raw(value: DatObject | Comm | int) -> object:
    if isinstance(value, DatObject):
        return value.handle
    return vars(value) if isinstance(value, Comm) else value


class Srq(DatObject):
    """A shared receive queue: receives for the messages of several endpoints. Created by Ia.srq_create()."""

    _ended_by = "dat_srq_free"

    def __init__(self, ia: Ia, pz: Pz, max_recv_dtos: int, max_recv_iov: int, low_watermark: int) -> None:
        attributes = {"max_recv_dtos": max_recv_dtos, "max_recv_iov": max_recv_iov, "low_watermark": low_watermark}
        self.ia = ia
        super().__init__(self._make(_dat.dat_srq_create, ia.handle, pz.handle, attributes), ia, pz)

    def post_recv(self, pieces: Pieces, cookie: int = 0) -> None:
        """Posts memory for one message to any of the endpoints. Raises Error: INVALID_PARAMETER (more than max_recv_iov
        pieces), INSUFFICIENT_RESOURCES (the queue is full)."""
        _dat.dat_srq_post_recv(self.handle, _sequence(pieces), cookie)

    def resize(self, max_recv_dtos: int) -> None:
        """Changes the number of receives that the queue can hold. Raises Error: INVALID_STATE (more are posted, or it
        is below the low watermark), INSUFFICIENT_RESOURCES (more than the adapter supports)."""
        _dat.dat_srq_resize(self.handle, max_recv_dtos)

    def set_lw(self, low_watermark: int) -> None:
        """Sets the low watermark: an asynchronous event reports once that fewer receives are queued. Raises
        Error(INVALID_PARAMETER) if it is above max_recv_dtos."""
        _dat.dat_srq_set_lw(self.handle, low_watermark)

    def query(self, mask: SrqParamMask = SrqParamMask.ALL) -> SrqParam:
        """Returns its parameters (dat_srq_query)."""
        return SrqParam._of(_dat.dat_srq_query(self.handle, mask))
