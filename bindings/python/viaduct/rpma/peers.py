# SPDX-License-Identifier: BSD-3-Clause
"""Devices and peers."""
from __future__ import annotations

import asyncio

from viaduct import _rpma
from viaduct._arguments import checked
from viaduct.memory import Buffer, buffer_of
from viaduct.rpma.configurations import ConnCfg
from viaduct.rpma.connections import Conn, ConnReq, Ep
from viaduct.rpma.constants import IbvContextType, MrUsage
from viaduct.rpma.memory import MrLocal
from viaduct.rpma.objects import Object, handle_or_null
from viaduct.rpma.shared_receives import Srq, SrqCfg


@checked
def get_ibv_context(addr: str, type: IbvContextType = IbvContextType.LOCAL) -> int:
    """Finds a device by a host name or an address and returns its context, a number for Peer() and
    ibv_context_is_odp_capable().

    Waits for the system's resolver. Raises Error(PROVIDER) if no device has or reaches the address.
    """
    return _rpma.rpma_utils_get_ibv_context(addr, type)


@checked
def ibv_context_is_odp_capable(ibv_ctx: int) -> bool:
    """Returns whether the device can register memory without pinning it."""
    return bool(_rpma.rpma_utils_ibv_context_is_odp_capable(ibv_ctx))


class Peer(Object):
    """A device and a protection domain: connections use memory that is registered with their own peer only."""

    _ended_by = "rpma_peer_delete"

    def __init__(self, ibv_ctx: int) -> None:
        """ibv_ctx: the context that get_ibv_context() returned. Raises Error: INVAL (it is not a context), PROVIDER
        (the device cannot be opened)."""
        super().__init__(self._make(_rpma.rpma_peer_new, ibv_ctx))

    def delete(self) -> None:
        """Deletes the peer alone. Raises Error(PROVIDER) if regions, requests, connections, endpoints or shared receive
        queues of it exist: they keep working, but the peer is deleted. close() closes them first."""
        self._delete()

    def mr_reg(self, buffer: Buffer | int, usage: MrUsage | None = None) -> MrLocal:
        """Registers a buffer, or that many bytes of new memory (alloc()), and returns the region.

        usage: None means everything that the memory allows. The buffer is not copied, and can neither be moved nor
        resized until the region is closed. Raises Error: INVAL (no bytes, or no usage), PROVIDER (the device is out
        of resources); TypeError if the usage writes and the memory is read-only; BufferError if the buffer is not
        contiguous.
        """
        return MrLocal(self, buffer_of(buffer), usage)

    def srq_new(self, cfg: SrqCfg | None = None) -> Srq:
        """Returns a new shared receive queue. cfg: None means the defaults. Raises Error(PROVIDER) if a size is above
        the limit of the device, or rq_size is 0."""
        return Srq(self, cfg)

    def ep_listen(self, addr: str, port: int | str) -> Ep:
        """Starts to listen on a port of an address of the device, and returns the endpoint. A port is a number or the
        name of a service.

        Waits for the system's resolver. Raises Error(PROVIDER) if the address is not one of the device, the port is
        unknown, or the port is already in use.
        """
        return Ep(Ep._make(_rpma.rpma_ep_listen, self._handle, addr, str(port)), self)

    def conn_req_new(self, addr: str, port: int | str, cfg: ConnCfg | None = None) -> ConnReq:
        """Prepares a connection request to a port of an address, and returns it. A port is a number or the name of a
        service.

        cfg: None means the defaults. Waits for the system's resolver. Raises Error: PROVIDER (address or port is
        unknown, or a size of the configuration is not supported), INVAL (the configuration has a shared completion
        channel, and a shared receive queue with a completion queue).
        """
        made = ConnReq._make(_rpma.rpma_conn_req_new, self._handle, addr, str(port), handle_or_null(cfg, ConnCfg))
        return ConnReq(made, self, cfg)

    def connect(self, addr: str, port: int | str, cfg: ConnCfg | None = None, *, private_data: Buffer | None = None,
                timeout: float | None = None) -> Conn:
        """Prepares a request, sends it, waits for ESTABLISHED, and returns the connection.

        Raises what conn_req_new() and ConnReq.connect() raise, ConnectError if the event is not ESTABLISHED,
        TimeoutError after `timeout` seconds.
        """
        conn = self.conn_req_new(addr, port, cfg).connect(private_data)
        return conn._established(lambda: conn.next_event(timeout))

    async def connect_async(self, addr: str, port: int | str, cfg: ConnCfg | None = None, *,
                            private_data: Buffer | None = None, timeout: float | None = None) -> Conn:
        """Prepares a request, sends it, waits for ESTABLISHED without blocking the asyncio loop, and returns the
        connection. The errors are those of connect()."""
        request = await asyncio.to_thread(self.conn_req_new, addr, port, cfg)
        conn = request.connect(private_data)
        return await conn._established_async(timeout)
