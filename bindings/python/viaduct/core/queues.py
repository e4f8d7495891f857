# SPDX-License-Identifier: BSD-3-Clause
"""Completion queues and shared receive queues."""
from __future__ import annotations

import typing

from viaduct import _core, _waiting
from viaduct.core.constants import Code, CompletionCode, Operation
from viaduct.core.errors import error_of
from viaduct.core.memory import ProtectionDomain
from viaduct.core.objects import Held, repeat
from viaduct.core.structures import Completion, Pieces, sequence_of

if typing.TYPE_CHECKING:
    from viaduct.core.devices import Device

_OPERATIONS = tuple(Operation)  # by their numbers: this is looked up for each completion
_COMPLETION_CODES = tuple(CompletionCode)


def _completions(raw: list[_core._Completion]) -> list[Completion]:
    return [Completion(context, _OPERATIONS[operation], _COMPLETION_CODES[code], nbytes, immediate, invalidated, endpoint)
            for context, operation, code, nbytes, immediate, invalidated, endpoint in raw]


class CompletionQueue(Held):
    """Where finished requests are found, in the order of their posting."""

    def __init__(self, device: Device, capacity: int = 256, *, context: int = 0) -> None:
        self._raw = _core.CompletionQueue(device._raw, capacity, context)
        super().__init__(device)

    def poll(self, count: int = 64) -> list[Completion]:
        """Takes what is there, at most `count` and at most 64 completions."""
        return _completions(self._raw.poll(count))

    def wait(self, count: int = 64, timeout: float | None = None) -> list[Completion]:
        """As poll(), waiting for the first. Raises TimeoutError."""
        completions = repeat(lambda seconds: self._raw.wait(count, seconds) or None, timeout)
        if not completions:
            raise error_of("CompletionQueue.wait", Code.TIMED_OUT)
        return _completions(completions)

    async def wait_async(self, count: int = 64, timeout: float | None = None) -> list[Completion]:
        """As wait(), for asyncio."""
        def attempt() -> list[Completion] | None:
            while self._raw.take_event():
                pass
            self._raw.arm(False)
            return self.poll(count) or None
        completions = self.poll(count) or await _waiting.until(self.fileno(), attempt, timeout)
        if not completions:
            raise error_of("CompletionQueue.wait_async", Code.TIMED_OUT)
        return completions

    def arm(self, *, solicited: bool = False) -> None:
        """Makes the next completion leave an event, which makes the descriptor readable; see take_event()."""
        self._raw.arm(solicited)

    def take_event(self) -> bool:
        """Takes one event back; False where there is none."""
        return self._raw.take_event()

    def resize(self, capacity: int) -> None:
        """Raises Error(BUSY) where more completions wait than would fit."""
        self._raw.resize(capacity)

    def fileno(self) -> int:
        """Readable while events wait."""
        return self._raw.fd


class SharedReceiveQueue(Held):
    """Receives for the messages of many endpoints."""

    def __init__(self, domain: ProtectionDomain, depth: int = 64, *, context: int = 0) -> None:
        self._raw = _core.SharedReceiveQueue(domain._raw, depth, context)
        super().__init__(domain)

    def post_receive(self, pieces: Pieces, *, context: int = 0) -> None:
        """As Endpoint.post_receive()."""
        self._raw.post_receive(context, sequence_of(pieces))

    def arm_limit(self, limit: int) -> None:
        """Asks for one SHARED_RECEIVE_QUEUE_LIMIT once fewer than `limit` receives wait."""
        self._raw.arm_limit(limit)

    def resize(self, depth: int) -> None:
        """Raises Error(BUSY) where more receives wait than would fit."""
        self._raw.resize(depth)

    @property
    def outstanding(self) -> int:
        """Receives that wait."""
        return self._raw.outstanding
