# SPDX-License-Identifier: BSD-3-Clause
"""Listeners, and the requests that come to them."""
from __future__ import annotations

import typing

from viaduct import _core, _waiting
from viaduct.core.addresses import Service, service_bytes
from viaduct.core.constants import Code
from viaduct.core.endpoints import Endpoint
from viaduct.core.errors import error_of
from viaduct.core.objects import Held, next_of

if typing.TYPE_CHECKING:
    from viaduct.core.devices import Device


class ConnectionRequest(Held):
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


class Listener(Held):
    """Receives requests for a service while it is open. exclusive: nobody else may listen there."""

    def __init__(self, device: Device, service: Service, *, exclusive: bool = False) -> None:
        self._raw = _core.Listener(device._raw, service_bytes(service), exclusive)
        super().__init__(device)
        self.device: Device = device

    def _attempt(self) -> ConnectionRequest | None:
        raw = self._raw.next_request()
        return None if raw is None else ConnectionRequest(self, raw)

    def next_request(self, timeout: float | None = None) -> ConnectionRequest:
        """The next request. Raises TimeoutError."""
        return self._found(next_of(self._attempt, self.fileno(), timeout))

    async def next_request_async(self, timeout: float | None = None) -> ConnectionRequest:
        """As next_request(), for asyncio."""
        return self._found(await _waiting.until(self.fileno(), self._attempt, timeout))

    @staticmethod
    def _found(request: ConnectionRequest | None) -> ConnectionRequest:
        if request is None:
            raise error_of("Listener.next_request", Code.TIMED_OUT)
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
