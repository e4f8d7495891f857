# SPDX-License-Identifier: BSD-3-Clause
"""The VI of viaduct.vipl."""
from __future__ import annotations

import typing
import weakref

from viaduct import _vipl
from viaduct._vipl_values import (DescriptorError, Discriminator, Error, NetAddress, ReturnCode, State, ViAttributes,
                                  Handled, ViInfo, error_of, to_raw_address)
from viaduct._vipl_waiting import Arrivals, in_thread, result_in_time, result_in_time_async
from viaduct._vipl_work import Descriptor, Operation, Remote, Segments

if typing.TYPE_CHECKING:
    from viaduct.vipl import CompletionQueue, Nic


class Vi(Handled):
    """A virtual interface: a send queue, a receive queue and, at times, a connection. Nic.create_vi() makes it.

    close() ends the connection and takes what is posted back. Descriptors that complete come back as the objects that
    were posted.
    """

    def __init__(self, nic: Nic, attributes: ViAttributes, send_cq: CompletionQueue | None,
                 recv_cq: CompletionQueue | None) -> None:
        self.nic = nic
        self._posted: dict[int, Descriptor] = {}
        self._sends: Arrivals[int] = Arrivals()
        self._recvs: Arrivals[int] = Arrivals()
        self._ptag = attributes.ptag or nic.ptag
        handle = _vipl.VipCreateVi(nic.handle, nic._to_raw(attributes), send_cq.handle if send_cq else 0,
                                   recv_cq.handle if recv_cq else 0)
        super().__init__(handle, nic, self._ptag, *{queue for queue in (send_cq, recv_cq) if queue is not None})
        nic._vis[handle] = self

    def destroy(self) -> None:
        """VipDestroyVi. Raises Error(INVALID_STATE) where it is not idle, or descriptors are on its queues; close()
        needs neither."""
        _vipl.VipDestroyVi(self.handle)
        self._released()
        self._gone()

    def _release(self) -> None:
        _vipl.VipDisconnect(self.handle)
        for done in (_vipl.VipSendDone, _vipl.VipRecvDone):
            while done(self.handle) != (ReturnCode.DESCRIPTOR_ERROR, 0):
                pass
        _vipl.VipDestroyVi(self.handle)
        self._gone()

    def _gone(self) -> None:
        for descriptor in self._posted.values():
            descriptor.posted = False
        self._posted.clear()
        for arrivals in (self._sends, self._recvs):
            arrivals.fail(error_of("VipDestroyVi", ReturnCode.INVALID_PARAMETER))

    # ---- Connections ----

    def connect_request(self, remote: NetAddress, timeout: float | None = None, *,
                        local: NetAddress | Discriminator = b"") -> ViAttributes:
        """VipConnectRequest. Asks for a connection, waits for the answer and returns the attributes of the peer's VI.
        local: what the peer is shown as remote_address, an address of this NIC. Raises TimeoutError; Error: NO_MATCH
        (nobody waits there), REJECT, INVALID_STATE (not idle, or disconnect() was called), NOT_REACHABLE,
        INVALID_PARAMETER, INVALID_RELIABILITY_LEVEL, INVALID_MTU, INVALID_QOS."""
        return self.nic._from_raw(_vipl.VipConnectRequest(self.handle, self.nic._address(local),
                                                          to_raw_address(remote), timeout))

    async def connect_request_async(self, remote: NetAddress, timeout: float | None = None, *,
                                    local: NetAddress | Discriminator = b"") -> ViAttributes:
        """As connect_request(), for asyncio; a thread waits."""
        addresses = self.nic._address(local), to_raw_address(remote)
        return self.nic._from_raw(await in_thread(
            lambda stop: _vipl.VipConnectRequest(self.handle, *addresses, timeout, stop),
            lambda late: _vipl.VipDisconnect(self.handle)))

    def connect_peer_request(self, remote: NetAddress, timeout: float | None = None, *,
                             local: NetAddress | Discriminator = b"") -> None:
        """VipConnectPeerRequest. Begins to look for a peer that asks for the same pair of hosts and the same
        discriminator (that of remote); connect_peer_wait() or connect_peer_done() tell the result. Raises Error:
        INVALID_STATE (not idle), INVALID_PARAMETER."""
        _vipl.VipConnectPeerRequest(self.handle, self.nic._address(local), to_raw_address(remote), timeout)

    def connect_peer_done(self) -> ViAttributes | None:
        """VipConnectPeerDone. The attributes of the peer's VI; None where the request is under way. Raises
        TimeoutError; Error: INVALID_STATE (no request), and those of connect_request()."""
        raw = _vipl.VipConnectPeerDone(self.handle)
        return None if raw is None else self.nic._from_raw(raw)

    def connect_peer_wait(self) -> ViAttributes:
        """VipConnectPeerWait. As connect_peer_done(), waiting for the result; the time-out is that of the request."""
        return self.nic._from_raw(_vipl.VipConnectPeerWait(self.handle))

    async def connect_peer_wait_async(self) -> ViAttributes:
        """As connect_peer_wait(), for asyncio; a thread waits. Where the task is cancelled the request goes on."""
        return self.nic._from_raw(await in_thread(lambda stop: _vipl.VipConnectPeerWait(self.handle, stop),
                                                  lambda late: None))

    def disconnect(self) -> None:
        """VipDisconnect. Ends the connection, or a request for one, which gets INVALID_STATE. What is posted completes
        as flushed. Good in every state; the VI is idle then."""
        _vipl.VipDisconnect(self.handle)

    # ---- Descriptors ----

    def post_send(self, what: Descriptor | Segments = (), operation: Operation = Operation.SENDRECV,
                  remote: Remote | None = None, immediate: int | None = None, fence: bool = False) -> Descriptor:
        """VipPostSend. Posts a descriptor as it is, or makes one of segments and the other arguments, which are those
        of Descriptor.set(). Returns it. Without a connection it completes as flushed. One more than
        max_descriptors_per_queue is not posted and breaks the VI: the handler of error_callback() gets VI_OVERRUN.
        Raises Error(ERROR_RESOURCE): no memory; ValueError where it is posted already."""
        return self._post(_vipl.VipPostSend, what if isinstance(what, Descriptor) else
                          self._ptag.descriptor(what, operation, remote, immediate, fence))

    def post_recv(self, what: Descriptor | Segments = ()) -> Descriptor:
        """VipPostRecv. Posts a descriptor, or makes one of segments, for one message; good before connecting. Returns
        it. One too many breaks the VI as with post_send(). Raises Error(ERROR_RESOURCE): no memory; ValueError where it
        is posted already, or its memory may not be written."""
        descriptor = what if isinstance(what, Descriptor) else self._ptag.descriptor(what)
        if not descriptor.writable:
            raise ValueError("the memory may not be written")
        return self._post(_vipl.VipPostRecv, descriptor)

    def _post(self, post: typing.Callable[[int, int, int], None], descriptor: Descriptor) -> Descriptor:
        if descriptor.posted:
            raise ValueError("the descriptor is posted")
        descriptor.posted = True
        self._posted[descriptor.address] = descriptor
        try:
            post(self.handle, descriptor.address, descriptor.memory_handle)
        except Error:
            self._take(descriptor.address)
            raise
        return descriptor

    def _take(self, address: int) -> Descriptor | None:
        """The descriptor that comes back from address, which is 0 where the queue was empty."""
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
        """VipSendDone. Takes the oldest descriptor of the send queue if it is complete; None: not yet. Raises
        DescriptorError where it completed with an error, or the queue is empty."""
        return self._done("VipSendDone", _vipl.VipSendDone, self._sends)

    def recv_done(self) -> Descriptor | None:
        """VipRecvDone. The same for the receive queue."""
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

    def send_wait(self, timeout: float | None = None) -> Descriptor:
        """VipSendWait. As send_done(), waiting until it is complete. Raises TimeoutError; Error(ERROR_RESOURCE) where
        the queue has a completion queue."""
        return self._wait("VipSendWait", _vipl.VipSendWait, self._sends, self._ask_send, timeout)

    def recv_wait(self, timeout: float | None = None) -> Descriptor:
        """VipRecvWait. The same for the receive queue."""
        return self._wait("VipRecvWait", _vipl.VipRecvWait, self._recvs, self._ask_recv, timeout)

    def _wait(self, call: str, wait: typing.Callable[[int, float | None], tuple[int, int]], arrivals: Arrivals[int],
              ask: typing.Callable[[], None], timeout: float | None) -> Descriptor:
        if arrivals.busy:
            address = result_in_time(call, arrivals, ask, timeout)
        else:
            _, address = wait(self.handle, timeout)
        return self._completed(call, address)

    async def send_wait_async(self, timeout: float | None = None) -> Descriptor:
        """As send_wait(), for asyncio."""
        call = "VipSendWait"
        return self._completed(call, await result_in_time_async(call, self._sends, self._ask_send, timeout))

    async def recv_wait_async(self, timeout: float | None = None) -> Descriptor:
        """As recv_wait(), for asyncio."""
        call = "VipRecvWait"
        return self._completed(call, await result_in_time_async(call, self._recvs, self._ask_recv, timeout))

    def send_notify(self, handler: typing.Callable[[Vi, Descriptor | None], object]) -> None:
        """VipSendNotify. Calls the handler once, with the next descriptor of the send queue that completes, whether
        with an error or not, from a thread of the queue; None: others have taken all that was posted. What it raises
        goes to sys.unraisablehook. Raises DescriptorError where the queue is empty; Error(ERROR_RESOURCE) where the
        queue has a completion queue."""
        self._notify("VipSendNotify", _vipl.VipSendNotify, handler)

    def recv_notify(self, handler: typing.Callable[[Vi, Descriptor | None], object]) -> None:
        """VipRecvNotify. The same for the receive queue."""
        self._notify("VipRecvNotify", _vipl.VipRecvNotify, handler)

    def _notify(self, call: str, notify: typing.Callable[[int, object, typing.Callable[..., object]], None],
                handler: typing.Callable[[Vi, Descriptor | None], object]) -> None:
        self._request(call, notify, lambda vi, address: handler(vi, vi._take(address)))

    def _ask_send(self) -> None:
        self._request("VipSendNotify", _vipl.VipSendNotify, lambda vi, address: vi._sends.put(address))

    def _ask_recv(self) -> None:
        self._request("VipRecvNotify", _vipl.VipRecvNotify, lambda vi, address: vi._recvs.put(address))

    def _request(self, call: str, notify: typing.Callable[[int, object, typing.Callable[..., object]], None],
                 handler: typing.Callable[[Vi, int], object]) -> None:
        try:
            notify(self.handle, (weakref.ref(self), handler), _on_descriptor)
        except Error as error:
            if error.code == ReturnCode.DESCRIPTOR_ERROR:
                raise DescriptorError(call, None) from None
            raise

    # ---- State ----

    @property
    def state(self) -> State:
        return self.query().state

    def query(self) -> ViInfo:
        """VipQueryVi."""
        state, attributes, send_empty, recv_empty = _vipl.VipQueryVi(self.handle)
        return ViInfo(State(state), self.nic._from_raw(attributes), send_empty, recv_empty)

    def set_attributes(self, attributes: ViAttributes) -> None:
        """VipSetViAttributes. Raises Error: INVALID_STATE (not idle), and as Nic.create_vi()."""
        ptag = attributes.ptag or self.nic.ptag
        _vipl.VipSetViAttributes(self.handle, self.nic._to_raw(attributes))
        self._depend_on(*(ptag if parent is self._ptag else parent for parent in self._parents))
        self._ptag = ptag

    @property
    def user_data(self) -> int:
        """VipGetUserData, VipSetUserData. A number that the VI keeps for the program; 0 at first."""
        return _vipl.VipGetUserData(self.handle)

    @user_data.setter
    def user_data(self, data: int) -> None:
        _vipl.VipSetUserData(self.handle, data)


def _on_descriptor(context: typing.Any, nic: int, vi: int, address: int) -> None:
    reference, handler = context
    owner = reference()
    if owner is not None:
        handler(owner, address)
