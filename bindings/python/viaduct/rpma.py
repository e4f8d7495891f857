# SPDX-License-Identifier: BSD-3-Clause
"""librpma: remote persistent memory access.

A server that lets others write to its memory and waits for a message, and its client:

    with rpma.Peer(rpma.get_ibv_context("127.0.0.1")) as peer:
        memory = peer.mr_reg(bytearray(4096))
        conn = peer.ep_listen("127.0.0.1", 7204).accept(private_data=memory.descriptor)
        conn.recv(memory[:64], context=1)
        conn.cq.next_wc(timeout=5).check()

    with rpma.Peer(rpma.get_ibv_context("127.0.0.1", rpma.IbvContextType.REMOTE)) as peer:
        memory = peer.mr_reg(b"over the valley")
        conn = peer.connect("127.0.0.1", 7204, timeout=5)
        remote = rpma.MrRemote.from_descriptor(conn.private_data)
        conn.write(remote, 1024, memory[:], flags=rpma.Flags.COMPLETION_ON_ERROR)
        conn.send(memory[:4], context=2)
        conn.cq.next_wc(timeout=5).check()

The classes are the structures of C, and the methods its functions: rpma_conn_req_new() is Peer.conn_req_new(), what is
only set and got is an attribute. Beside these there are Peer.connect(), Ep.accept() and Cq.next_wc(), which make what
takes several steps in one, and for each method that waits one that ends in _async, for asyncio.

Sizes, offsets and lengths are in bytes; queue sizes count entries; time-outs are in seconds, None waits for ever, 0 not
at all (it takes the place of O_NONBLOCK on a descriptor). Where the time-out has passed, TimeoutError is raised, with
the code that C has for that: NO_EVENT or NO_COMPLETION.

Each method raises Error with the code that the function returns in C: INVAL where an argument is wrong or the object is
closed, NOMEM, and PROVIDER where the layer below refused; the log says why (log_set_function()).

Every object may be used by several threads at once.
"""
from __future__ import annotations

import socket
import time
import typing

from viaduct import _naming, _rpma, _waiting, errors
from viaduct._lifetime import Resource
from viaduct._rpma_cfg import ConnCfg, PeerCfg, SrqCfg
from viaduct._rpma_memory import MrLocal, MrRemote, Piece, place_of
from viaduct._rpma_object import CLOSED, Object, handle_of
from viaduct._rpma_types import (AdviseMr, AdviseMrFlags, ConnEvent, ErrorCode, Flags, FlushType, IbvContextType,
                                 LogLevel, LogThreshold, MrUsage, WcFlags, WcOpcode, WcStatus)
from viaduct.memory import Buffer, alloc

__all__ = ["AdviseMr", "AdviseMrFlags", "Completion", "Conn", "ConnCfg", "ConnEvent", "ConnReq", "ConnectError", "Cq",
           "DEFAULT_TIMEOUT_MS", "Ep", "Error", "ErrorCode", "Flags", "FlushType", "IbvContextType", "LogLevel",
           "LogThreshold", "MrLocal", "MrRemote", "MrUsage", "Peer", "PeerCfg", "Piece", "RequestError", "Srq",
           "SrqCfg", "TimeoutError", "WcFlags", "WcOpcode", "WcStatus", "alloc", "conn_event_2str", "err_2str",
           "get_ibv_context", "ibv_context_is_odp_capable", "log_get_threshold", "log_set_function",
           "log_set_threshold"]

T = typing.TypeVar("T")

DEFAULT_TIMEOUT_MS = _rpma.RPMA_DEFAULT_TIMEOUT_MS
"""ConnCfg.timeout_ms where it was not set."""


# ---- Errors ----------------------------------------------------------------------------------------------------------

class Error(errors.Error):
    """A call failed; `code` is an ErrorCode."""


class TimeoutError(Error, errors.TimeoutError):
    """Nothing came in time; `code` is NO_EVENT or NO_COMPLETION."""


class ConnectError(Error):
    """No connection was made; `code` is the ConnEvent that came instead of ESTABLISHED."""


class RequestError(Error):
    """An operation failed; `code` is the WcStatus of its completion."""


def _error(call: str, code: int) -> Error:
    """The exception for a failed call."""
    nothing_came = code in (ErrorCode.NO_EVENT, ErrorCode.NO_COMPLETION)
    member = ErrorCode(code)
    return (TimeoutError if nothing_came else Error)(call, member, f"RPMA_E_{member.name}", err_2str(code))


def err_2str(code: int) -> str:
    """A code in words."""
    return _rpma.rpma_err_2str(code)


# ---- Waiting -------------------------------------------------------------------------------------------------------

async def _until(fd: int, call: typing.Callable[[float], T], timeout: float | None) -> T:
    """Makes a call, given the time-out 0, until it finds something or the time-out has passed."""
    def attempt() -> T | None:
        try:
            return call(0)
        except TimeoutError:
            return None
    result = await _waiting.until(fd, attempt, timeout)
    return call(0) if result is None else result


# ---- Devices and peers -----------------------------------------------------------------------------------------------

def get_ibv_context(addr: str, type: IbvContextType = IbvContextType.LOCAL) -> int:
    """Finds a device by an address: a host name, an IPv4 or an IPv6 address. The context is good for Peer() and
    ibv_context_is_odp_capable(). Raises Error(PROVIDER) where the address leads to no device."""
    return _rpma.rpma_utils_get_ibv_context(addr, type)


def ibv_context_is_odp_capable(ibv_ctx: int) -> bool:
    """Whether regions may be registered without pinning their memory."""
    return bool(_rpma.rpma_utils_ibv_context_is_odp_capable(ibv_ctx))


class Peer(Object):
    """A use of a device, and the scope of its memory."""

    def __init__(self, ibv_ctx: int) -> None:
        """ibv_ctx: what get_ibv_context() found."""
        super().__init__(_rpma.rpma_peer_new(ibv_ctx))

    def _end(self, handle: int) -> None:
        _rpma.rpma_peer_delete(handle)

    def delete(self) -> None:
        """Deletes the peer alone. Raises Error(PROVIDER) where regions, requests, connections, endpoints or shared
        receive queues of the peer exist: they go on working, but the peer is gone. close() closes them first."""
        self._delete()

    def mr_reg(self, buffer: Buffer | int, usage: MrUsage | None = None) -> MrLocal:
        """Registers a buffer, or that many bytes of new memory as alloc() gives it. usage: None stands for all that the
        memory allows. The buffer stays where it is until the region is closed.

        Raises TypeError where the usage is to write memory that is read-only, BufferError where the buffer has gaps,
        Error(INVAL) where it is empty or no usage is given, Error(PROVIDER) where the device has no room."""
        return MrLocal(self, alloc(buffer) if isinstance(buffer, int) else buffer, usage)

    def srq_new(self, cfg: SrqCfg | None = None) -> Srq:
        """Makes a shared receive queue. cfg: None stands for the defaults. Raises Error(PROVIDER) where a size is above
        the limit of the device, or rq_size is 0."""
        return Srq(self, cfg)

    def ep_listen(self, addr: str, port: int | str) -> Ep:
        """Listens on a port (a number or a service's name) of an address of the device. Raises Error(PROVIDER) where
        the address or the port is of no use, or somebody listens there already."""
        return Ep(_rpma.rpma_ep_listen(self._handle, addr, str(port)), self)

    def conn_req_new(self, addr: str, port: int | str, cfg: ConnCfg | None = None) -> ConnReq:
        """Prepares a request to whoever listens on a port (a number or a service's name) of an address. cfg: None
        stands for the defaults. Raises Error(PROVIDER) where the address, the port or the configuration is of no use,
        Error(INVAL) also for a shared completion channel together with a shared receive queue that has a completion
        queue."""
        return ConnReq(_rpma.rpma_conn_req_new(self._handle, addr, str(port), handle_of(cfg)), self, cfg)

    def connect(self, addr: str, port: int | str, cfg: ConnCfg | None = None, *, private_data: Buffer | None = None,
                timeout: float | None = None) -> Conn:
        """conn_req_new(), connect() of what it returns, and the wait for ESTABLISHED. Raises what these raise,
        ConnectError where another event comes, TimeoutError where none comes in time."""
        conn = self.conn_req_new(addr, port, cfg).connect(private_data)
        return conn._established(lambda: conn.next_event(timeout))

    async def connect_async(self, addr: str, port: int | str, cfg: ConnCfg | None = None, *,
                            private_data: Buffer | None = None, timeout: float | None = None) -> Conn:
        """As connect(), for asyncio."""
        conn = self.conn_req_new(addr, port, cfg).connect(private_data)
        return await conn._established_async(timeout)


# ---- Completions -----------------------------------------------------------------------------------------------------

class Completion:
    """A completion (struct ibv_wc). Where status is not SUCCESS only wr_id, status, vendor_err and qp_num are valid."""

    __slots__ = ("_raw",)

    def __init__(self, raw: _rpma.ibv_wc) -> None:
        self._raw = raw

    @property
    def wr_id(self) -> int:
        """The context of the operation."""
        return self._raw.wr_id

    @property
    def status(self) -> WcStatus:
        """How the operation ended."""
        return WcStatus(self._raw.status)

    @property
    def opcode(self) -> WcOpcode:
        """Which operation it was."""
        return WcOpcode(self._raw.opcode)

    @property
    def vendor_err(self) -> int:
        """What the device says about a failure."""
        return self._raw.vendor_err

    @property
    def byte_len(self) -> int:
        """Of receives: how many bytes arrived."""
        return self._raw.byte_len

    @property
    def imm_data(self) -> int:
        """The immediate data as C has them, in network byte order; see imm."""
        return self._raw.imm_data

    @property
    def imm(self) -> int | None:
        """The number that the sender gave, None where it gave none."""
        return socket.ntohl(self._raw.imm_data) if self._raw.wc_flags & WcFlags.WITH_IMM else None

    @property
    def qp_num(self) -> int:
        """Conn.qp_num of the connection."""
        return self._raw.qp_num

    @property
    def src_qp(self) -> int:
        """0: reliable connections do not tell."""
        return self._raw.src_qp

    @property
    def wc_flags(self) -> WcFlags:
        """What else is valid."""
        return WcFlags(self._raw.wc_flags)

    @property
    def ok(self) -> bool:
        """Whether the operation succeeded."""
        return self._raw.status == _rpma.IBV_WC_SUCCESS

    def check(self) -> Completion:
        """The completion itself. Raises RequestError where the operation failed."""
        if not self.ok:
            raise RequestError("rpma_cq_get_wc", self.status, f"IBV_WC_{self.status.name}", self.status.text)
        return self

    def __repr__(self) -> str:
        return f"<Completion wr_id={self.wr_id} {self.status.name}>"


class Cq:
    """A completion queue. It belongs to a connection or a shared receive queue, which it keeps, and ends with it."""

    __slots__ = ("_owner", "_number")

    def __init__(self, owner: _HasQueues, number: int) -> None:
        self._owner = owner
        self._number = number

    @property
    def _handle(self) -> int:
        return self._owner._queues[self._number]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cq) and self._owner is other._owner and self._number == other._number

    def __hash__(self) -> int:
        return hash((self._owner, self._number))

    def get_wc(self, num_entries: int = 1) -> list[Completion]:
        """Takes up to num_entries completions, in order; an empty list where there are none. Raises Error(INVAL) where
        num_entries is less than 1."""
        return [Completion(raw) for raw in _rpma.rpma_cq_get_wc(self._handle, num_entries)]

    def wait(self, timeout: float | None = None) -> None:
        """Waits for news. Take all completions before the next call; one that follows may tell of those once more.
        Raises Error(SHARED_CHANNEL) where Conn.wait() is to be used."""
        _rpma.rpma_cq_wait(self._handle, timeout)

    async def wait_async(self, timeout: float | None = None) -> None:
        """As wait(), for asyncio."""
        def attempt(timeout: float) -> bool:
            self.wait(timeout)
            return True
        await _until(self.fileno(), attempt, timeout)

    def next_wc(self, timeout: float | None = None) -> Completion:
        """Takes the next completion, or waits for one. See wait() for its errors."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while not (taken := _rpma.rpma_cq_get_wc(self._handle, 1)):
            self.wait(None if deadline is None else max(deadline - time.monotonic(), 0))
        return Completion(taken[0])

    async def next_wc_async(self, timeout: float | None = None) -> Completion:
        """As next_wc(), for asyncio."""
        def attempt(timeout: float) -> Completion:
            return self.next_wc(timeout)
        return await _until(self.fileno(), attempt, timeout)

    def fileno(self) -> int:
        """The descriptor that is readable while there are news."""
        return _rpma.rpma_cq_get_fd(self._handle)


class _HasQueues(Object):
    """An object with completion queues."""

    def __init__(self, handle: int, parents: typing.Iterable[Resource], queues: tuple[int, ...]) -> None:
        self._queues = queues  # handles; 0: none
        super().__init__(handle, *parents)

    def _take(self) -> int:
        self._queues = tuple(CLOSED if queue else 0 for queue in self._queues)
        return super()._take()

    def _queue(self, number: int) -> Cq | None:
        return Cq(self, number) if self._queues[number] else None


# ---- Shared receive queues -------------------------------------------------------------------------------------------

class Srq(_HasQueues):
    """Receives for the messages of many connections, which close with it. Peer.srq_new() makes it."""

    def __init__(self, peer: Peer, cfg: SrqCfg | None) -> None:
        handle = _rpma.rpma_srq_new(peer._handle, handle_of(cfg))
        super().__init__(handle, [peer], (_rpma.rpma_srq_get_rcq(handle),))

    def _end(self, handle: int) -> None:
        _rpma.rpma_srq_delete(handle)

    def delete(self) -> None:
        """Deletes the queue alone. Raises Error(PROVIDER) where connections use it: they go on working, but the object
        is gone. close() closes them first."""
        self._delete()

    def recv(self, destination: Piece | None = None, *, context: int = 0) -> None:
        """As Conn.recv(), for a message of whichever connection gets one first."""
        _rpma.rpma_srq_recv(self._handle, *place_of(destination), context)

    @property
    def rcq(self) -> Cq | None:
        """The completion queue of the receives, None where it has none."""
        return self._queue(0)


# ---- Requests for connections ----------------------------------------------------------------------------------------

class ConnReq(Object):
    """A request for a connection: one's own (Peer.conn_req_new()) or one that came (Ep.next_conn_req()). Closing it
    withdraws the one and refuses the other."""

    def __init__(self, handle: int, peer: Peer, cfg: ConnCfg | None) -> None:
        super().__init__(handle, peer, *([] if cfg is None or cfg._srq is None else [cfg._srq]))

    def _end(self, handle: int) -> None:
        _rpma.rpma_conn_req_delete(handle)

    def delete(self) -> None:
        """Withdraws an outgoing request, refuses an incoming one."""
        self._delete()

    def connect(self, private_data: Buffer | None = None) -> Conn:
        """Sends an outgoing request, accepts an incoming one; private_data, 1 to 255 bytes, go along. The first event
        of the connection tells the outcome. The request is used up in any case. Raises Error(PROVIDER) where the
        requester has given up, Error(INVAL) where private_data are empty, ValueError where they are too long."""
        data = None if private_data is None else bytes(private_data)
        if data is not None and len(data) > 255:
            raise ValueError("private data has at most 255 bytes")
        handle = self._take()
        try:
            return Conn(_rpma.rpma_conn_req_connect(handle, data), self._parents)
        finally:
            self._released()

    def recv(self, destination: Piece, *, context: int = 0) -> None:
        """As Conn.recv(), before the connection is made."""
        _rpma.rpma_conn_req_recv(self._handle, *place_of(destination), context)

    @property
    def private_data(self) -> bytes:
        """The data that came with an incoming request. Over RDMA devices, there may be zeros behind them."""
        return _rpma.rpma_conn_req_get_private_data(self._handle)


class Ep(Object):
    """An endpoint: where requests arrive. Peer.ep_listen() makes it. Closing it refuses the requests that nobody took;
    connections that were made go on."""

    def __init__(self, handle: int, peer: Peer) -> None:
        self._peer = peer
        super().__init__(handle, peer)

    def _end(self, handle: int) -> None:
        _rpma.rpma_ep_shutdown(handle)

    def shutdown(self) -> None:
        """Stops listening."""
        self._delete()

    def fileno(self) -> int:
        """The descriptor that is readable while a request may wait."""
        return _rpma.rpma_ep_get_fd(self._handle)

    def next_conn_req(self, cfg: ConnCfg | None = None, timeout: float | None = None) -> ConnReq:
        """Takes the next request, or waits for one. cfg is for its connection; None stands for the defaults. Raises
        what Peer.conn_req_new() raises; the request is refused then."""
        return ConnReq(_rpma.rpma_ep_next_conn_req(self._handle, handle_of(cfg), timeout), self._peer, cfg)

    async def next_conn_req_async(self, cfg: ConnCfg | None = None, timeout: float | None = None) -> ConnReq:
        """As next_conn_req(), for asyncio."""
        def attempt(timeout: float) -> ConnReq:
            return self.next_conn_req(cfg, timeout)
        return await _until(self.fileno(), attempt, timeout)

    def accept(self, cfg: ConnCfg | None = None, *, private_data: Buffer | None = None,
               timeout: float | None = None) -> Conn:
        """next_conn_req(), connect() of what it returns, and the wait for ESTABLISHED. Raises what these raise,
        ConnectError where another event comes. The time-out is that of each wait."""
        conn = self.next_conn_req(cfg, timeout).connect(private_data)
        return conn._established(lambda: conn.next_event(timeout))

    async def accept_async(self, cfg: ConnCfg | None = None, *, private_data: Buffer | None = None,
                           timeout: float | None = None) -> Conn:
        """As accept(), for asyncio."""
        conn = (await self.next_conn_req_async(cfg, timeout)).connect(private_data)
        return await conn._established_async(timeout)


# ---- Connections -----------------------------------------------------------------------------------------------------

def conn_event_2str(event: int) -> str:
    """An event in words."""
    return _rpma.rpma_utils_conn_event_2str(event)


class Conn(_HasQueues):
    """A connection: ConnReq.connect() makes it. Closing it ends it and deletes its completion queues.

    Operations are posted by one call and done later, in order: their completions say how they ended, and bring back
    `context`, 64 bits, in wr_id. Memory must stay as it is until then. Each raises Error(INVAL) where flags are 0 or
    the connection is closed, Error(PROVIDER) where the send queue is full or the connection was not established yet.
    What the regions do not allow is found later: the completion tells.
    """

    def __init__(self, handle: int, parents: typing.Iterable[Resource]) -> None:
        super().__init__(handle, parents, (_rpma.rpma_conn_get_cq(handle), _rpma.rpma_conn_get_rcq(handle)))

    def _end(self, handle: int) -> None:
        _rpma.rpma_conn_delete(handle)

    def delete(self) -> None:
        """Deletes the connection with its completion queues; one that stands is ended."""
        self._delete()

    def disconnect(self) -> None:
        """Ends the connection; CLOSED follows, unless it was told before. What is posted, now and later, completes with
        WR_FLUSH_ERR."""
        _rpma.rpma_conn_disconnect(self._handle)

    # ---- Events ----

    def next_event(self, timeout: float | None = None) -> ConnEvent:
        """Takes the oldest event, or waits for one."""
        return ConnEvent(_rpma.rpma_conn_next_event(self._handle, timeout))

    async def next_event_async(self, timeout: float | None = None) -> ConnEvent:
        """As next_event(), for asyncio."""
        return await _until(self.fileno(), self.next_event, timeout)

    def fileno(self) -> int:
        """The descriptor that is readable while events wait (rpma_conn_get_event_fd)."""
        return _rpma.rpma_conn_get_event_fd(self._handle)

    def _established(self, next_event: typing.Callable[[], ConnEvent]) -> Conn:
        """The connection itself, once it stands; else it is closed."""
        try:
            event = next_event()
            if event != ConnEvent.ESTABLISHED:
                raise ConnectError("rpma_conn_next_event", event, f"RPMA_CONN_{event.name}", conn_event_2str(event))
        except BaseException:
            self.close()
            raise
        return self

    async def _established_async(self, timeout: float | None) -> Conn:
        try:
            event = await self.next_event_async(timeout)
        except BaseException:
            self.close()
            raise
        return self._established(lambda: event)

    # ---- What it tells ----

    @property
    def private_data(self) -> bytes:
        """The data that the peer sent: of the one who accepted, once ESTABLISHED was taken. Over RDMA devices, there
        may be zeros behind them."""
        return _rpma.rpma_conn_get_private_data(self._handle)

    @property
    def qp_num(self) -> int:
        """The number of the connection in the completions of its operations."""
        return _rpma.rpma_conn_get_qp_num(self._handle)

    def apply_remote_peer_cfg(self, cfg: PeerCfg) -> None:
        """Takes note of what the peer's configuration says; see flush()."""
        _rpma.rpma_conn_apply_remote_peer_cfg(self._handle, cfg._handle)

    # ---- Completions ----

    @property
    def cq(self) -> Cq:
        """The main completion queue."""
        return Cq(self, 0)

    @property
    def rcq(self) -> Cq | None:
        """The completion queue for receives; None where the main one has them, or that of a shared receive queue."""
        return self._queue(1)

    def wait(self, timeout: float | None = None) -> tuple[Cq, bool]:
        """Waits for news of either completion queue of a connection with a shared channel (ConnCfg.compl_channel), and
        tells which, and whether it is rcq. Raises Error(NOT_SHARED_CHNL) where the channel is not shared."""
        _, is_rcq = _rpma.rpma_conn_wait(self._handle, timeout=timeout)
        return Cq(self, int(is_rcq)), is_rcq

    async def wait_async(self, timeout: float | None = None) -> tuple[Cq, bool]:
        """As wait(), for asyncio."""
        return await _until(self.compl_fd, self.wait, timeout)

    @property
    def compl_fd(self) -> int:
        """The descriptor that is readable while there are news of either queue. Raises Error(NOT_SHARED_CHNL) where
        the channel is not shared."""
        return _rpma.rpma_conn_get_compl_fd(self._handle)

    # ---- Messages ----

    def send(self, source: Piece | None = None, *, context: int = 0, flags: Flags = Flags.COMPLETION_ALWAYS) -> None:
        """Sends a message into the peer's oldest receive; it waits until there is one. None: an empty message."""
        _rpma.rpma_send(self._handle, *place_of(source), flags, context)

    def send_with_imm(self, source: Piece | None, imm: int, *, context: int = 0,
                      flags: Flags = Flags.COMPLETION_ALWAYS) -> None:
        """As send(); imm, 32 bits, is in the completion of the receive: Completion.imm."""
        _rpma.rpma_send_with_imm(self._handle, *place_of(source), flags, imm, context)

    def recv(self, destination: Piece | None = None, *, context: int = 0) -> None:
        """Gives memory for a message; may be called before ESTABLISHED. None: for an empty one. The data are in
        destination.view[:completion.byte_len] then. Raises Error(PROVIDER) where the receive queue is full, or the
        connection takes its receives from a shared queue."""
        _rpma.rpma_recv(self._handle, *place_of(destination), context)

    # ---- Memory of the peer ----

    def read(self, destination: Piece | None, source: MrRemote | None, offset: int = 0, *, context: int = 0,
             flags: Flags = Flags.COMPLETION_ALWAYS) -> None:
        """Copies from the peer's memory at the offset. For 0 bytes both may be None."""
        local, local_offset, length = place_of(destination)
        _rpma.rpma_read(self._handle, local, local_offset, handle_of(source), offset, length, flags, context)

    def write(self, destination: MrRemote | None, offset: int, source: Piece | None, *, context: int = 0,
              flags: Flags = Flags.COMPLETION_ALWAYS) -> None:
        """Copies to the peer's memory at the offset. For 0 bytes both may be None."""
        _rpma.rpma_write(self._handle, handle_of(destination), offset, *place_of(source), flags, context)

    def write_with_imm(self, destination: MrRemote | None, offset: int, source: Piece | None, imm: int, *,
                       context: int = 0, flags: Flags = Flags.COMPLETION_ALWAYS) -> None:
        """As write(); imm, 32 bits, then completes a receive of the peer: Completion.imm."""
        _rpma.rpma_write_with_imm(self._handle, handle_of(destination), offset, *place_of(source), flags, imm, context)

    def atomic_write(self, destination: MrRemote, offset: int, value: Buffer, *, context: int = 0,
                     flags: Flags = Flags.COMPLETION_ALWAYS) -> None:
        """Writes 8 bytes that every observer sees at once, after the reads and flushes that were posted before. They
        are copied by the call. Raises Error(INVAL) also where the offset is not a multiple of 8, ValueError where it
        is not 8 bytes."""
        _rpma.rpma_atomic_write(self._handle, destination._handle, offset, bytes(value), flags, context)

    def flush(self, destination: MrRemote, offset: int, length: int, type: FlushType = FlushType.VISIBILITY, *,
              context: int = 0, flags: Flags = Flags.COMPLETION_ALWAYS) -> None:
        """Completes once earlier writes to the part of the region have got as far as `type` says. Raises Error(NOSUPP)
        where the usage of the region does not allow it, or, for PERSISTENT, the applied configuration of the peer."""
        _rpma.rpma_flush(self._handle, destination._handle, offset, length, type, flags, context)


# ---- The log ---------------------------------------------------------------------------------------------------------

LogFunction = typing.Callable[[LogLevel, str, typing.Optional[str], int, typing.Optional[str]], object]


def log_set_threshold(threshold: LogThreshold, level: LogLevel) -> None:
    """Sets up to which level messages are told."""
    _rpma.rpma_log_set_threshold(threshold, level)


def log_get_threshold(threshold: LogThreshold) -> LogLevel:
    """Up to which level messages are told."""
    return LogLevel(_rpma.rpma_log_get_threshold(threshold))


def log_set_function(function: LogFunction | None) -> None:
    """Sets the function that gets the messages: function(level, text, file, line, name), with the place in the library
    that they come from (file and name may be None). Any thread may call it, several at once; what it raises goes to
    sys.unraisablehook. None: the default function, which writes to syslog(3) and, up to LogThreshold.AUX, to stderr."""
    if function is None:
        _rpma.rpma_log_set_function(None)
        return
    receive = function

    def deliver(level: int, file: str | None, line: int, name: str | None, text: str) -> None:
        receive(LogLevel(level), text.rstrip("\n"), file, line, name)
    _rpma.rpma_log_set_function(deliver)


_naming.adopt(__name__, __all__)
