# SPDX-License-Identifier: BSD-3-Clause
"""Completion queues."""
from __future__ import annotations

import typing
import weakref

from viaduct import _core, _vipl
from viaduct._arguments import awaits
from viaduct.vipl.constants import ReturnCode
from viaduct.vipl.descriptors import Descriptor
from viaduct.vipl.errors import error_of
from viaduct.vipl.objects import Handled
from viaduct.vipl.vis import Vi
from viaduct.vipl.waiting import Arrivals, result_in_time, result_in_time_async, time_left

if typing.TYPE_CHECKING:
    from viaduct.vipl.nics import Nic


class CqEntry(typing.NamedTuple):
    """An entry of a completion queue: a queue of a VI that has a completed descriptor.

    vi            the VI
    recv_queue    True: its receive queue; False: its send queue
    """
    vi: Vi
    recv_queue: bool

    def done(self) -> Descriptor | None:
        """Takes and returns the descriptor: Vi.recv_done() or Vi.send_done(), with their errors."""
        return self.vi.recv_done() if self.recv_queue else self.vi.send_done()


class CompletionQueue(Handled):
    """A queue that reports which queues of several VIs have completed descriptors.

    Created by Nic.create_cq(). Nic.create_vi() connects it with the queues of a VI.
    """

    def __init__(self, nic: Nic, entries: int) -> None:
        own = _core.Owned(_vipl, "VipDestroyCQ", _vipl.VipCreateCQ, nic.handle, entries)
        self.nic = nic
        self._arrivals: Arrivals[CqEntry] = Arrivals()
        nic._cqs[own.handle] = self
        super().__init__(own, nic)

    def destroy(self) -> None:
        """VipDestroyCQ. Raises Error(ERROR_RESOURCE) if a VI uses it; close() closes that VI first. Waits until a
        running notify handler of the queue has returned."""
        self._end_by(self._own.end)

    def _released(self) -> None:
        self._arrivals.fail(error_of("VipCQNotify", ReturnCode.INVALID_PARAMETER))
        super()._released()

    def resize(self, entries: int) -> None:
        """VipResizeCQ. Changes the number of entries. Raises Error: INVALID_PARAMETER (0), ERROR_RESOURCE (more than
        the NIC supports, or fewer than are queued)."""
        _vipl.VipResizeCQ(self.handle, entries)

    def done(self) -> CqEntry | None:
        """VipCQDone. Takes and returns the oldest entry; None if there is none. Does not wait."""
        entry = self._arrivals.take()
        while entry is None and (raw := _vipl.VipCQDone(self.handle)) is not None:
            entry = self._entry(*raw)
        return entry

    @awaits("completed descriptor")
    def wait(self, timeout: float | None = None) -> CqEntry:
        """VipCQWait. Waits until there is an entry, then takes and returns the oldest. Raises TimeoutError after
        `timeout` seconds."""
        entry, left = None, time_left(timeout)
        while entry is None:
            if self._arrivals.busy:
                entry = result_in_time("VipCQWait", self._arrivals, self._ask, left())
            else:
                entry = self._entry(*_vipl.VipCQWait(self.handle, left()))
        return entry

    @awaits("completed descriptor")
    async def wait_async(self, timeout: float | None = None) -> CqEntry:
        """Waits until there is an entry, without blocking the asyncio loop, then takes and returns the oldest. Raises
        TimeoutError after `timeout` seconds."""
        return await result_in_time_async("VipCQWait", self._arrivals, self._ask, timeout)

    def notify(self, handler: typing.Callable[[CompletionQueue, CqEntry | None], object]) -> None:
        """VipCQNotify. Calls handler(cq, entry) once, with the next entry, from a thread of the queue.

        The entry is None if its VI is closed by then. Exceptions of the handler are passed to sys.unraisablehook.
        """
        _vipl.VipCQNotify(self.handle, (weakref.ref(self), handler), _on_entry)

    def _entry(self, vi: int, recv_queue: bool) -> CqEntry | None:
        """Returns the entry of a queue; None if its VI is closed."""
        found = self.nic._vis.get(vi)
        return None if found is None or found.closed else CqEntry(found, recv_queue)

    def _ask(self) -> None:
        self.notify(lambda cq, entry: cq._arrivals.put(entry))


def _on_entry(context: typing.Any, nic: int, vi: int, recv_queue: bool) -> None:
    reference, handler = context
    cq = reference()
    if cq is not None:
        handler(cq, cq._entry(vi, recv_queue))
