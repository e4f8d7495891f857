# SPDX-License-Identifier: BSD-3-Clause
"""Completion queues and shared receive queues."""
from __future__ import annotations

import typing

from viaduct import _core, _waiting
from viaduct._arguments import awaits, quick
from viaduct.core.constants import Code
from viaduct.core.errors import error_of
from viaduct.core.memory import ProtectionDomain
from viaduct.core.objects import Held, repeat
from viaduct.core.structures import Completion, Pieces

if typing.TYPE_CHECKING:
    from viaduct.core.devices import Device


class CompletionQueue(Held):
    """A queue of completions. Requests of one endpoint complete in the order in which they were posted."""

    def __init__(self, device: Device, capacity: int = 256, *, context: int = 0) -> None:
        """`capacity` is in completions; asynchronous events contain `context`. Raises Error: INVALID_PARAMETER
        (capacity 0 or above the limit of the device), NO_RESOURCES."""
        self._raw = _core.CompletionQueue(device._raw, capacity, context)
        super().__init__(device)

    @quick
    def poll(self, count: int = 64) -> list[Completion]:
        """Takes and returns the oldest completions: at most `count`, at most 64, possibly none. Does not wait."""
        return self._raw.poll(count)

    @awaits("completion")
    def wait(self, count: int = 64, timeout: float | None = None) -> list[Completion]:
        """Waits until there is a completion, then takes and returns the oldest ones: at most `count`, at most 64.
        Raises TimeoutError after `timeout` seconds, ValueError if the queue is closed meanwhile."""
        return self._wait(self, count, timeout)

    def _wait(self, user: Held, count: int, timeout: float | None) -> list[Completion]:
        """Like wait(); raises ValueError also if the user is closed."""
        def attempt(seconds: float) -> list[Completion] | None:
            user._require_open()
            return self._raw.wait(count, seconds) or None
        user._require_open()
        completions = self._raw.poll(count) or repeat(attempt, timeout)
        if not completions:
            raise error_of("CompletionQueue.wait", Code.TIMED_OUT)
        return completions

    @awaits("completion")
    async def wait_async(self, count: int = 64, timeout: float | None = None) -> list[Completion]:
        """Waits until there is a completion, without blocking the asyncio loop, then takes and returns the oldest ones:
        at most `count`, at most 64. Raises TimeoutError after `timeout` seconds."""
        return await self._wait_async(self, count, timeout)

    async def _wait_async(self, user: Held, count: int, timeout: float | None) -> list[Completion]:
        """Like wait_async(); raises ValueError also if the user is closed."""
        def attempt() -> list[Completion] | None:
            user._require_open()
            while self._raw.take_event():
                pass
            self._raw.arm(False)
            return self.poll(count) or None
        user._require_open()
        completions = self.poll(count) or await _waiting.until(self.fileno(), attempt, timeout)
        if not completions:
            raise error_of("CompletionQueue.wait_async", Code.TIMED_OUT)
        return completions

    def arm(self, *, solicited: bool = False) -> None:
        """Requests an event for the next completion; the event makes the descriptor readable.

        Completions that are in the queue already cause no event: arm the queue, poll it once more, then wait for the
        descriptor. solicited: only a receive of a solicited message, or a failure, causes the event.
        """
        self._raw.arm(solicited)

    def take_event(self) -> bool:
        """Takes one event, so that the descriptor is no longer readable for it. Returns False if there is none."""
        return self._raw.take_event()

    def resize(self, capacity: int) -> None:
        """Changes the capacity. Raises Error: BUSY (more completions are queued than would fit), INVALID_PARAMETER."""
        self._raw.resize(capacity)

    def fileno(self) -> int:
        """Returns the descriptor, which is readable while events are queued; see arm()."""
        return self._raw.fd


class SharedReceiveQueue(Held):
    """Receives that several endpoints of a protection domain share: each message takes the oldest."""

    def __init__(self, domain: ProtectionDomain, depth: int = 64, *, context: int = 0) -> None:
        """`depth` is in receives; asynchronous events contain `context`. Raises Error: INVALID_PARAMETER (depth 0 or
        above the limit of the device), UNSUPPORTED, NO_RESOURCES."""
        self._raw = _core.SharedReceiveQueue(domain._raw, depth, context)
        super().__init__(domain)

    @quick
    def post_receive(self, pieces: Pieces, *, context: int = 0) -> None:
        """Posts a receive for one message; see Endpoint.post_receive()."""
        self._raw.post_receive(pieces, context)

    def arm_limit(self, limit: int) -> None:
        """Requests one asynchronous event SHARED_RECEIVE_QUEUE_LIMIT when fewer than `limit` receives are queued; 0
        requests none. Raises Error(INVALID_PARAMETER) if the limit is above the depth."""
        self._raw.arm_limit(limit)

    def resize(self, depth: int) -> None:
        """Changes the depth. Raises Error: BUSY (more receives are queued than would fit), INVALID_PARAMETER,
        UNSUPPORTED."""
        self._raw.resize(depth)

    @property
    def outstanding(self) -> int:
        """The number of receives that are queued."""
        return self._raw.outstanding
