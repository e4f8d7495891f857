# SPDX-License-Identifier: BSD-3-Clause
"""Completions and their queues."""
from __future__ import annotations

import dataclasses
import socket
import time
import typing

from viaduct import _core, _rpma
from viaduct._arguments import MISTAKES, Checked, awaits, explain, quick
from viaduct._lifetime import Resource
from viaduct.rpma.constants import WcFlags, WcOpcode, WcStatus
from viaduct.rpma.errors import RequestError
from viaduct.rpma.objects import CLOSED, Object
from viaduct.rpma.waiting import until


class Completion:
    """The completion of an operation (struct ibv_wc).

    If status is not SUCCESS, only wr_id, status, vendor_err and qp_num are valid.
    """

    __slots__ = ("_raw",)

    def __init__(self, raw: _rpma.ibv_wc) -> None:
        self._raw = raw

    @property
    def wr_id(self) -> int:
        """The `context` of the operation."""
        return self._raw.wr_id

    @property
    def status(self) -> WcStatus:
        """The outcome of the operation."""
        return WcStatus(self._raw.status)

    @property
    def opcode(self) -> WcOpcode:
        """The operation."""
        return WcOpcode(self._raw.opcode)

    @property
    def vendor_err(self) -> int:
        """The vendor's error code for a failure."""
        return self._raw.vendor_err

    @property
    def byte_len(self) -> int:
        """For a receive: the number of bytes received."""
        return self._raw.byte_len

    @property
    def imm_data(self) -> int:
        """The immediate data as in C, in network byte order; see imm."""
        return self._raw.imm_data

    @property
    def imm(self) -> int | None:
        """The immediate data as the number that the sender gave; None if it gave none."""
        return socket.ntohl(self._raw.imm_data) if self._raw.wc_flags & WcFlags.WITH_IMM else None

    @property
    def qp_num(self) -> int:
        """Conn.qp_num of the connection."""
        return self._raw.qp_num

    @property
    def src_qp(self) -> int:
        """0: reliable connections do not report it."""
        return self._raw.src_qp

    @property
    def wc_flags(self) -> WcFlags:
        """Which other fields are valid."""
        return WcFlags(self._raw.wc_flags)

    @property
    def ok(self) -> bool:
        """Whether the operation succeeded."""
        return self._raw.status == _rpma.IBV_WC_SUCCESS

    def check(self) -> Completion:
        """Returns the completion itself. Raises RequestError if the operation failed."""
        if not self.ok:
            raise RequestError("rpma_cq_get_wc", self.status, f"IBV_WC_{self.status.name}", self.status.text)
        return self

    def __repr__(self) -> str:
        return f"<Completion wr_id={self.wr_id} {self.status.name}>"


@dataclasses.dataclass(unsafe_hash=True, repr=False)
class Cq(Checked):
    """A completion queue. It belongs to a connection or a shared receive queue, keeps that alive, and ends with it."""

    __slots__ = ("_owner", "_number")
    _owner: HasQueues
    _number: int

    @property
    def _handle(self) -> int:
        return self._owner._queues[self._number]

    @quick
    def get_wc(self, num_entries: int = 1) -> list[Completion]:
        """Takes and returns the oldest completions, at most num_entries, possibly none. Does not wait. Raises
        Error(INVAL) if num_entries is less than 1."""
        try:
            return [Completion(raw) for raw in _rpma.rpma_cq_get_wc(self._handle, num_entries)]
        except MISTAKES as error:
            explain(error, Cq.get_wc, locals())
            raise

    @awaits("completion")
    def wait(self, timeout: float | None = None) -> None:
        """Waits until there may be new completions.

        Take all completions before the next call. The next wait may return once although there are none. Raises
        TimeoutError after `timeout` seconds, Error(SHARED_CHANNEL) if the queue shares its channel: use Conn.wait().
        """
        _rpma.rpma_cq_wait(self._handle, timeout)

    @awaits("completion")
    async def wait_async(self, timeout: float | None = None) -> None:
        """Waits until there may be new completions, without blocking the asyncio loop. Take all completions before the
        next call. The errors are those of wait()."""
        def attempt(timeout: float) -> bool:
            self.wait(timeout)
            return True
        await until(self.fileno(), attempt, timeout)

    @awaits("completion")
    def next_wc(self, timeout: float | None = None) -> Completion:
        """Takes and returns the oldest completion; waits until there is one. Raises what wait() raises."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while not (taken := _rpma.rpma_cq_get_wc(self._handle, 1)):
            self.wait(None if deadline is None else max(deadline - time.monotonic(), 0))
        return Completion(taken[0])

    @awaits("completion")
    async def next_wc_async(self, timeout: float | None = None) -> Completion:
        """Takes and returns the oldest completion; waits until there is one, without blocking the asyncio loop. The
        errors are those of wait()."""
        return await until(self.fileno(), self.next_wc, timeout)

    def fileno(self) -> int:
        """Returns the descriptor, which is readable when there may be new completions."""
        return _rpma.rpma_cq_get_fd(self._handle)


class HasQueues(Object):
    """An object with completion queues."""

    def __init__(self, own: _core.Owned, parents: typing.Iterable[Resource], queues: tuple[int, ...]) -> None:
        self._own_queues = self._queues = queues  # handles; 0: none
        super().__init__(own, *parents)

    def _hide(self) -> None:
        self._queues = tuple(CLOSED if queue else 0 for queue in self._queues)
        super()._hide()

    def _show(self) -> None:
        self._queues = self._own_queues
        super()._show()

    def _queue(self, number: int) -> Cq | None:
        return Cq(self, number) if self._queues[number] else None
