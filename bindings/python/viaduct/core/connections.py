# SPDX-License-Identifier: BSD-3-Clause
"""Listeners and their connection requests."""
from __future__ import annotations

import typing

from viaduct import _core, _waiting
from viaduct._arguments import awaits
from viaduct._services import service_bytes
from viaduct.core.addresses import Service
from viaduct.core.constants import Code
from viaduct.core.endpoints import Endpoint
from viaduct.core.errors import error_of
from viaduct.core.objects import Held, next_of

if typing.TYPE_CHECKING:
    from viaduct.core.devices import Device


class ConnectionRequest(Held):
    """A peer's connection request. accept() or reject() must be called once to answer it.

    host            address of the peer
    service         service of the peer
    private_data    the peer's private data; over RDMA devices it may be padded with zeros

    If it is closed without an answer, the peer waits until its timeout.
    """

    def __init__(self, listener: Listener, raw: _core.ConnectionRequest) -> None:
        self._raw = raw
        self.host = raw.host
        self.service = raw.service
        self.private_data = raw.private_data
        super().__init__(listener.device)

    def _description(self) -> str:
        return f"from {self.host!r}, service {self.service!r}"

    def accept(self, endpoint: Endpoint, private_data: bytes = b"") -> None:
        """Connects an endpoint that is UNCONNECTED. The connection is established when it returns.

        Raises TimeoutError if the peer has given up, Error(INVALID_STATE) if the endpoint is not UNCONNECTED: then try
        another.
        """
        endpoint._raw.accept(self._raw, private_data)
        self.close()

    def reject(self, private_data: bytes = b"") -> None:
        """Refuses the request. The peer gets REJECTED and the private data."""
        self._raw.reject(private_data)
        self.close()


class Listener(Held):
    """Receives requests for a service until it is closed. Several listeners may share a service: each request goes to
    one."""

    def __init__(self, device: Device, service: Service, *, exclusive: bool = False) -> None:
        """exclusive: only if the service has no listener yet. Raises Error(BUSY) if it has one, or the device cannot
        share the service; ValueError or OverflowError if the service is too long, or a number that is not below
        65536."""
        self._raw = _core.Listener(device._raw, service_bytes(service), exclusive)
        self.device: Device = device
        self._service = service
        super().__init__(device)

    def _description(self) -> str:
        return f"service {self._service!r} of {self.device.name}"

    def _attempt(self) -> ConnectionRequest | None:
        raw = self._raw.next_request()
        return None if raw is None else ConnectionRequest(self, raw)

    @awaits("connection request")
    def next_request(self, timeout: float | None = None) -> ConnectionRequest:
        """Waits for the next request, and returns it. Raises TimeoutError after `timeout` seconds, Error(UNREACHABLE)
        if the device was removed."""
        return self._found(next_of(self._attempt, self.fileno(), timeout))

    @awaits("connection request")
    async def next_request_async(self, timeout: float | None = None) -> ConnectionRequest:
        """Waits for the next request without blocking the asyncio loop, and returns it. Raises TimeoutError after
        `timeout` seconds, Error(UNREACHABLE) if the device was removed."""
        return self._found(await _waiting.until(self.fileno(), self._attempt, timeout))

    @staticmethod
    def _found(request: ConnectionRequest | None) -> ConnectionRequest:
        if request is None:
            raise error_of("Listener.next_request", Code.TIMED_OUT)
        return request

    def accept(self, endpoint: Endpoint, private_data: bytes = b"", timeout: float | None = None) -> ConnectionRequest:
        """Waits for the next request, connects the endpoint, and returns the request. Raises what next_request() and
        ConnectionRequest.accept() raise."""
        request = self.next_request(timeout)
        request.accept(endpoint, private_data)
        return request

    async def accept_async(self, endpoint: Endpoint, private_data: bytes = b"",
                           timeout: float | None = None) -> ConnectionRequest:
        """Waits for the next request without blocking the asyncio loop, connects the endpoint, and returns the request.
        Raises what next_request() and ConnectionRequest.accept() raise."""
        request = await self.next_request_async(timeout)
        request.accept(endpoint, private_data)
        return request

    def fileno(self) -> int:
        """Returns the descriptor, which is readable when a request may be queued."""
        return self._raw.fd
