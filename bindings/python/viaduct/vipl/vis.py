# SPDX-License-Identifier: BSD-3-Clause
"""VIs: queues of descriptors, and connections."""
from __future__ import annotations

import dataclasses
import typing
import weakref

from viaduct import _core, _vipl
from viaduct._arguments import awaits, quick
from viaduct.vipl.addresses import Discriminator, NetAddress
from viaduct.vipl.constants import Operation, ReliabilityLevel, ReturnCode, State
from viaduct.vipl.descriptors import Descriptor, Remote, Segments
from viaduct.vipl.errors import DescriptorError, Error, error_of
from viaduct.vipl.memory import Ptag
from viaduct.vipl.objects import Handled
from viaduct.vipl.waiting import Arrivals, in_thread, result_in_time, result_in_time_async

if typing.TYPE_CHECKING:
    from viaduct.vipl.completion_queues import CompletionQueue
    from viaduct.vipl.nics import Nic


@dataclasses.dataclass(frozen=True)
class ViAttributes:
    """The attributes of a VI (VIP_VI_ATTRIBUTES). Both ends of a connection need the same reliability level, transfer
    size and quality of service.

    reliability_level    see ReliabilityLevel
    max_transfer_size    bytes of one descriptor; None: the limit of the NIC
    qos                  quality of service; only 0 exists
    ptag                 the protection tag; None: that of the NIC; unknown in attributes of a peer
    enable_rdma_write    whether the peer may write to memory of this VI that allows it
    enable_rdma_read     whether the peer may read memory of this VI that allows it
    """
    reliability_level: ReliabilityLevel = ReliabilityLevel.RELIABLE_DELIVERY
    max_transfer_size: int | None = None
    qos: int = 0
    ptag: Ptag | None = None
    enable_rdma_write: bool = False
    enable_rdma_read: bool = False


class ViInfo(typing.NamedTuple):
    """What Vi.query() returns. A queue is empty if no descriptor is posted on it, and no completed one remains to be
    taken."""
    state: State
    attributes: ViAttributes
    send_queue_empty: bool
    recv_queue_empty: bool


class Vi(Handled):
    """A virtual interface: a send queue, a receive queue and, when connected, a connection. Created by Nic.create_vi().

    Posting does not wait: the descriptor completes later, and send_done(), send_wait() and similar methods return
    the object that was posted. close() ends a connection and takes back posted descriptors.
    """

    def __init__(self, nic: Nic, attributes: ViAttributes, send_cq: CompletionQueue | None,
                 recv_cq: CompletionQueue | None) -> None:
        self.nic = nic
        self._posted: dict[int, Descriptor] = {}
        self._sends: Arrivals[int] = Arrivals()
        self._recvs: Arrivals[int] = Arrivals()
        self._ptag = attributes.ptag or nic.ptag
        own = _core.Owned(_vipl, "VipDestroyVi", _vipl.VipCreateVi, nic.handle, nic._to_raw(attributes, self._ptag),
                          send_cq.handle if send_cq else 0, recv_cq.handle if recv_cq else 0)
        nic._vis[own.handle] = self
        super().__init__(own, nic, self._ptag, *{queue for queue in (send_cq, recv_cq) if queue is not None})

    def destroy(self) -> None:
        """VipDestroyVi. Raises Error(INVALID_STATE) if the VI is not idle or descriptors are on its queues; close()
        requires neither. Waits until a running notify handler of the VI has returned."""
        self._end_by(self._own.end)

    def _release(self) -> None:
        while not self._own.ended and not self._destroyed():
            pass

    def _destroyed(self) -> bool:
        """Destroys the VI in any state. False: a thread has posted a descriptor meanwhile, or one in memory that is
        gone has broken the VI."""
        _vipl.VipDisconnect(self.handle)
        for done in (_vipl.VipSendDone, _vipl.VipRecvDone):
            while done(self.handle) != (ReturnCode.DESCRIPTOR_ERROR, 0):
                pass
        try:
            self._own.end()
        except Error as error:
            if error.code != ReturnCode.INVALID_STATE:
                raise
            return False
        return True

    def _released(self) -> None:
        for descriptor in self._posted.values():
            descriptor.posted = False
        self._posted.clear()
        for arrivals in (self._sends, self._recvs):
            arrivals.fail(error_of("VipDestroyVi", ReturnCode.INVALID_PARAMETER))
        super()._released()

    def _description(self) -> str:
        return self.state.name

    # ---- Connections ----

    def connect_request(self, remote: NetAddress | int, timeout: float | None = None, *,
                        local: NetAddress | Discriminator = b"") -> ViAttributes:
        """VipConnectRequest. Connects to the NIC and discriminator `remote`, and returns the attributes of the peer's
        VI.

        remote: Nic.net_address() makes addresses of other NICs; a number is a discriminator of this NIC, for a peer
        on the same host. local: an address of this NIC, which the peer sees as remote_address. Waits for
        the answer, at most `timeout` seconds. Raises TimeoutError; Error: NO_MATCH (no server waits there), REJECT,
        INVALID_STATE (the VI is not idle, or disconnect() was called meanwhile), NOT_REACHABLE, INVALID_PARAMETER (also
        for timeout 0), INVALID_RELIABILITY_LEVEL, INVALID_MTU, INVALID_QOS (the attribute differs from the peer's).
        """
        return self.nic._from_raw(_vipl.VipConnectRequest(self.handle, self.nic._address(local),
                                                          self._remote(remote), timeout))

    async def connect_request_async(self, remote: NetAddress | int, timeout: float | None = None, *,
                                    local: NetAddress | Discriminator = b"") -> ViAttributes:
        """Connects to the NIC and discriminator `remote`, and returns the attributes of the peer's VI. A thread of its
        own waits for the answer, without blocking the asyncio loop. The arguments and errors are those of
        connect_request()."""
        addresses = self.nic._address(local), self._remote(remote)
        return self.nic._from_raw(await in_thread(
            lambda stop: _vipl.VipConnectRequest(self.handle, *addresses, timeout, stop),
            lambda late: _vipl.VipDisconnect(self.handle)))

    def connect_peer_request(self, remote: NetAddress | int, timeout: float | None = None, *,
                             local: NetAddress | Discriminator = b"") -> None:
        """VipConnectPeerRequest. Starts a peer-to-peer request: connects to a peer that requests the same two hosts and
        the same discriminator, that of `remote`. A number is a discriminator of this NIC.

        Returns immediately; connect_peer_wait() and connect_peer_done() return the result. Raises Error:
        INVALID_STATE (the VI is not idle), INVALID_PARAMETER.
        """
        _vipl.VipConnectPeerRequest(self.handle, self.nic._address(local), self._remote(remote), timeout)

    def _remote(self, remote: NetAddress | int) -> _vipl.VIP_NET_ADDRESS:
        """Text and bytes are refused, because they could also be meant as hosts."""
        if not isinstance(remote, (NetAddress, int)):
            raise TypeError(f"remote must be NetAddress or int, not {remote!r}")
        return self.nic._address(remote)

    def connect_peer_done(self) -> ViAttributes | None:
        """VipConnectPeerDone. Returns the attributes of the peer's VI, or None if the request is still in progress.
        Does not wait.

        Raises TimeoutError if the timeout of the request has expired; Error: INVALID_STATE (there is no request),
        and those of connect_request().
        """
        raw = _vipl.VipConnectPeerDone(self.handle)
        return None if raw is None else self.nic._from_raw(raw)

    def connect_peer_wait(self) -> ViAttributes:
        """VipConnectPeerWait. Waits for the result of a peer-to-peer request, at most until the timeout of the request,
        and returns the attributes of the peer's VI. Raises what connect_peer_done() raises."""
        return self.nic._from_raw(_vipl.VipConnectPeerWait(self.handle))

    async def connect_peer_wait_async(self) -> ViAttributes:
        """Waits for the result of a peer-to-peer request in a thread of its own, without blocking the asyncio loop, at
        most until the timeout of the request, and returns the attributes of the peer's VI. If the task is cancelled,
        the request continues. Raises what connect_peer_done() raises."""
        return self.nic._from_raw(await in_thread(lambda stop: _vipl.VipConnectPeerWait(self.handle, stop),
                                                  lambda late: None))

    def disconnect(self) -> None:
        """VipDisconnect. Ends the connection; works in every state. The VI is idle afterwards.

        Posted descriptors complete with DESC_FLUSHED_ERROR. A connection request in progress gets INVALID_STATE.
        """
        _vipl.VipDisconnect(self.handle)

    # ---- Descriptors ----

    @quick
    def post_send(self, what: Descriptor | Segments = (), operation: Operation = Operation.SENDRECV,
                  remote: Remote | None = None, immediate: int | None = None, fence: bool = False) -> Descriptor:
        """VipPostSend. Posts a descriptor, and returns it. Segments and the other arguments, which are those of
        Descriptor.set(), create a new descriptor.

        Without a connection it completes with DESC_FLUSHED_ERROR. If the queue holds max_descriptors_per_queue
        already, it is not posted, the VI enters the Error state, and the handler of Nic.error_callback() gets
        VI_OVERRUN. Raises ValueError if it is posted already, TypeError for other arguments with a descriptor,
        Error(ERROR_RESOURCE) if there is no memory.
        """
        if not isinstance(what, Descriptor):
            what = self._ptag.descriptor(what, operation, remote, immediate, fence)
        elif operation != Operation.SENDRECV or remote is not None or immediate is not None or fence:
            raise TypeError("a descriptor has an operation and options already; Descriptor.set() changes them")
        return self._post("VipPostSend", _vipl.VipPostSend, what)

    @quick
    def post_recv(self, what: Descriptor | Segments = ()) -> Descriptor:
        """VipPostRecv. Posts a descriptor for one message, also before connecting, and returns it. Segments create a
        new one.

        A full queue is treated as in post_send(). Raises ValueError if it is posted already, or its memory is
        read-only; Error(ERROR_RESOURCE) if there is no memory.
        """
        descriptor = what if isinstance(what, Descriptor) else self._ptag.descriptor(what)
        if not descriptor.writable:
            raise ValueError("the memory is read-only")
        return self._post("VipPostRecv", _vipl.VipPostRecv, descriptor)

    def _post(self, call: str, post: typing.Callable[[int, int, int, int], None], descriptor: Descriptor) -> Descriptor:
        if self._place.closed:  # else close() might never end
            raise error_of(call, ReturnCode.INVALID_PARAMETER)
        if descriptor.posted:
            raise ValueError("the descriptor is posted")
        descriptor.posted = True
        self._posted[descriptor.address] = descriptor
        try:
            post(self.handle, descriptor.address, descriptor.memory_handle, descriptor.length)
        except Error:
            self._take(descriptor.address)
            raise
        return descriptor

    def _take(self, address: int) -> Descriptor | None:
        """Returns the descriptor at an address; None for 0, which means an empty queue."""
        descriptor = self._posted.pop(address, None)
        if descriptor is not None:
            descriptor.posted = False
        return descriptor

    def _completed(self, call: str, address: int) -> Descriptor:
        descriptor = self._take(address)
        if descriptor is None or not descriptor.done:
            raise DescriptorError(call, descriptor)
        return descriptor

    def send_done(self) -> Descriptor | None:
        """VipSendDone. Takes and returns the oldest descriptor of the send queue if it has completed, else None. Does
        not wait.

        Raises DescriptorError if it completed with an error, or the queue is empty.
        """
        return self._done("VipSendDone", _vipl.VipSendDone, self._sends)

    def recv_done(self) -> Descriptor | None:
        """VipRecvDone. Takes and returns the oldest descriptor of the receive queue if it has completed, else None.
        Does not wait.

        Raises DescriptorError if it completed with an error, or the queue is empty.
        """
        return self._done("VipRecvDone", _vipl.VipRecvDone, self._recvs)

    def _done(self, call: str, done: typing.Callable[[int], tuple[int, int] | None],
              arrivals: Arrivals[int]) -> Descriptor | None:
        address = arrivals.take()
        if address is None:
            result = done(self.handle)
            if result is None:
                return None
            address = result[1]
        return self._completed(call, address)

    @awaits("completed descriptor in the send queue")
    def send_wait(self, timeout: float | None = None) -> Descriptor:
        """VipSendWait. Waits until the oldest descriptor of the send queue has completed, then takes and returns it.

        Raises TimeoutError after `timeout` seconds, DescriptorError if it completed with an error, or the queue is
        empty; Error(ERROR_RESOURCE) if the queue reports to a completion queue.
        """
        return self._wait("VipSendWait", _vipl.VipSendWait, self._sends, self._ask_send, timeout)

    @awaits("completed descriptor in the receive queue")
    def recv_wait(self, timeout: float | None = None) -> Descriptor:
        """VipRecvWait. Waits until the oldest descriptor of the receive queue has completed, then takes and returns it.

        Raises TimeoutError after `timeout` seconds, DescriptorError if it completed with an error, or the queue is
        empty; Error(ERROR_RESOURCE) if the queue reports to a completion queue.
        """
        return self._wait("VipRecvWait", _vipl.VipRecvWait, self._recvs, self._ask_recv, timeout)

    def _wait(self, call: str, wait: typing.Callable[[int, float | None], tuple[int, int]], arrivals: Arrivals[int],
              ask: typing.Callable[[], None], timeout: float | None) -> Descriptor:
        if arrivals.busy:
            address = result_in_time(call, arrivals, ask, timeout)
        else:
            _, address = wait(self.handle, timeout)
        return self._completed(call, address)

    @awaits("completed descriptor in the send queue")
    async def send_wait_async(self, timeout: float | None = None) -> Descriptor:
        """Waits until the oldest descriptor of the send queue has completed, without blocking the asyncio loop, then
        takes and returns it. The errors are those of send_wait()."""
        call = "VipSendWait"
        return self._completed(call, await result_in_time_async(call, self._sends, self._ask_send, timeout))

    @awaits("completed descriptor in the receive queue")
    async def recv_wait_async(self, timeout: float | None = None) -> Descriptor:
        """Waits until the oldest descriptor of the receive queue has completed, without blocking the asyncio loop, then
        takes and returns it. The errors are those of recv_wait()."""
        call = "VipRecvWait"
        return self._completed(call, await result_in_time_async(call, self._recvs, self._ask_recv, timeout))

    def send_notify(self, handler: typing.Callable[[Vi, Descriptor | None], object]) -> None:
        """VipSendNotify. Calls handler(vi, descriptor) once, when the next descriptor of the send queue has completed,
        with or without an error.

        A thread of the queue makes the call. The descriptor is None if other threads have taken all posted
        descriptors. Exceptions of the handler are passed to sys.unraisablehook. Raises DescriptorError if the queue
        is empty, Error(ERROR_RESOURCE) if it reports to a completion queue.
        """
        self._notify("VipSendNotify", handler)

    def recv_notify(self, handler: typing.Callable[[Vi, Descriptor | None], object]) -> None:
        """VipRecvNotify. Calls handler(vi, descriptor) once, when the next descriptor of the receive queue has
        completed, with or without an error.

        A thread of the queue makes the call. The descriptor is None if other threads have taken all posted
        descriptors. Exceptions of the handler are passed to sys.unraisablehook. Raises DescriptorError if the queue
        is empty, Error(ERROR_RESOURCE) if it reports to a completion queue.
        """
        self._notify("VipRecvNotify", handler)

    def _notify(self, call: str, handler: typing.Callable[[Vi, Descriptor | None], object]) -> None:
        self._request(call, lambda vi, address: handler(vi, vi._take(address)))

    def _ask_send(self) -> None:
        self._request("VipSendNotify", lambda vi, address: vi._sends.put(address))

    def _ask_recv(self) -> None:
        self._request("VipRecvNotify", lambda vi, address: vi._recvs.put(address))

    def _request(self, call: str, handler: typing.Callable[[Vi, int], object]) -> None:
        try:
            getattr(_vipl, call)(self.handle, (weakref.ref(self), handler), _on_descriptor)
        except Error as error:
            if error.code == ReturnCode.DESCRIPTOR_ERROR:
                raise DescriptorError(call, None) from None
            raise

    # ---- State ----

    @property
    def state(self) -> State:
        """The present state."""
        return self.query().state

    def query(self) -> ViInfo:
        """VipQueryVi. Returns state, attributes, and whether the queues are empty."""
        state, attributes, send_empty, recv_empty = _vipl.VipQueryVi(self.handle)
        return ViInfo(State(state), self.nic._from_raw(attributes), send_empty, recv_empty)

    def set_attributes(self, attributes: ViAttributes) -> None:
        """VipSetViAttributes. Changes all attributes or, if it fails, none. Raises Error: INVALID_STATE (the VI is not
        idle), and those of Nic.create_vi()."""
        ptag = attributes.ptag or self.nic.ptag
        _vipl.VipSetViAttributes(self.handle, self.nic._to_raw(attributes, ptag))
        self._depend_on(*(ptag if parent is self._ptag else parent for parent in self._parents))
        self._ptag = ptag

    @property
    def user_data(self) -> int:
        """A number that the VI stores for the program (VipGetUserData, VipSetUserData); 0 at first."""
        return _vipl.VipGetUserData(self.handle)

    @user_data.setter
    def user_data(self, user_data: int) -> None:
        if self.closed:
            raise error_of("VipSetUserData", ReturnCode.INVALID_PARAMETER)
        _vipl.VipSetUserData(self.handle, user_data)


def _on_descriptor(context: typing.Any, nic: int, vi: int, address: int) -> None:
    reference, handler = context
    owner = reference()
    if owner is not None:
        handler(owner, address)
