# SPDX-License-Identifier: BSD-3-Clause
"""Connections, requests for them, and endpoints where requests arrive."""
from __future__ import annotations

import typing

from viaduct import _rpma
from viaduct._lifetime import Resource
from viaduct.memory import Buffer
from viaduct.rpma.completions import Cq, HasQueues
from viaduct.rpma.configurations import ConnCfg, PeerCfg
from viaduct.rpma.constants import ConnEvent, Flags, FlushType
from viaduct.rpma.errors import ConnectError
from viaduct.rpma.memory import MrRemote, Piece, place_of
from viaduct.rpma.objects import Object, handle_of
from viaduct.rpma.waiting import until


class ConnReq(Object):
    """A request for a connection: one's own (Peer.conn_req_new()) or one that came (Ep.next_conn_req()). Closing it
    withdraws the one and refuses the other."""

    def __init__(self, handle: int, peer: Object, cfg: ConnCfg | None) -> None:
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

    def __init__(self, handle: int, peer: Object) -> None:
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
        return await until(self.fileno(), attempt, timeout)

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


def conn_event_2str(event: int) -> str:
    """An event in words."""
    return _rpma.rpma_utils_conn_event_2str(event)


class Conn(HasQueues):
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
        return await until(self.fileno(), self.next_event, timeout)

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
        return await until(self.compl_fd, self.wait, timeout)

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
