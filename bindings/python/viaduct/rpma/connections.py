# SPDX-License-Identifier: BSD-3-Clause
"""Connections, connection requests, and endpoints, which listen for them."""
from __future__ import annotations

import typing

from viaduct import _core, _rpma
from viaduct._arguments import MISTAKES, awaits, checked, explain, quick
from viaduct._lifetime import Resource
from viaduct.memory import Buffer
from viaduct.rpma.completions import Cq, HasQueues
from viaduct.rpma.configurations import ConnCfg, PeerCfg
from viaduct.rpma.constants import ConnEvent, Flags, FlushType
from viaduct.rpma.errors import ConnectError
from viaduct.rpma.memory import MrRemote, Piece, place_of
from viaduct.rpma.objects import Object, handle_of, handle_or_null
from viaduct.rpma.waiting import until


class ConnReq(Object):
    """A connection request: an outgoing one of Peer.conn_req_new(), or an incoming one of Ep.next_conn_req().

    Closing it withdraws an outgoing request, and refuses an incoming one.
    """

    _ended_by = "rpma_conn_req_delete"

    def __init__(self, own: _core.Owned, peer: Object, cfg: ConnCfg | None) -> None:
        super().__init__(own, peer, *([] if cfg is None or cfg._srq is None else [cfg._srq]))

    def delete(self) -> None:
        """Withdraws an outgoing request, or refuses an incoming one; same as close()."""
        self._delete()

    def connect(self, private_data: Buffer | None = None) -> Conn:
        """Sends an outgoing request, or accepts an incoming one, and returns the connection. Its first event reports
        the outcome.

        private_data: 1 to 255 bytes for the peer. Raises ValueError if private_data is too long; Error: PROVIDER (the
        requester has given up), INVAL (private_data is empty). Error consumes the request, as success does.
        """
        data = None if private_data is None else bytes(memoryview(private_data))
        if data is not None and len(data) > 255:
            raise ValueError("private data has at most 255 bytes")
        handle = self._handle

        def connect() -> Conn:
            return Conn(Conn._make(self._own.end_with, _rpma.rpma_conn_req_connect, handle, data), self._parents)
        return self._end_by(lambda: self._end_anyhow(connect))

    def recv(self, destination: Piece, *, context: int = 0) -> None:
        """Posts memory for one message before the connection is established.

        The data are in destination.view[:completion.byte_len]. Raises Error(PROVIDER) if the receive queue is full, or
        the connection uses a shared receive queue.
        """
        _rpma.rpma_conn_req_recv(self._handle, *place_of(destination), context)

    @property
    def private_data(self) -> bytes:
        """The private data of an incoming request. Over RDMA devices it may be padded with zeros."""
        return _rpma.rpma_conn_req_get_private_data(self._handle)


class Ep(Object):
    """An endpoint, which listens for connection requests. Created by Peer.ep_listen().

    Closing it rejects pending requests; established connections are not affected.
    """

    _ended_by = "rpma_ep_shutdown"

    def __init__(self, own: _core.Owned, peer: Object) -> None:
        self._peer = peer
        super().__init__(own, peer)

    def shutdown(self) -> None:
        """Stops listening; same as close()."""
        self._delete()

    def fileno(self) -> int:
        """Returns the descriptor, which is readable when a request may be queued."""
        return _rpma.rpma_ep_get_fd(self._handle)

    @awaits("connection request")
    def next_conn_req(self, cfg: ConnCfg | None = None, timeout: float | None = None) -> ConnReq:
        """Waits for the next request, and returns it. cfg configures its connection; None means the defaults.

        Raises TimeoutError after `timeout` seconds. If the configuration cannot be used, the request is rejected, and
        the errors are those of Peer.conn_req_new().
        """
        made = ConnReq._make(_rpma.rpma_ep_next_conn_req, self._handle, handle_or_null(cfg, ConnCfg), timeout)
        return ConnReq(made, self._peer, cfg)

    @awaits("connection request")
    async def next_conn_req_async(self, cfg: ConnCfg | None = None, timeout: float | None = None) -> ConnReq:
        """Waits for the next request without blocking the asyncio loop, and returns it. cfg configures its connection;
        None means the defaults. The errors are those of next_conn_req()."""
        return await until(self.fileno(), lambda seconds: self.next_conn_req(cfg, seconds), timeout)

    def accept(self, cfg: ConnCfg | None = None, *, private_data: Buffer | None = None,
               timeout: float | None = None) -> Conn:
        """Waits for the next request, accepts it, waits for ESTABLISHED, and returns the connection.

        Each of the two waits may take `timeout` seconds. Raises what next_conn_req() and ConnReq.connect() raise,
        and ConnectError if the event is not ESTABLISHED.
        """
        conn = self.next_conn_req(cfg, timeout).connect(private_data)
        return conn._established(lambda: conn.next_event(timeout))

    async def accept_async(self, cfg: ConnCfg | None = None, *, private_data: Buffer | None = None,
                           timeout: float | None = None) -> Conn:
        """Waits for the next request, accepts it, waits for ESTABLISHED, and returns the connection, without blocking
        the asyncio loop. Each of the two waits may take `timeout` seconds. The errors are those of accept()."""
        conn = (await self.next_conn_req_async(cfg, timeout)).connect(private_data)
        return await conn._established_async(timeout)


@checked
def conn_event_2str(event: int) -> str:
    """Returns the description of an event."""
    return _rpma.rpma_utils_conn_event_2str(event)


class Conn(HasQueues):
    """A connection. Created by ConnReq.connect(); closing it ends it, with its completion queues.

    Operations do not wait: they are executed later, in order. Their completions report the results and contain
    `context`, 64 bits, in wr_id. Until then, neither change what an operation reads nor read what it changes.

    Each operation raises Error: INVAL (flags are 0, or the connection is closed), PROVIDER (the send queue is full,
    or the connection is not established yet). If a region does not allow the operation, the completion reports that.
    """

    _ended_by = "rpma_conn_delete"

    def __init__(self, own: _core.Owned, parents: typing.Iterable[Resource]) -> None:
        self._latest: ConnEvent | None = None
        super().__init__(own, parents, (_rpma.rpma_conn_get_cq(own.handle), _rpma.rpma_conn_get_rcq(own.handle)))

    def _description(self) -> str:
        return "no event yet" if self._latest is None else self._latest.name

    def delete(self) -> None:
        """Deletes the connection and its completion queues; same as close()."""
        self._delete()

    def disconnect(self) -> None:
        """Ends the connection. The event CLOSED follows, unless the end has already been reported. Operations posted
        before or after this call complete with WR_FLUSH_ERR."""
        _rpma.rpma_conn_disconnect(self._handle)

    # ---- Events ----

    @awaits("event of the connection")
    def next_event(self, timeout: float | None = None) -> ConnEvent:
        """Waits for the next event, and returns it. Raises TimeoutError after `timeout` seconds."""
        self._latest = ConnEvent(_rpma.rpma_conn_next_event(self._handle, timeout))
        return self._latest

    @awaits("event of the connection")
    async def next_event_async(self, timeout: float | None = None) -> ConnEvent:
        """Waits for the next event without blocking the asyncio loop, and returns it. Raises TimeoutError after
        `timeout` seconds."""
        return await until(self.fileno(), self.next_event, timeout)

    def fileno(self) -> int:
        """Returns the descriptor, which is readable while events are queued (rpma_conn_get_event_fd)."""
        return _rpma.rpma_conn_get_event_fd(self._handle)

    def _established(self, next_event: typing.Callable[[], ConnEvent]) -> Conn:
        """Returns the connection if the next event is ESTABLISHED; otherwise closes it and raises an exception."""
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
        """The private data of the peer; for an outgoing request, after ESTABLISHED was taken. Over RDMA devices it may
        be padded with zeros."""
        return _rpma.rpma_conn_get_private_data(self._handle)

    @property
    def qp_num(self) -> int:
        """The number of the connection in completions."""
        return _rpma.rpma_conn_get_qp_num(self._handle)

    def apply_remote_peer_cfg(self, cfg: PeerCfg) -> None:
        """Applies the configuration of the peer, which flush() requires."""
        _rpma.rpma_conn_apply_remote_peer_cfg(self._handle, handle_of(cfg, PeerCfg))

    # ---- Completions ----

    @property
    def cq(self) -> Cq:
        """The main completion queue."""
        return Cq(self, 0)

    @property
    def rcq(self) -> Cq | None:
        """The completion queue for receives; None if the main queue, or that of a shared receive queue, has their
        completions."""
        return self._queue(1)

    @awaits("completion")
    def wait(self, timeout: float | None = None) -> tuple[Cq, bool]:
        """Waits until one of the two completion queues may have new completions. For connections with
        ConnCfg.compl_channel.

        Returns that queue, and whether it is rcq. Raises TimeoutError after `timeout` seconds, Error(NOT_SHARED_CHNL)
        if the channel is not shared.
        """
        _, is_rcq = _rpma.rpma_conn_wait(self._handle, timeout=timeout)
        return Cq(self, int(is_rcq)), is_rcq

    @awaits("completion")
    async def wait_async(self, timeout: float | None = None) -> tuple[Cq, bool]:
        """Waits until one of the two completion queues may have new completions, without blocking the asyncio loop.
        Returns that queue, and whether it is rcq. The errors are those of wait()."""
        return await until(self.compl_fd, self.wait, timeout)

    @property
    def compl_fd(self) -> int:
        """The descriptor that is readable when one of the queues may have new completions. Raises
        Error(NOT_SHARED_CHNL) if the channel is not shared."""
        return _rpma.rpma_conn_get_compl_fd(self._handle)

    # ---- Messages ----

    @quick
    def send(self, source: Piece | None = None, *, context: int = 0, flags: Flags = Flags.COMPLETION_ALWAYS) -> None:
        """Sends a message to the peer's oldest receive. The message waits until there is one. None sends an empty
        message."""
        try:
            _rpma.rpma_send(self._handle, *place_of(source), flags, context)
        except MISTAKES as error:
            explain(error, Conn.send, locals())
            raise

    def send_with_imm(self, source: Piece | None, imm: int, *, context: int = 0,
                      flags: Flags = Flags.COMPLETION_ALWAYS) -> None:
        """Sends a message to the peer's oldest receive, whose completion contains imm, 32 bits: Completion.imm. The
        message waits until there is a receive. None sends an empty message."""
        _rpma.rpma_send_with_imm(self._handle, *place_of(source), flags, imm, context)

    @quick
    def recv(self, destination: Piece | None = None, *, context: int = 0) -> None:
        """Posts memory for one message, also before ESTABLISHED. None receives an empty message.

        The data are in destination.view[:completion.byte_len]. Raises Error(PROVIDER) if the receive queue is full, or
        the connection uses a shared receive queue.
        """
        try:
            _rpma.rpma_recv(self._handle, *place_of(destination), context)
        except MISTAKES as error:
            explain(error, Conn.recv, locals())
            raise

    # ---- Memory of the peer ----

    @quick
    def read(self, destination: Piece | None, source: MrRemote | None, offset: int = 0, *, context: int = 0,
             flags: Flags = Flags.COMPLETION_ALWAYS) -> None:
        """Copies from the peer's memory, at `offset`, into the piece. Both may be None to read 0 bytes."""
        try:
            local, local_offset, length = place_of(destination)
            _rpma.rpma_read(self._handle, local, local_offset, handle_or_null(source, MrRemote), offset, length, flags,
                            context)
        except MISTAKES as error:
            explain(error, Conn.read, locals())
            raise

    @quick
    def write(self, destination: MrRemote | None, offset: int, source: Piece | None, *, context: int = 0,
              flags: Flags = Flags.COMPLETION_ALWAYS) -> None:
        """Copies the piece to the peer's memory, at `offset`. Both may be None to write 0 bytes."""
        try:
            _rpma.rpma_write(self._handle, handle_or_null(destination, MrRemote), offset, *place_of(source), flags,
                             context)
        except MISTAKES as error:
            explain(error, Conn.write, locals())
            raise

    def write_with_imm(self, destination: MrRemote | None, offset: int, source: Piece | None, imm: int, *,
                       context: int = 0, flags: Flags = Flags.COMPLETION_ALWAYS) -> None:
        """Copies the piece to the peer's memory, at `offset`. Then it completes a receive of the peer, whose completion
        contains imm, 32 bits: Completion.imm. Both may be None to write 0 bytes."""
        _rpma.rpma_write_with_imm(self._handle, handle_or_null(destination, MrRemote), offset, *place_of(source), flags,
                                  imm, context)

    def atomic_write(self, destination: MrRemote, offset: int, value: Buffer, *, context: int = 0,
                     flags: Flags = Flags.COMPLETION_ALWAYS) -> None:
        """Writes 8 bytes to the peer's memory. Observers see all of them or none.

        They are written after earlier reads and flushes; the call copies them. Raises Error(INVAL) also if the
        offset is not a multiple of 8, ValueError if `value` does not have 8 bytes.
        """
        _rpma.rpma_atomic_write(self._handle, handle_of(destination, MrRemote), offset, bytes(memoryview(value)), flags,
                                context)

    def flush(self, destination: MrRemote, offset: int, length: int, type: FlushType = FlushType.VISIBILITY, *,
              context: int = 0, flags: Flags = Flags.COMPLETION_ALWAYS) -> None:
        """Completes when earlier writes to that part of the region are visible or persistent, as `type` says.

        Raises Error(NOSUPP) if the usage of the region does not allow it, or, for PERSISTENT, the peer's configuration;
        see apply_remote_peer_cfg().
        """
        _rpma.rpma_flush(self._handle, handle_of(destination, MrRemote), offset, length, type, flags, context)
