# SPDX-License-Identifier: BSD-3-Clause
"""Shared receive queues and their configuration."""
from __future__ import annotations

from viaduct import _rpma
from viaduct.rpma.completions import Cq, HasQueues
from viaduct.rpma.memory import Piece, place_of
from viaduct.rpma.objects import Object, handle_of


class SrqCfg(Object):
    """The configuration of a shared receive queue; it is copied where it is used."""

    def __init__(self, *, rq_size: int | None = None, rcq_size: int | None = None) -> None:
        """None stands for the default, 20."""
        super().__init__(_rpma.rpma_srq_cfg_new())
        if rq_size is not None:
            self.rq_size = rq_size
        if rcq_size is not None:
            self.rcq_size = rcq_size

    def _end(self, handle: int) -> None:
        _rpma.rpma_srq_cfg_delete(handle)

    def delete(self) -> None:
        """Deletes the configuration."""
        self._delete()

    @property
    def rq_size(self) -> int:
        """How many receives wait at once."""
        return _rpma.rpma_srq_cfg_get_rq_size(self._handle)

    @rq_size.setter
    def rq_size(self, size: int) -> None:
        _rpma.rpma_srq_cfg_set_rq_size(self._handle, size)

    @property
    def rcq_size(self) -> int:
        """The size of the completion queue of the receives. 0: there is none, their completions go to the connections'
        own."""
        return _rpma.rpma_srq_cfg_get_rcq_size(self._handle)

    @rcq_size.setter
    def rcq_size(self, size: int) -> None:
        _rpma.rpma_srq_cfg_set_rcq_size(self._handle, size)


class Srq(HasQueues):
    """Receives for the messages of many connections, which close with it. Peer.srq_new() makes it."""

    def __init__(self, peer: Object, cfg: SrqCfg | None) -> None:
        handle = _rpma.rpma_srq_new(peer._handle, handle_of(cfg))
        super().__init__(handle, [peer], (_rpma.rpma_srq_get_rcq(handle),))

    def _end(self, handle: int) -> None:
        _rpma.rpma_srq_delete(handle)

    def delete(self) -> None:
        """Deletes the queue alone. Raises Error(PROVIDER) where connections use it: they go on working, but the object
        is gone. close() closes them first."""
        self._delete()

    def recv(self, destination: Piece | None = None, *, context: int = 0) -> None:
        """As Conn.recv(), for a message of whichever connection gets one first."""
        _rpma.rpma_srq_recv(self._handle, *place_of(destination), context)

    @property
    def rcq(self) -> Cq | None:
        """The completion queue of the receives, None where it has none."""
        return self._queue(0)
