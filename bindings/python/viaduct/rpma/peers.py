# SPDX-License-Identifier: BSD-3-Clause
"""Devices and peers."""
from __future__ import annotations

from viaduct import _rpma
from viaduct.memory import Buffer, alloc
from viaduct.rpma.configurations import ConnCfg
from viaduct.rpma.connections import Conn, ConnReq, Ep
from viaduct.rpma.constants import IbvContextType, MrUsage
from viaduct.rpma.memory import MrLocal
from viaduct.rpma.objects import Object, handle_of
from viaduct.rpma.shared_receives import Srq, SrqCfg


def get_ibv_context(addr: str, type: IbvContextType = IbvContextType.LOCAL) -> int:
    """Finds a device by an address: a host name, an IPv4 or an IPv6 address. The context is good for Peer() and
    ibv_context_is_odp_capable(). Raises Error(PROVIDER) where the address leads to no device."""
    return _rpma.rpma_utils_get_ibv_context(addr, type)


def ibv_context_is_odp_capable(ibv_ctx: int) -> bool:
    """Whether regions may be registered without pinning their memory."""
    return bool(_rpma.rpma_utils_ibv_context_is_odp_capable(ibv_ctx))


class Peer(Object):
    """A use of a device, and the scope of its memory."""

    def __init__(self, ibv_ctx: int) -> None:
        """ibv_ctx: what get_ibv_context() found."""
        super().__init__(_rpma.rpma_peer_new(ibv_ctx))

    def _end(self, handle: int) -> None:
        _rpma.rpma_peer_delete(handle)

    def delete(self) -> None:
        """Deletes the peer alone. Raises Error(PROVIDER) where regions, requests, connections, endpoints or shared
        receive queues of the peer exist: they go on working, but the peer is gone. close() closes them first."""
        self._delete()

    def mr_reg(self, buffer: Buffer | int, usage: MrUsage | None = None) -> MrLocal:
        """Registers a buffer, or that many bytes of new memory as alloc() gives it. usage: None stands for all that the
        memory allows. The buffer stays where it is until the region is closed.

        Raises TypeError where the usage is to write memory that is read-only, BufferError where the buffer has gaps,
        Error(INVAL) where it is empty or no usage is given, Error(PROVIDER) where the device has no room."""
        return MrLocal(self, alloc(buffer) if isinstance(buffer, int) else buffer, usage)

    def srq_new(self, cfg: SrqCfg | None = None) -> Srq:
        """Makes a shared receive queue. cfg: None stands for the defaults. Raises Error(PROVIDER) where a size is above
        the limit of the device, or rq_size is 0."""
        return Srq(self, cfg)

    def ep_listen(self, addr: str, port: int | str) -> Ep:
        """Listens on a port (a number or a service's name) of an address of the device. Raises Error(PROVIDER) where
        the address or the port is of no use, or somebody listens there already."""
        return Ep(_rpma.rpma_ep_listen(self._handle, addr, str(port)), self)

    def conn_req_new(self, addr: str, port: int | str, cfg: ConnCfg | None = None) -> ConnReq:
        """Prepares a request to whoever listens on a port (a number or a service's name) of an address. cfg: None
        stands for the defaults. Raises Error(PROVIDER) where the address, the port or the configuration is of no use,
        Error(INVAL) also for a shared completion channel together with a shared receive queue that has a completion
        queue."""
        return ConnReq(_rpma.rpma_conn_req_new(self._handle, addr, str(port), handle_of(cfg)), self, cfg)

    def connect(self, addr: str, port: int | str, cfg: ConnCfg | None = None, *, private_data: Buffer | None = None,
                timeout: float | None = None) -> Conn:
        """conn_req_new(), connect() of what it returns, and the wait for ESTABLISHED. Raises what these raise,
        ConnectError where another event comes, TimeoutError where none comes in time."""
        conn = self.conn_req_new(addr, port, cfg).connect(private_data)
        return conn._established(lambda: conn.next_event(timeout))

    async def connect_async(self, addr: str, port: int | str, cfg: ConnCfg | None = None, *,
                            private_data: Buffer | None = None, timeout: float | None = None) -> Conn:
        """As connect(), for asyncio."""
        conn = self.conn_req_new(addr, port, cfg).connect(private_data)
        return await conn._established_async(timeout)
