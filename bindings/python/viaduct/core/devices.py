# SPDX-License-Identifier: BSD-3-Clause
"""Devices, and what is made from them."""
from __future__ import annotations

import typing

from viaduct import _core
from viaduct.core.addresses import Service
from viaduct.core.connections import Listener
from viaduct.core.constants import Access, AsyncEventKind
from viaduct.core.endpoints import Endpoint
from viaduct.core.memory import MemoryRegion, MemoryWindow, ProtectionDomain
from viaduct.core.objects import Held, next_of
from viaduct.core.queues import CompletionQueue, SharedReceiveQueue
from viaduct.core.structures import AsyncEvent
from viaduct.memory import Buffer


def backend() -> str:
    """The name of the backend in force: "loopback" or "verbs"."""
    return _core.backend()


def devices() -> list[str]:
    """The names of the devices of the backend in force."""
    return _core.devices()


class Device(Held):
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
        raw = next_of(lambda: self._raw.next_async_event(), self.fileno(), timeout)
        return None if raw is None else AsyncEvent(AsyncEventKind(raw[0]), *raw[1:])
