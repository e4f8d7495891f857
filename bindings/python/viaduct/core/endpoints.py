# SPDX-License-Identifier: BSD-3-Clause
"""Endpoints."""
from __future__ import annotations

import typing

from viaduct import _core, _waiting
from viaduct.core.addresses import Service, resolve, service_bytes
from viaduct.core.constants import Access, Code, ConnectionEventKind, Opcode, Reliability, State, rights_of
from viaduct.core.errors import RequestError, error_of
from viaduct.core.memory import MemoryRegion, MemoryWindow, ProtectionDomain
from viaduct.core.objects import Held, next_of
from viaduct.core.queues import CompletionQueue, SharedReceiveQueue
from viaduct.core.structures import Completion, ConnectionEvent, Piece, Pieces, Remote, sequence_of


class Endpoint(Held):
    """A send queue, a receive queue and, at times, a connection.

    send_queue, receive_queue      where requests complete; where none is given it gets one of its own
    shared_receives                where receives come from instead of post_receive()
    send_depth, receive_depth      requests outstanding at once; None: as many as the device suggests
    access                         the RDMA that the peer may do, as far as the device and the reliability have it
    reliability                    must be that of the peer, as must max_transfer_bytes (0 fits all)
    breaks_unready                 a message without a receive breaks the connection, as VIPL has it; else it waits
    silent_refusals                refused writes complete as if they had arrived, as VIPL has it
    context                        comes back in completions
    """

    def __init__(self, domain: ProtectionDomain, *, send_queue: CompletionQueue | None = None,
                 receive_queue: CompletionQueue | None = None, shared_receives: SharedReceiveQueue | None = None,
                 send_depth: int | None = None, receive_depth: int | None = None, access: Access = Access.ALL,
                 reliability: Reliability = Reliability.RELIABLE_DELIVERY, breaks_unready: bool = False,
                 silent_refusals: bool = False, max_transfer_bytes: int = 0, context: int = 0) -> None:
        device = domain.device
        if reliability == Reliability.UNRELIABLE:
            access &= Access.REMOTE_WRITE
        elif not device.capabilities["atomics"]:
            access &= ~Access.REMOTE_ATOMIC
        self.send_queue = send_queue or CompletionQueue(device)
        self.receive_queue = receive_queue or CompletionQueue(device)
        self._raw = _core.Endpoint(domain._raw, self.send_queue._raw, self.receive_queue._raw,
                                   shared_receives._raw if shared_receives else None, send_depth, receive_depth, context,
                                   reliability, breaks_unready, silent_refusals, max_transfer_bytes, *rights_of(access))
        super().__init__(domain, self.send_queue, self.receive_queue, *([shared_receives] if shared_receives else []))
        self._owned = [queue for queue, given in ((self.send_queue, send_queue), (self.receive_queue, receive_queue))
                       if given is None]

    @property
    def state(self) -> State:
        return State(self._raw.state)

    # ---- Connections ----

    def start_connect(self, host: str | bytes, service: Service, *, private_data: bytes = b"",
                      timeout: float | None = None, peer_to_peer: bool = False, bare: bool = False) -> None:
        """Begins to connect; an event tells of the end. peer_to_peer: both ends ask for each other. bare: private data
        alone travel over RDMA devices, as librpma and DAT expect there. Raises Error: UNREACHABLE, INVALID_STATE,
        NO_LISTENER."""
        self._raw.connect(resolve(host), service_bytes(service), private_data, timeout, peer_to_peer, bare)

    def connect(self, host: str | bytes, service: Service, **options: typing.Any) -> ConnectionEvent:
        """Connects, with the options of start_connect(), and returns the peer's answer. Raises Error: NO_LISTENER,
        REJECTED, UNREACHABLE; and TimeoutError."""
        self.start_connect(host, service, **options)
        return self._connected(next_of(self._next_event, self.fileno(), None))

    async def connect_async(self, host: str | bytes, service: Service, **options: typing.Any) -> ConnectionEvent:
        """As connect(), for asyncio."""
        self.start_connect(host, service, **options)
        return self._connected(await _waiting.until(self.fileno(), self._next_event))

    def _next_event(self) -> _core._Event | None:
        return self._raw.next_event()

    def _connected(self, raw: typing.Any) -> ConnectionEvent:
        event = _event(raw)
        if event.kind == ConnectionEventKind.ESTABLISHED:
            return event
        code = {ConnectionEventKind.TIMED_OUT: Code.TIMED_OUT, ConnectionEventKind.CONFLICT: event.reason,
                ConnectionEventKind.REJECTED: event.reason or Code.REJECTED}.get(event.kind, Code.UNREACHABLE)
        raise error_of("Endpoint.connect", code)

    def next_event(self, timeout: float | None = 0) -> ConnectionEvent | None:
        """The oldest event of the connection; None where none came in time."""
        raw = next_of(self._next_event, self.fileno(), timeout)
        return None if raw is None else _event(raw)

    async def next_event_async(self, timeout: float | None = None) -> ConnectionEvent | None:
        """As next_event(), for asyncio."""
        raw = await _waiting.until(self.fileno(), self._next_event, timeout)
        return None if raw is None else _event(raw)

    def disconnect(self) -> None:
        """Ends a connection or an attempt; what was posted completes as FLUSHED. The endpoint may be connected again."""
        self._raw.disconnect()

    def drain_and_disconnect(self) -> None:
        """Disconnects once all that was posted to send is done; DISCONNECTED tells of it. Raises Error(INVALID_STATE)."""
        self._raw.drain_and_disconnect()

    def fail(self) -> None:
        """Breaks the connection off: the peer sees it LOST."""
        self._raw.fail()

    def fileno(self) -> int:
        """Readable while events of the connection wait."""
        return self._raw.fd

    # ---- Requests. Common options: context (comes back in the completion), signaled (False: a completion only where it
    # fails), fence (begin only when earlier reads and atomics are done), solicited (wakes a peer that waits for such).

    def post_receive(self, pieces: Pieces, *, context: int = 0) -> None:
        """Posts a receive for one message. May be done before connecting. Raises Error(QUEUE_FULL)."""
        self._raw.post_receive(context, sequence_of(pieces))

    def post_send(self, pieces: Pieces = (), *, immediate: int | None = None, invalidate: int | None = None,
                  context: int = 0, signaled: bool = True, fence: bool = False, solicited: bool = False) -> None:
        """Posts a message. immediate: 32 bits that come with it; invalidate: the key of a window that it ends."""
        opcode = Opcode.SEND if invalidate is None else Opcode.SEND_INVALIDATE
        self._raw.post_send(opcode, context, sequence_of(pieces), 0, invalidate or 0, immediate is not None,
                            immediate or 0, 0, fence, signaled, solicited)

    def post_write(self, pieces: Pieces, remote: Remote, *, immediate: int | None = None, context: int = 0,
                   signaled: bool = True, fence: bool = False, solicited: bool = False) -> None:
        """Writes to the peer's memory. immediate: completes a receive there, too."""
        self._raw.post_send(Opcode.RDMA_WRITE, context, sequence_of(pieces), remote.address, remote.key,
                            immediate is not None, immediate or 0, 0, fence, signaled, solicited)

    def post_read(self, pieces: Pieces, remote: Remote, *, context: int = 0, signaled: bool = True,
                  fence: bool = False) -> None:
        """Reads the peer's memory into the pieces."""
        self._raw.post_send(Opcode.RDMA_READ, context, sequence_of(pieces), remote.address, remote.key, False, 0, 0,
                            fence, signaled)

    def post_atomic_write(self, piece: Piece, remote: Remote, *, context: int = 0, signaled: bool = True,
                          fence: bool = False) -> None:
        """Writes 8 bytes to an aligned place, which everybody there sees whole."""
        self._raw.post_send(Opcode.ATOMIC_WRITE, context, (piece,), remote.address, remote.key, False, 0, 0, fence,
                            signaled)

    def post_flush(self, remote: Remote, nbytes: int, *, persistent: bool = False, context: int = 0,
                   signaled: bool = True, fence: bool = False) -> None:
        """Completes once what was written there is seen by all; or, if persistent, survives a loss of power."""
        self._raw.post_send(Opcode.FLUSH, context, (), remote.address, remote.key, False, 0, nbytes, fence, signaled,
                            False, persistent)

    def post_fetch_add(self, piece: Piece, remote: Remote, add: int, *, context: int = 0, signaled: bool = True,
                       fence: bool = False) -> None:
        """Adds to 8 aligned bytes of the peer; the piece (8 bytes) gets what they were."""
        self._raw.post_send(Opcode.FETCH_ADD, context, (piece,), remote.address, remote.key, False, 0, add, fence,
                            signaled)

    def post_compare_swap(self, piece: Piece, remote: Remote, compare: int, swap: int, *, context: int = 0,
                          signaled: bool = True, fence: bool = False) -> None:
        """Puts `swap` in the place of `compare` into 8 aligned bytes of the peer; the piece gets what they were."""
        self._raw.post_send(Opcode.COMPARE_SWAP, context, (piece,), remote.address, remote.key, False, compare, swap,
                            fence, signaled)

    def bind(self, window: MemoryWindow, region: MemoryRegion | None = None, part: slice = slice(None),
             access: Access = Access.ALL, *, context: int = 0, signaled: bool = True, fence: bool = False) -> Remote:
        """Shows a part of a region in a window, or without a region nothing; returns what peers need to reach it."""
        address, length = region[part][:2] if region is not None else (0, 0)
        self._raw.bind(window._raw, context, region._raw if region else None, address, length, *rights_of(access), fence, signaled)
        return Remote(address, window.key)

    def outstanding(self, *, receives: bool = False) -> int:
        """Requests whose completions were not taken yet."""
        return self._raw.outstanding(receives)

    # ---- Completions, where nobody else uses the endpoint's queues ----

    def wait_send(self, timeout: float | None = None) -> Completion:
        """Waits for the next request of the send queue. Raises RequestError where it failed, and TimeoutError."""
        return _succeeded("Endpoint.wait_send", self.send_queue.wait(1, timeout)[0])

    def wait_receive(self, timeout: float | None = None) -> Completion:
        """Waits for the next message. Raises RequestError where the receive failed, and TimeoutError."""
        return _succeeded("Endpoint.wait_receive", self.receive_queue.wait(1, timeout)[0])

    async def wait_send_async(self, timeout: float | None = None) -> Completion:
        """As wait_send(), for asyncio."""
        return _succeeded("Endpoint.wait_send_async", (await self.send_queue.wait_async(1, timeout))[0])

    async def wait_receive_async(self, timeout: float | None = None) -> Completion:
        """As wait_receive(), for asyncio."""
        return _succeeded("Endpoint.wait_receive_async", (await self.receive_queue.wait_async(1, timeout))[0])

    def _release(self) -> None:
        self._raw.disconnect()  # who waits for events holds the endpoint: the peer need not wait for that
        super()._release()
        for queue in self._owned:
            queue.close()


def _succeeded(call: str, completion: Completion) -> Completion:
    if not completion.ok:
        raise RequestError(call, completion)
    return completion


def _event(raw: tuple[int, int, bytes, bytes, bytes]) -> ConnectionEvent:
    return ConnectionEvent(ConnectionEventKind(raw[0]), Code(raw[1]), *raw[2:])
