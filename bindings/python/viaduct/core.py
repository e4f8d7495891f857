# SPDX-License-Identifier: BSD-3-Clause
"""The model under VIPL, DAT and librpma: devices, memory, endpoints, completions and events.

The shortest way to a new test. A server and a client, each a process:

    with core.Device() as device:
        endpoint = device.endpoint()
        region = device.register(bytearray(64))
        endpoint.post_receive(region[:])
        device.listen(7204).accept(endpoint)
        received = endpoint.wait_receive(timeout=5)
        print(bytes(region.view[:received.nbytes]))

    with core.Device() as device:
        endpoint = device.endpoint()
        region = device.register(b"over the valley")
        endpoint.connect("127.0.0.1", 7204, timeout=5)
        endpoint.post_send(region[:])
        endpoint.wait_send(timeout=5)

Services are numbers below 65536, which are the ports of librpma, the connection qualifiers of DAT and discriminators of
two bytes of VIPL, or any bytes. Every object may be used by several threads at once.
"""
from __future__ import annotations

import enum
import os
import time
import typing

from viaduct import _core, _waiting, errors
from viaduct._lifetime import Resource
from viaduct.memory import Buffer, Pinned, alloc

__all__ = ["Access", "AsyncEvent", "AsyncEventKind", "Code", "Completion", "CompletionCode", "CompletionQueue",
           "ConnectionEvent", "ConnectionEventKind", "ConnectionRequest", "Device", "Endpoint", "Error", "Listener",
           "MemoryRegion", "MemoryWindow", "Operation", "Piece", "ProtectionDomain", "Reliability", "Remote",
           "RequestError", "SharedReceiveQueue", "State", "TimeoutError", "alloc", "backend", "devices", "resolve"]


class Code(enum.IntEnum):
    """Why a call failed."""
    OK = 0
    WOULD_BLOCK = 1
    INVALID_PARAMETER = 2
    INVALID_STATE = 3
    INVALID_RELIABILITY = 4
    INVALID_TRANSFER_SIZE = 5
    INVALID_QOS = 6
    INVALID_RDMA_READ = 7
    NO_RESOURCES = 8
    BUSY = 9
    QUEUE_FULL = 10
    TIMED_OUT = 11
    NO_LISTENER = 12
    REJECTED = 13
    UNREACHABLE = 14
    PERMISSION_DENIED = 15
    UNSUPPORTED = 16
    SYSTEM_ERROR = 17


class Error(errors.Error):
    """A call of the core failed; `code` is a Code, and `call` names the method."""


class TimeoutError(Error, errors.TimeoutError):
    """A time-out has passed."""


class RequestError(Error):
    """A request failed; `code` is a CompletionCode, and `completion` the whole of it."""

    def __init__(self, call: str, completion: Completion) -> None:
        errors.Error.__init__(self, call, completion.code, completion.code.name, completion.operation.name)
        self.completion = completion

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.call, self.completion)


def _error(call: str, code: int, where: str = "", number: int = 0) -> Error:
    """The exception for a failed call; the extension module calls it, too."""
    kind = TimeoutError if code == Code.TIMED_OUT else Error
    text = ": ".join(part for part in (where, os.strerror(number) if number else "") if part)
    return kind(call, Code(code), Code(code).name, text)


class Access(enum.IntFlag):
    """What peers may do with memory, and over an endpoint."""
    NONE = 0
    REMOTE_WRITE = 1
    REMOTE_READ = 2
    REMOTE_ATOMIC = 4
    ALL = 7


def _rights(access: Access) -> tuple[bool, bool, bool]:
    return bool(access & Access.REMOTE_WRITE), bool(access & Access.REMOTE_READ), bool(access & Access.REMOTE_ATOMIC)


class Reliability(enum.IntEnum):
    """What a connection promises: messages at most once; exactly once and in order; and, the last, sends that complete
    once the data are in the peer's memory."""
    UNRELIABLE = 0
    RELIABLE_DELIVERY = 1
    RELIABLE_RECEPTION = 2


class State(enum.IntEnum):
    """The states of an endpoint."""
    UNCONNECTED = 0
    RESERVED = 1
    TENTATIVE_PENDING = 2
    PASSIVE_PENDING = 3
    ACTIVE_PENDING = 4
    CONNECTED = 5
    DISCONNECT_PENDING = 6
    DISCONNECTED = 7


class _Opcode(enum.IntEnum):
    SEND = 0
    RDMA_WRITE = 1
    RDMA_READ = 2
    ATOMIC_WRITE = 3
    FLUSH = 4
    SEND_INVALIDATE = 5
    FETCH_ADD = 7
    COMPARE_SWAP = 8


class Operation(enum.IntEnum):
    """What a completion completes."""
    SEND = 0
    RDMA_WRITE = 1
    RDMA_READ = 2
    ATOMIC_WRITE = 3
    FLUSH = 4
    BIND_WINDOW = 5
    FETCH_ADD = 6
    COMPARE_SWAP = 7
    RECEIVE = 8
    RECEIVE_RDMA_WRITE = 9


class CompletionCode(enum.IntEnum):
    """How a request ended."""
    SUCCESS = 0
    LOCAL_FORMAT = 1
    LOCAL_LENGTH = 2
    LOCAL_PROTECTION = 3
    REMOTE_PROTECTION = 4
    REMOTE_OPERATION = 5
    REMOTE_LENGTH = 6
    TRANSPORT = 7
    PARTIAL_MESSAGE = 8
    FLUSHED = 9


class ConnectionEventKind(enum.IntEnum):
    """What happened to a connection. LOST: an error, or the death of the peer."""
    ESTABLISHED = 0
    REJECTED = 1
    TIMED_OUT = 2
    CONFLICT = 3
    UNREACHABLE = 4
    DISCONNECTED = 5
    LOST = 6


class AsyncEventKind(enum.IntEnum):
    """What a device reports unasked."""
    RECEIVE_QUEUE_EMPTY = 0
    REMOTE_WRITE_PROTECTION = 1
    REMOTE_WRITE_ABORTED = 2
    REMOTE_READ_PROTECTION = 3
    COMPLETION_QUEUE_OVERRUN = 4
    SHARED_RECEIVE_QUEUE_LIMIT = 5


class Piece(typing.NamedTuple):
    """A piece of a region of this process: what requests move. `region[0:8]` makes it."""
    address: int
    length: int
    key: int


class Remote(typing.NamedTuple):
    """A place in a peer's memory. Its fields travel in any message; `remote + 64` is 64 bytes further."""
    address: int
    key: int

    def __add__(self, offset: object) -> Remote:
        if not isinstance(offset, int):
            return NotImplemented
        return Remote(self.address + offset, self.key)


class Completion(typing.NamedTuple):
    """One finished request. nbytes: how many were moved; immediate: None where there is none."""
    context: int
    operation: Operation
    code: CompletionCode
    nbytes: int
    immediate: int | None
    invalidated: bool
    endpoint_context: int

    @property
    def ok(self) -> bool:
        return self.code == CompletionCode.SUCCESS


class ConnectionEvent(typing.NamedTuple):
    """reason: with REJECTED NO_LISTENER or OK, with CONFLICT what does not agree. Over RDMA devices, private data may
    have zeros behind them."""
    kind: ConnectionEventKind
    reason: Code
    host: bytes
    service: bytes
    private_data: bytes


class AsyncEvent(typing.NamedTuple):
    """Contexts are those of the objects concerned; 0 where none is."""
    kind: AsyncEventKind
    endpoint_context: int
    completion_queue_context: int
    shared_receive_queue_context: int


Pieces = typing.Union[Piece, typing.Sequence[Piece]]
Service = typing.Union[int, bytes]


def _sequence(pieces: Pieces) -> typing.Sequence[Piece]:
    return (pieces,) if isinstance(pieces, Piece) else pieces


def _service(service: Service) -> bytes:
    return service.to_bytes(2, "big") if isinstance(service, int) else service


def backend() -> str:
    """The name of the backend in force: "loopback" or "verbs"."""
    return _core.backend()


def devices() -> list[str]:
    """The names of the devices of the backend in force."""
    return _core.devices()


def resolve(host: str | bytes) -> bytes:
    """The address of a host (4 or 16 bytes), given its name or its address. Raises Error(UNREACHABLE)."""
    if isinstance(host, bytes):
        return host
    addresses = _core.resolve_host(host)
    if not addresses:
        raise _error("resolve", Code.UNREACHABLE, f"the host {host!r} is not known")
    return addresses[0]


class _Held(Resource):
    """Holds an object of the core, `_raw`, until it is closed."""

    def _release(self) -> None:
        del self._raw

    def __getattr__(self, name: str) -> typing.NoReturn:
        if name == "_raw":
            raise ValueError(f"the {type(self).__name__} is closed")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


class Device(_Held):
    """An open network interface. `name`: one of devices(); None: that of VIADUCT_DEVICE, or the first one."""

    def __init__(self, name: str | None = None) -> None:
        self._raw = _core.Device(name)
        super().__init__()
        self.name = self._raw.name
        self.host = self._raw.host  # its address, 4 or 16 bytes
        self.limits: dict[str, int] = self._raw.limits
        self.capabilities: dict[str, bool] = self._raw.capabilities
        self._domain: ProtectionDomain | None = None

    @property
    def domain(self) -> ProtectionDomain:
        """The protection domain that regions and endpoints have where none is named."""
        if self._domain is None or self._domain.closed:
            self._domain = ProtectionDomain(self)
        return self._domain

    def register(self, memory: Buffer | int, access: Access = Access.ALL, *,
                 domain: ProtectionDomain | None = None) -> MemoryRegion:
        """Registers a buffer, or that many bytes of new shareable memory."""
        return MemoryRegion(domain or self.domain, memory, access)

    def completion_queue(self, capacity: int = 256, *, context: int = 0) -> CompletionQueue:
        """Makes a completion queue."""
        return CompletionQueue(self, capacity, context=context)

    def shared_receive_queue(self, depth: int = 64, *, domain: ProtectionDomain | None = None,
                             context: int = 0) -> SharedReceiveQueue:
        """Makes receives that endpoints of the domain share."""
        return SharedReceiveQueue(domain or self.domain, depth, context=context)

    def window(self, *, of_endpoint: bool = False, domain: ProtectionDomain | None = None) -> MemoryWindow:
        """Makes a memory window, which Endpoint.bind() gives something to show."""
        return MemoryWindow(domain or self.domain, of_endpoint=of_endpoint)

    def endpoint(self, **options: typing.Any) -> Endpoint:
        """Makes an endpoint; the options are those of Endpoint."""
        return Endpoint(options.pop("domain", None) or self.domain, **options)

    def listen(self, service: Service, *, exclusive: bool = False) -> Listener:
        """Begins to receive requests for a service."""
        return Listener(self, service, exclusive=exclusive)

    def fileno(self) -> int:
        """Readable while asynchronous events wait."""
        return self._raw.fd

    def next_async_event(self, timeout: float | None = 0) -> AsyncEvent | None:
        """The oldest asynchronous event; None where none came in time."""
        raw = _next(self._raw.next_async_event, self.fileno(), timeout)
        return None if raw is None else AsyncEvent(AsyncEventKind(raw[0]), *raw[1:])


def _next(take: typing.Callable[[], typing.Any], fd: int, timeout: float | None) -> typing.Any:
    """What take() gives, waiting for it; None where nothing came in time. The descriptor may be readable in vain."""
    end = None if timeout is None else time.monotonic() + timeout
    while (result := take()) is None:
        left = None if end is None else max(end - time.monotonic(), 0)
        if left == 0 or not _core.wait_readable(fd, left):
            return take()
    return result


class ProtectionDomain(_Held):
    """Endpoints use memory of their own protection domain only."""

    def __init__(self, device: Device) -> None:
        self._raw = _core.ProtectionDomain(device._raw)
        super().__init__(device)
        self.device = device


class MemoryRegion(_Held):
    """Registered memory: any object with a contiguous buffer, which stays where it is until the region is closed.

    view       its bytes
    key        names it at peers
    remote     what peers need to reach it: send them this

    `region[8:16]` is a piece for requests.
    """

    def __init__(self, domain: ProtectionDomain, memory: Buffer | int, access: Access = Access.ALL) -> None:
        self._pinned = Pinned(alloc(memory) if isinstance(memory, int) else memory)
        self._writable = not self._pinned.readonly
        if self._pinned.readonly:
            access &= Access.REMOTE_READ
        self._raw = _core.MemoryRegion(domain._raw, self._pinned.address, self._pinned.nbytes, *_rights(access),
                                       local_write=self._writable)
        super().__init__(domain)
        self.domain = domain
        self.access = access
        self.view = self._pinned.view

    @property
    def key(self) -> int:
        return self._raw.key

    @property
    def remote(self) -> Remote:
        return Remote(self._pinned.address, self.key)

    def __len__(self) -> int:
        return self._pinned.nbytes

    def __getitem__(self, part: slice) -> Piece:
        """Raises ValueError for steps."""
        start, stop = self._pinned.extent(part)
        return Piece(self._pinned.address + start, stop - start, self.key)

    def modify(self, access: Access, domain: ProtectionDomain | None = None) -> None:
        """Changes what peers may do, and the domain: both or, on failure, nothing. The key may be another then."""
        owner = domain or self.domain
        self._raw.modify(owner._raw, *_rights(access), self._writable)
        self.domain, self.access = owner, access

    def _release(self) -> None:
        super()._release()
        self._pinned.release()


class MemoryWindow(_Held):
    """A part of a region with a key of its own for peers. of_endpoint: only for the peer of the endpoint that has bound
    it, who may also end it (post_send(invalidate=key))."""

    def __init__(self, domain: ProtectionDomain, *, of_endpoint: bool = False) -> None:
        self._raw = _core.MemoryWindow(domain._raw, of_endpoint)
        super().__init__(domain)

    @property
    def key(self) -> int:
        """That of the last bind."""
        return self._raw.key


_OPERATIONS = tuple(Operation)  # by their numbers: this is looked up for each completion
_COMPLETION_CODES = tuple(CompletionCode)


def _completions(raw: list[_core._Completion]) -> list[Completion]:
    return [Completion(context, _OPERATIONS[operation], _COMPLETION_CODES[code], nbytes, immediate, invalidated,
                       endpoint)
            for context, operation, code, nbytes, immediate, invalidated, endpoint in raw]


class CompletionQueue(_Held):
    """Where finished requests are found, in the order of their posting."""

    def __init__(self, device: Device, capacity: int = 256, *, context: int = 0) -> None:
        self._raw = _core.CompletionQueue(device._raw, capacity, context)
        super().__init__(device)

    def poll(self, count: int = 64) -> list[Completion]:
        """Takes what is there, at most `count` and at most 64 completions."""
        return _completions(self._raw.poll(count))

    def wait(self, count: int = 64, timeout: float | None = None) -> list[Completion]:
        """As poll(), waiting for the first. Raises TimeoutError."""
        completions = self._raw.wait(count, timeout)
        if not completions:
            raise _error("CompletionQueue.wait", Code.TIMED_OUT)
        return _completions(completions)

    async def wait_async(self, count: int = 64, timeout: float | None = None) -> list[Completion]:
        """As wait(), for asyncio."""
        def attempt() -> list[Completion] | None:
            while self._raw.take_event():
                pass
            self._raw.arm(False)
            return self.poll(count) or None
        completions = self.poll(count) or await _waiting.until(self.fileno(), attempt, timeout)
        if not completions:
            raise _error("CompletionQueue.wait_async", Code.TIMED_OUT)
        return completions

    def arm(self, *, solicited: bool = False) -> None:
        """Makes the next completion leave an event, which makes the descriptor readable; see take_event()."""
        self._raw.arm(solicited)

    def take_event(self) -> bool:
        """Takes one event back; False where there is none."""
        return self._raw.take_event()

    def resize(self, capacity: int) -> None:
        """Raises Error(BUSY) where more completions wait than would fit."""
        self._raw.resize(capacity)

    def fileno(self) -> int:
        """Readable while events wait."""
        return self._raw.fd


class SharedReceiveQueue(_Held):
    """Receives for the messages of many endpoints."""

    def __init__(self, domain: ProtectionDomain, depth: int = 64, *, context: int = 0) -> None:
        self._raw = _core.SharedReceiveQueue(domain._raw, depth, context)
        super().__init__(domain)

    def post_receive(self, pieces: Pieces, *, context: int = 0) -> None:
        """As Endpoint.post_receive()."""
        self._raw.post_receive(context, _sequence(pieces))

    def arm_limit(self, limit: int) -> None:
        """Asks for one SHARED_RECEIVE_QUEUE_LIMIT once fewer than `limit` receives wait."""
        self._raw.arm_limit(limit)

    def resize(self, depth: int) -> None:
        """Raises Error(BUSY) where more receives wait than would fit."""
        self._raw.resize(depth)

    @property
    def outstanding(self) -> int:
        """Receives that wait."""
        return self._raw.outstanding


class Endpoint(_Held):
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
                                   shared_receives._raw if shared_receives else None, send_depth, receive_depth,
                                   context, reliability, breaks_unready, silent_refusals, max_transfer_bytes,
                                   *_rights(access))
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
        self._raw.connect(resolve(host), _service(service), private_data, timeout, peer_to_peer, bare)

    def connect(self, host: str | bytes, service: Service, **options: typing.Any) -> ConnectionEvent:
        """Connects, with the options of start_connect(), and returns the peer's answer. Raises Error: NO_LISTENER,
        REJECTED, UNREACHABLE; and TimeoutError."""
        self.start_connect(host, service, **options)
        return self._connected(_next(self._raw.next_event, self.fileno(), None))

    async def connect_async(self, host: str | bytes, service: Service, **options: typing.Any) -> ConnectionEvent:
        """As connect(), for asyncio."""
        self.start_connect(host, service, **options)
        return self._connected(await _waiting.until(self.fileno(), self._raw.next_event))

    def _connected(self, raw: typing.Any) -> ConnectionEvent:
        event = _event(raw)
        if event.kind == ConnectionEventKind.ESTABLISHED:
            return event
        code = {ConnectionEventKind.TIMED_OUT: Code.TIMED_OUT, ConnectionEventKind.CONFLICT: event.reason,
                ConnectionEventKind.REJECTED: event.reason or Code.REJECTED}.get(event.kind, Code.UNREACHABLE)
        raise _error("Endpoint.connect", code)

    def next_event(self, timeout: float | None = 0) -> ConnectionEvent | None:
        """The oldest event of the connection; None where none came in time."""
        raw = _next(self._raw.next_event, self.fileno(), timeout)
        return None if raw is None else _event(raw)

    async def next_event_async(self, timeout: float | None = None) -> ConnectionEvent | None:
        """As next_event(), for asyncio."""
        raw = await _waiting.until(self.fileno(), self._raw.next_event, timeout)
        return None if raw is None else _event(raw)

    def disconnect(self) -> None:
        """Ends a connection or an attempt; what was posted completes as FLUSHED. The endpoint may connect again."""
        self._raw.disconnect()

    def drain_and_disconnect(self) -> None:
        """Disconnects once all that was posted to send is done; DISCONNECTED tells of it. Raises
        Error(INVALID_STATE)."""
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
        self._raw.post_receive(context, _sequence(pieces))

    def post_send(self, pieces: Pieces = (), *, immediate: int | None = None, invalidate: int | None = None,
                  context: int = 0, signaled: bool = True, fence: bool = False, solicited: bool = False) -> None:
        """Posts a message. immediate: 32 bits that come with it; invalidate: the key of a window that it ends."""
        opcode = _Opcode.SEND if invalidate is None else _Opcode.SEND_INVALIDATE
        self._raw.post_send(opcode, context, _sequence(pieces), 0, invalidate or 0, immediate is not None,
                            immediate or 0, 0, fence, signaled, solicited)

    def post_write(self, pieces: Pieces, remote: Remote, *, immediate: int | None = None, context: int = 0,
                   signaled: bool = True, fence: bool = False, solicited: bool = False) -> None:
        """Writes to the peer's memory. immediate: completes a receive there, too."""
        self._raw.post_send(_Opcode.RDMA_WRITE, context, _sequence(pieces), remote.address, remote.key,
                            immediate is not None, immediate or 0, 0, fence, signaled, solicited)

    def post_read(self, pieces: Pieces, remote: Remote, *, context: int = 0, signaled: bool = True,
                  fence: bool = False) -> None:
        """Reads the peer's memory into the pieces."""
        self._raw.post_send(_Opcode.RDMA_READ, context, _sequence(pieces), remote.address, remote.key, False, 0, 0,
                            fence, signaled)

    def post_atomic_write(self, piece: Piece, remote: Remote, *, context: int = 0, signaled: bool = True,
                          fence: bool = False) -> None:
        """Writes 8 bytes to an aligned place, which everybody there sees whole."""
        self._raw.post_send(_Opcode.ATOMIC_WRITE, context, (piece,), remote.address, remote.key, False, 0, 0, fence,
                            signaled)

    def post_flush(self, remote: Remote, nbytes: int, *, persistent: bool = False, context: int = 0,
                   signaled: bool = True, fence: bool = False) -> None:
        """Completes once what was written there is seen by all; or, if persistent, survives a loss of power."""
        self._raw.post_send(_Opcode.FLUSH, context, (), remote.address, remote.key, False, 0, nbytes, fence, signaled,
                            False, persistent)

    def post_fetch_add(self, piece: Piece, remote: Remote, add: int, *, context: int = 0, signaled: bool = True,
                       fence: bool = False) -> None:
        """Adds to 8 aligned bytes of the peer; the piece (8 bytes) gets what they were."""
        self._raw.post_send(_Opcode.FETCH_ADD, context, (piece,), remote.address, remote.key, False, 0, add, fence,
                            signaled)

    def post_compare_swap(self, piece: Piece, remote: Remote, compare: int, swap: int, *, context: int = 0,
                          signaled: bool = True, fence: bool = False) -> None:
        """Puts `swap` in the place of `compare` into 8 aligned bytes of the peer; the piece gets what they were."""
        self._raw.post_send(_Opcode.COMPARE_SWAP, context, (piece,), remote.address, remote.key, False, compare, swap,
                            fence, signaled)

    def bind(self, window: MemoryWindow, region: MemoryRegion | None = None, part: slice = slice(None),
             access: Access = Access.ALL, *, context: int = 0, signaled: bool = True, fence: bool = False) -> Remote:
        """Shows a part of a region in a window, or without a region nothing; returns what peers need to reach it."""
        address, length = region[part][:2] if region is not None else (0, 0)
        self._raw.bind(window._raw, context, region._raw if region else None, address, length, *_rights(access),
                       fence, signaled)
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


class ConnectionRequest(_Held):
    """A peer's request to connect, which is answered at most once: with accept() or reject(). Closed without an answer,
    the peer runs into its time-out."""

    def __init__(self, listener: Listener, raw: _core.ConnectionRequest) -> None:
        self._raw = raw
        super().__init__(listener.device)
        self.host = raw.host
        self.service = raw.service
        self.private_data = raw.private_data  # over RDMA devices with zeros behind them, maybe

    def accept(self, endpoint: Endpoint, private_data: bytes = b"") -> None:
        """Connects an idle endpoint, whose reliability is to be that of the peer's. Raises TimeoutError where the peer
        has given up, and Error(INVALID_STATE) where the endpoint is not idle: another may be tried."""
        endpoint._raw.accept(self._raw, private_data)
        self.close()

    def reject(self, private_data: bytes = b"") -> None:
        """Refuses."""
        self._raw.reject(private_data)
        self.close()


class Listener(_Held):
    """Receives requests for a service while it is open. exclusive: nobody else may listen there."""

    def __init__(self, device: Device, service: Service, *, exclusive: bool = False) -> None:
        self._raw = _core.Listener(device._raw, _service(service), exclusive)
        super().__init__(device)
        self.device = device

    def _attempt(self) -> ConnectionRequest | None:
        raw = self._raw.next_request()
        return None if raw is None else ConnectionRequest(self, raw)

    def next_request(self, timeout: float | None = None) -> ConnectionRequest:
        """The next request. Raises TimeoutError."""
        return self._found(_next(self._attempt, self.fileno(), timeout))

    async def next_request_async(self, timeout: float | None = None) -> ConnectionRequest:
        """As next_request(), for asyncio."""
        return self._found(await _waiting.until(self.fileno(), self._attempt, timeout))

    @staticmethod
    def _found(request: ConnectionRequest | None) -> ConnectionRequest:
        if request is None:
            raise _error("Listener.next_request", Code.TIMED_OUT)
        return request

    def accept(self, endpoint: Endpoint, private_data: bytes = b"", timeout: float | None = None) -> ConnectionRequest:
        """Connects an endpoint with the next peer that asks, and returns the request."""
        request = self.next_request(timeout)
        request.accept(endpoint, private_data)
        return request

    async def accept_async(self, endpoint: Endpoint, private_data: bytes = b"",
                           timeout: float | None = None) -> ConnectionRequest:
        """As accept(), for asyncio."""
        request = await self.next_request_async(timeout)
        request.accept(endpoint, private_data)
        return request

    def fileno(self) -> int:
        """Readable when a request may wait."""
        return self._raw.fd
