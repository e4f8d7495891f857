# SPDX-License-Identifier: BSD-3-Clause
"""Endpoints."""
from __future__ import annotations

import asyncio

from viaduct import _core, _waiting
from viaduct._arguments import awaits, quick
from viaduct._services import service_bytes
from viaduct.core.addresses import Service, resolve
from viaduct.core.constants import Code, ConnectionEventKind, Reliability, State
from viaduct.core.errors import RequestError, error_of
from viaduct.core.memory import Access, MemoryRegion, MemoryWindow, ProtectionDomain
from viaduct.core.objects import Held, next_of
from viaduct.core.queues import CompletionQueue, SharedReceiveQueue
from viaduct.core.structures import Completion, ConnectionEvent, Counters, Piece, Pieces, Remote


class Endpoint(Held):
    """An endpoint: a send queue, a receive queue and, when connected, a connection.

    send_queue, receive_queue      the completion queues of its requests; by default it creates its own
    shared_receives                the queue from which receives are taken, instead of post_receive()
    send_depth, receive_depth      the maximum number of outstanding requests; None: the device's default
    access                         the peer's RDMA access, as far as device and reliability allow it
    reliability                    see Reliability
    any_reliable                   True: also joins a peer of the other reliable level, as DAT and librpma do
    max_transfer_bytes             of one request; 0: the limit of the device
    breaks_unready                 True: a message without a receive breaks the connection, as in VIPL; else it waits
    silent_refusals                True: a refused RDMA write completes with success, as in VIPL
    context                        a number that completions contain

    Give both ends of a connection the same reliability, or any_reliable to one of them, and the same
    max_transfer_bytes: only peer-to-peer connections check them.

    Posting does not wait: the request completes later, and its completion reports whether it succeeded. Without a
    connection it completes as FLUSHED. Posting raises Error: QUEUE_FULL, INVALID_PARAMETER (more pieces than the
    device supports). Options of posts:

    context      a number that the completion contains
    signaled     False: there is a completion only if the request fails
    fence        the request starts when earlier reads and atomic operations are complete
    solicited    wakes a peer that waits for solicited messages

    Closing the endpoint ends a connection and flushes posted requests.
    """

    def __init__(self, domain: ProtectionDomain, *, send_queue: CompletionQueue | None = None,
                 receive_queue: CompletionQueue | None = None, shared_receives: SharedReceiveQueue | None = None,
                 send_depth: int | None = None, receive_depth: int | None = None, access: Access = Access.ALL,
                 reliability: Reliability = Reliability.RELIABLE_DELIVERY, any_reliable: bool = False,
                 breaks_unready: bool = False, silent_refusals: bool = False, max_transfer_bytes: int = 0,
                 context: int = 0) -> None:
        """Raises Error: INVALID_PARAMETER (a depth above the limit of the device), INVALID_RELIABILITY (the device
        does not have the level, or any_reliable with UNRELIABLE or silent_refusals), INVALID_TRANSFER_SIZE,
        INVALID_RDMA_READ, NO_RESOURCES."""
        device = domain.device
        if reliability == Reliability.UNRELIABLE:
            access &= Access.REMOTE_WRITE
        elif not device.capabilities["atomics"]:
            access &= ~Access.REMOTE_ATOMIC
        self.send_queue = send_queue or CompletionQueue(device)
        self.receive_queue = receive_queue or CompletionQueue(device)
        self._raw = _core.Endpoint(domain._raw, self.send_queue._raw, self.receive_queue._raw,
                                   shared_receives._raw if shared_receives else None, send_depth, receive_depth,
                                   context, reliability, any_reliable, breaks_unready, silent_refusals,
                                   max_transfer_bytes, access)
        self._owned = [queue for queue, given in ((self.send_queue, send_queue), (self.receive_queue, receive_queue))
                       if given is None]
        super().__init__(domain, self.send_queue, self.receive_queue, *([shared_receives] if shared_receives else []))

    @property
    def state(self) -> State:
        """The present state."""
        return State(self._raw.state)

    def _description(self) -> str:
        return self.state.name

    # ---- Connections ----

    def start_connect(self, host: str | bytes, service: Service, *, private_data: bytes = b"",
                      timeout: float | None = None, peer_to_peer: bool = False, bare: bool = False) -> None:
        """Starts to connect to a service of a host, and returns. next_event() reports the outcome.

        private_data    bytes for the peer; at most limits["max_private_data_bytes"] of the device
        timeout         seconds after which the event is TIMED_OUT
        peer_to_peer    both ends ask for each other, and none listens
        bare            over RDMA devices, send the private data alone, as librpma and DAT expect

        Waits for the system's resolver if the host is a name. Raises Error: UNREACHABLE, INVALID_STATE (the endpoint
        is not UNCONNECTED), INVALID_PARAMETER, NO_LISTENER (on loopback; elsewhere an event reports it); ValueError
        if private_data or the service is too long.
        """
        self._raw.connect(resolve(host), service_bytes(service), private_data, timeout, peer_to_peer, bare)

    def connect(self, host: str | bytes, service: Service, *, private_data: bytes = b"", timeout: float | None = None,
                peer_to_peer: bool = False, bare: bool = False) -> ConnectionEvent:
        """Connects, and returns the event with the peer's private data. The options are those of start_connect().

        Waits for the answer, at most `timeout` seconds. Raises what start_connect() raises, TimeoutError, Error:
        NO_LISTENER, REJECTED, UNREACHABLE; with peer_to_peer also INVALID_RELIABILITY and INVALID_TRANSFER_SIZE, if the
        attribute differs from the peer's.
        """
        self.start_connect(host, service, private_data=private_data, timeout=timeout, peer_to_peer=peer_to_peer,
                           bare=bare)
        return self._connected(next_of(self._next_event, self.fileno(), None))

    async def connect_async(self, host: str | bytes, service: Service, *, private_data: bytes = b"",
                            timeout: float | None = None, peer_to_peer: bool = False,
                            bare: bool = False) -> ConnectionEvent:
        """Connects, and returns the event with the peer's private data, without blocking the asyncio loop. The options
        are those of start_connect(), the errors those of connect()."""
        if isinstance(host, str):
            host = await asyncio.to_thread(resolve, host)
        self.start_connect(host, service, private_data=private_data, timeout=timeout, peer_to_peer=peer_to_peer,
                           bare=bare)
        return self._connected(await _waiting.until(self.fileno(), self._next_event))

    def _next_event(self) -> ConnectionEvent | None:
        return self._raw.next_event()

    def _connected(self, event: ConnectionEvent | None) -> ConnectionEvent:
        assert event is not None  # the wait has no timeout
        if event.kind == ConnectionEventKind.ESTABLISHED:
            return event
        code = {ConnectionEventKind.TIMED_OUT: Code.TIMED_OUT, ConnectionEventKind.CONFLICT: event.reason,
                ConnectionEventKind.REJECTED: event.reason or Code.REJECTED}.get(event.kind, Code.UNREACHABLE)
        raise error_of("Endpoint.connect", code, event.why)

    def next_event(self, timeout: float | None = 0) -> ConnectionEvent | None:
        """Returns the oldest event of the connection, or None if there is none within `timeout` seconds."""
        return next_of(self._next_event, self.fileno(), timeout)

    async def next_event_async(self, timeout: float | None = None) -> ConnectionEvent | None:
        """Waits for the oldest event of the connection without blocking the asyncio loop, and returns it, or None if
        there is none within `timeout` seconds; None waits forever."""
        return await _waiting.until(self.fileno(), self._next_event, timeout)

    def disconnect(self) -> None:
        """Ends a connection, or an attempt to connect. Posted requests complete as FLUSHED. The endpoint may connect
        again."""
        self._raw.disconnect()

    def drain_and_disconnect(self) -> None:
        """Disconnects when all requests of the send queue are complete, and returns immediately: the event DISCONNECTED
        reports the end. Raises Error(INVALID_STATE) without a connection."""
        self._raw.drain_and_disconnect()

    def fail(self) -> None:
        """Breaks the connection: the peer gets the event LOST."""
        self._raw.fail()

    def fileno(self) -> int:
        """Returns the descriptor, which is readable while events of the connection are queued."""
        return self._raw.fd

    # ---- Requests ----

    @quick
    def post_receive(self, pieces: Pieces, *, context: int = 0) -> None:
        """Posts a receive for one message, also before connecting. Raises Error(INVALID_STATE) if the endpoint takes
        its receives from a shared queue; see the class for other errors."""
        self._raw.post_receive(pieces, context)

    @quick
    def post_send(self, pieces: Pieces = (), *, immediate: int | None = None, invalidate: int | None = None,
                  context: int = 0, signaled: bool = True, fence: bool = False, solicited: bool = False) -> None:
        """Posts a message. immediate: 32 bits for the peer's completion; invalidate: the key of a window of the peer
        that the message invalidates."""
        self._raw.post_send(pieces, immediate, invalidate, context, signaled, fence, solicited)

    @quick
    def post_write(self, pieces: Pieces, remote: Remote, *, immediate: int | None = None, context: int = 0,
                   signaled: bool = True, fence: bool = False, solicited: bool = False) -> None:
        """Posts an RDMA write of the pieces to the peer's memory. immediate: 32 bits; such a write also completes a
        receive of the peer."""
        self._raw.post_write(pieces, remote, immediate, context, signaled, fence, solicited)

    @quick
    def post_read(self, pieces: Pieces, remote: Remote, *, context: int = 0, signaled: bool = True,
                  fence: bool = False) -> None:
        """Posts an RDMA read of the peer's memory into the pieces."""
        self._raw.post_read(pieces, remote, context, signaled, fence)

    @quick
    def post_atomic_write(self, piece: Piece, remote: Remote, *, context: int = 0, signaled: bool = True,
                          fence: bool = False) -> None:
        """Posts a write of 8 bytes to an address that is a multiple of 8. A reader sees all of them or none."""
        self._raw.post_atomic_write(piece, remote, context, signaled, fence)

    @quick
    def post_flush(self, remote: Remote, nbytes: int, *, persistent: bool = False, context: int = 0,
                   signaled: bool = True, fence: bool = False) -> None:
        """Posts a flush of `nbytes` bytes: it completes when all observers see earlier writes. persistent: when these
        survive a loss of power."""
        self._raw.post_flush(remote, nbytes, persistent, context, signaled, fence)

    @quick
    def post_fetch_add(self, piece: Piece, remote: Remote, add: int, *, context: int = 0, signaled: bool = True,
                       fence: bool = False) -> None:
        """Posts an atomic addition to 8 bytes of the peer, at an address that is a multiple of 8. The piece, 8 bytes,
        receives their previous value."""
        self._raw.post_fetch_add(piece, remote, add, context, signaled, fence)

    @quick
    def post_compare_swap(self, piece: Piece, remote: Remote, compare: int, swap: int, *, context: int = 0,
                          signaled: bool = True, fence: bool = False) -> None:
        """Posts an atomic comparison of 8 bytes of the peer, at an address that is a multiple of 8, with `compare`; if
        they are equal, `swap` replaces them. The piece, 8 bytes, receives their previous value."""
        self._raw.post_compare_swap(piece, remote, compare, swap, context, signaled, fence)

    def bind(self, window: MemoryWindow, region: MemoryRegion | None = None, part: slice = slice(None),
             access: Access = Access.ALL, *, context: int = 0, signaled: bool = True, fence: bool = False) -> Remote:
        """Posts a request to bind a window to a part of a region or, without a region, to unbind it.

        Returns what the peer needs to access the window once the request has completed. The window keeps the region
        open; closing the region closes the window. Keep a former region open until the request has completed. Only one
        thread may bind a window at a time.
        """
        address, length = region[part][:2] if region is not None else (0, 0)
        self._raw.bind(window._raw, context, region._raw if region else None, address, length, access, fence,
                       signaled)
        window._depend_on(window.domain, *([region] if region else []))
        return Remote(address, window.key)

    def outstanding(self, *, receives: bool = False) -> int:
        """Returns the number of requests whose completions were not taken yet: sends, or with receives=True receives.
        """
        return self._raw.outstanding(receives)

    # ---- Completions, where nobody else uses the endpoint's queues ----

    def counters(self) -> Counters:
        """Returns what the endpoint has transferred since it was created."""
        return self._raw.counters()

    @awaits("completion of a send")
    def wait_send(self, timeout: float | None = None) -> Completion:
        """Waits for the next completion of the send queue, and returns it. For endpoints that share the queue with no
        other.

        Raises RequestError if the request failed, TimeoutError after `timeout` seconds.
        """
        return _succeeded("Endpoint.wait_send", self.send_queue._wait(self, 1, timeout)[0])

    @awaits("completion of a receive")
    def wait_receive(self, timeout: float | None = None) -> Completion:
        """Waits for the next completion of the receive queue, and returns it. For endpoints that share the queue with
        no other.

        Raises RequestError if the receive failed, TimeoutError after `timeout` seconds.
        """
        return _succeeded("Endpoint.wait_receive", self.receive_queue._wait(self, 1, timeout)[0])

    @awaits("completion of a send")
    async def wait_send_async(self, timeout: float | None = None) -> Completion:
        """Waits for the next completion of the send queue without blocking the asyncio loop, and returns it. For
        endpoints that share the queue with no other.

        Raises RequestError if the request failed, TimeoutError after `timeout` seconds.
        """
        return _succeeded("Endpoint.wait_send_async", (await self.send_queue._wait_async(self, 1, timeout))[0])

    @awaits("completion of a receive")
    async def wait_receive_async(self, timeout: float | None = None) -> Completion:
        """Waits for the next completion of the receive queue without blocking the asyncio loop, and returns it. For
        endpoints that share the queue with no other.

        Raises RequestError if the receive failed, TimeoutError after `timeout` seconds.
        """
        return _succeeded("Endpoint.wait_receive_async", (await self.receive_queue._wait_async(self, 1, timeout))[0])

    def _release(self) -> None:
        if "_raw" in vars(self):
            self._raw.disconnect()  # immediately, because a waiting thread may keep a reference to the object
        super()._release()
        for queue in self._owned:
            queue.close()


def _succeeded(call: str, completion: Completion) -> Completion:
    if not completion.ok:
        raise RequestError(call, completion)
    return completion
