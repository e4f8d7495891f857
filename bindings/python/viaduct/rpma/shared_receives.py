# SPDX-License-Identifier: BSD-3-Clause
"""Shared receive queues and their configuration."""
from __future__ import annotations

from viaduct import _rpma
from viaduct.rpma.completions import Cq, HasQueues
from viaduct.rpma.memory import Piece, place_of
from viaduct.rpma.objects import Configuration, Object, handle_or_null


class SrqCfg(Configuration):
    """The configuration of a shared receive queue. Peer.srq_new() copies it."""

    _ended_by = "rpma_srq_cfg_delete"

    def __init__(self, *, rq_size: int | None = None, rcq_size: int | None = None) -> None:
        """Sizes are in entries; None means the default, 20."""
        super().__init__(self._make(_rpma.rpma_srq_cfg_new))
        if rq_size is not None:
            self.rq_size = rq_size
        if rcq_size is not None:
            self.rcq_size = rcq_size

    @property
    def rq_size(self) -> int:
        """The number of receives that can be posted at the same time."""
        return _rpma.rpma_srq_cfg_get_rq_size(self._handle)

    @rq_size.setter
    def rq_size(self, rq_size: int) -> None:
        _rpma.rpma_srq_cfg_set_rq_size(self._handle, rq_size)

    @property
    def rcq_size(self) -> int:
        """The size of the completion queue for the receives. 0: there is none, and completions go to the connections'
        queues."""
        return _rpma.rpma_srq_cfg_get_rcq_size(self._handle)

    @rcq_size.setter
    def rcq_size(self, rcq_size: int) -> None:
        _rpma.rpma_srq_cfg_set_rcq_size(self._handle, rcq_size)


class Srq(HasQueues):
    """A queue of receives for the messages of several connections. Created by Peer.srq_new(); closing it closes these
    connections."""

    _ended_by = "rpma_srq_delete"

    def __init__(self, peer: Object, cfg: SrqCfg | None) -> None:
        own = self._make(_rpma.rpma_srq_new, peer._handle, handle_or_null(cfg, SrqCfg))
        super().__init__(own, [peer], (_rpma.rpma_srq_get_rcq(own.handle),))

    def delete(self) -> None:
        """Deletes the queue alone. Raises Error(PROVIDER) if connections use it: they keep working, but this object is
        deleted. close() closes them first."""
        self._delete()

    def recv(self, destination: Piece | None = None, *, context: int = 0) -> None:
        """Posts memory for the next message of any of the connections. None receives an empty message.

        The data are in destination.view[:completion.byte_len]. Raises Error(PROVIDER) if the queue is full.
        """
        _rpma.rpma_srq_recv(self._handle, *place_of(destination), context)

    @property
    def rcq(self) -> Cq | None:
        """The completion queue of the receives; None if there is none."""
        return self._queue(0)
