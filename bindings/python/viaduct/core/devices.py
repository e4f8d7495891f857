# SPDX-License-Identifier: BSD-3-Clause
"""Devices, and the objects created from them."""
from __future__ import annotations

from viaduct import _core, _lifetime
from viaduct.core.addresses import Service
from viaduct.core.connections import Listener
from viaduct.core.constants import Reliability
from viaduct.core.endpoints import Endpoint
from viaduct.core.memory import Access, MemoryRegion, MemoryWindow, ProtectionDomain
from viaduct.core.objects import Held, next_of
from viaduct.core.queues import CompletionQueue, SharedReceiveQueue
from viaduct.core.structures import AsyncEvent, DeviceCounters
from viaduct.memory import Buffer


def backend() -> str:
    """Returns the name of the backend of devices(): "loopback", "verbs" or "tcp"."""
    return _core.backend()


def devices() -> list[str]:
    """Returns the names of the devices of the default backend. Device() also opens those of others by name."""
    return _core.devices()


class Device(Held):
    """An open network interface.

    name            the name of the device
    host            its address, 4 or 16 bytes
    limits          its limits, by name: {"max_queue_depth": 65535, ...}
    capabilities    its capabilities, by name: {"atomics": True, ...}
    """

    def __init__(self, name: str | None = None) -> None:
        """Opens a device by name; None: that of VIADUCT_DEVICE, or the first one of devices(). Raises
        Error(INVALID_PARAMETER) if there is none of this name."""
        self._raw = _core.Device(name)
        self.name = self._raw.name
        self.host = self._raw.host  # its address, 4 or 16 bytes
        self.limits: dict[str, int] = self._raw.limits
        self.capabilities: dict[str, bool] = self._raw.capabilities
        self._domain: ProtectionDomain | None = None
        super().__init__()

    def _description(self) -> str:
        return self.name

    @property
    def domain(self) -> ProtectionDomain:
        """The protection domain of regions and endpoints that name no other."""
        return _lifetime.only_one(self, "_domain", lambda: ProtectionDomain(self))

    def register(self, memory: Buffer | int, access: Access = Access.ALL, *,
                 domain: ProtectionDomain | None = None) -> MemoryRegion:
        """Registers a buffer, or that many bytes of new memory, and returns the region. See MemoryRegion for the
        errors."""
        return MemoryRegion(domain or self.domain, memory, access)

    def completion_queue(self, capacity: int = 256, *, context: int = 0) -> CompletionQueue:
        """Returns a new completion queue. See CompletionQueue for the errors."""
        return CompletionQueue(self, capacity, context=context)

    def shared_receive_queue(self, depth: int = 64, *, domain: ProtectionDomain | None = None,
                             context: int = 0) -> SharedReceiveQueue:
        """Returns a new shared receive queue. See SharedReceiveQueue for the errors."""
        return SharedReceiveQueue(domain or self.domain, depth, context=context)

    def window(self, *, of_endpoint: bool = False, domain: ProtectionDomain | None = None) -> MemoryWindow:
        """Returns a new memory window, which gives access to nothing until Endpoint.bind(). See MemoryWindow for the
        errors."""
        return MemoryWindow(domain or self.domain, of_endpoint=of_endpoint)

    def endpoint(self, *, domain: ProtectionDomain | None = None, send_queue: CompletionQueue | None = None,
                 receive_queue: CompletionQueue | None = None, shared_receives: SharedReceiveQueue | None = None,
                 send_depth: int | None = None, receive_depth: int | None = None, access: Access = Access.ALL,
                 reliability: Reliability = Reliability.RELIABLE_DELIVERY, any_reliable: bool = False,
                 breaks_unready: bool = False, silent_refusals: bool = False, max_transfer_bytes: int = 0,
                 context: int = 0) -> Endpoint:
        """Returns a new endpoint. The other options and the errors are those of Endpoint."""
        return Endpoint(domain or self.domain, send_queue=send_queue, receive_queue=receive_queue,
                        shared_receives=shared_receives, send_depth=send_depth, receive_depth=receive_depth,
                        access=access, reliability=reliability, any_reliable=any_reliable,
                        breaks_unready=breaks_unready, silent_refusals=silent_refusals,
                        max_transfer_bytes=max_transfer_bytes, context=context)

    def listen(self, service: Service, *, exclusive: bool = False) -> Listener:
        """Starts to receive requests for a service and returns the listener. See Listener for the errors."""
        return Listener(self, service, exclusive=exclusive)

    def counters(self) -> DeviceCounters:
        """Returns what the device has done since it was opened."""
        return self._raw.counters()

    def fileno(self) -> int:
        """Returns the descriptor, which is readable while asynchronous events are queued."""
        return self._raw.fd

    def next_async_event(self, timeout: float | None = 0) -> AsyncEvent | None:
        """Returns the oldest asynchronous event, or None if there is none within `timeout` seconds."""
        return next_of(lambda: self._raw.next_async_event(), self.fileno(), timeout)
