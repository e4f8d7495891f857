# SPDX-License-Identifier: BSD-3-Clause
"""Event dispatchers and consumer notification objects."""
from __future__ import annotations

import asyncio
import collections
import contextlib
import dataclasses
import typing

from viaduct import _core, _dat, _lifetime, _waiting
from viaduct._arguments import awaits
from viaduct.dat.constants import CnoParamMask, EventNumber, EvdParamMask, IbExtType, IbStatus, ReturnType
from viaduct.dat.errors import TimeoutError, error_of
from viaduct.dat.events import (KINDS, NUMBERS, OPERATIONS, STATUSES, CrArrivalEvent, DtoCompletionEvent, Event,
                                IbDtoEvent, RmrBindCompletionEvent)
from viaduct.dat.objects import Counting, DatObject, counters_of, handle_of, object_of
from viaduct.dat.service_points import Cr
from viaduct.dat.structures import CnoParam, EvdParam
from viaduct.errors import Error

if typing.TYPE_CHECKING:
    from viaduct.dat.adapters import Ia

Agent = typing.Callable[[typing.Optional["Evd"]], object]  # called with an EVD that has new events
Wanted = typing.Callable[[Event], bool]


@dataclasses.dataclass(eq=False)
class _Claim:
    """A task that waits: for any event, or for those that `wanted` accepts. The loop watches the descriptor."""
    wanted: Wanted | None
    future: asyncio.Future[Event]
    fd: int

    def takes(self, event: Event) -> bool:
        return not self.future.done() and (self.wanted is None or self.wanted(event))


class Cno(DatObject):
    """A consumer notification object: waits for several EVDs. Created by Ia.cno_create().

    A thread of the CNO calls an agent with each Evd that has new events; exceptions of the agent are passed to
    sys.unraisablehook.

    Closing the CNO waits until a running agent has returned, so an agent must not close it. Closing detaches the CNO
    from its EVDs, and ends the waits of other threads with Error(INVALID_HANDLE).
    """

    _ended_by = "dat_cno_free"

    def __init__(self, ia: Ia, own: _core.Owned, fd: int = -1) -> None:
        self.ia = ia
        self._fd = fd
        self._evds: set[int] = set()  # handles of the EVDs that notify it
        super().__init__(own, ia)

    def fileno(self) -> int:
        """Returns the descriptor, which is readable when an EVD has new events; trigger() returns that EVD. Raises
        ValueError if the CNO was not created by cno_fd_create()."""
        if self._fd < 0:
            raise ValueError("only a CNO of cno_fd_create() has a descriptor")
        return self._fd

    @awaits("notification")
    def wait(self, timeout: float | None = None) -> Evd | None:
        """Waits until an EVD has new events, and returns it; None if that EVD is closed (dat_cno_wait). Raises
        TimeoutError after `timeout` seconds, Error(INVALID_HANDLE) if the CNO is closed meanwhile."""
        return _evd_of(_dat.dat_cno_wait(self.handle, timeout))

    @awaits("notification")
    async def wait_async(self, timeout: float | None = None) -> Evd:
        """Waits until an EVD has new events, without blocking the asyncio loop, and returns it. For a CNO of
        cno_fd_create(). Raises TimeoutError after `timeout` seconds."""
        evd = await _waiting.until(self.fileno(), self.trigger, timeout)
        if evd is None:
            raise _failure("dat_cno_wait", ReturnType.QUEUE_EMPTY)
        return evd

    def trigger(self) -> Evd | None:
        """Takes a notification: returns the EVD that has new events, or None if there is none. Does not wait."""
        handle = _dat.dat_cno_trigger(self.handle)
        return None if handle is None else _evd_of(handle)

    def modify_agent(self, agent: Agent | None) -> None:
        """Replaces the agent; None removes it (dat_cno_modify_agent). Waits until a running agent has returned."""
        _dat.dat_cno_modify_agent(self.handle, raw_agent(agent))

    def query(self, mask: CnoParamMask = CnoParamMask.ALL) -> CnoParam:
        """Returns its parameters (dat_cno_query)."""
        param = CnoParam._of(_dat.dat_cno_query(self.handle, mask))
        if isinstance(param.proxy, _RawAgent):
            param.proxy = param.proxy.agent
        return param

    def _release(self) -> None:
        for handle in list(self._evds):
            evd = _evd_of(handle)
            if evd is not None:
                evd.modify_cno(None)
            else:  # the garbage collector is about to close it
                with contextlib.suppress(Error):
                    _dat.dat_evd_modify_cno(handle, 0)
        super()._release()


class _RawAgent:
    """Calls an agent with the object of a handle."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent

    def __call__(self, handle: int) -> None:
        self.agent(_evd_of(handle))


def raw_agent(agent: Agent | None) -> _RawAgent | None:
    """Returns what the extension module calls for an agent."""
    return None if agent is None else _RawAgent(agent)


def _evd_of(handle: int) -> Evd | None:
    return typing.cast("Evd | None", object_of(handle))


class Evd(Counting):
    """An event dispatcher: a queue of events. Created by Ia.evd_create().

    Only one thread may wait at a time. While it waits, another that waits or dequeues gets Error(INVALID_STATE).
    Closing the EVD ends the wait with Error(ABORT).
    """

    _counters = counters_of("DCNT_EVD_")
    _ended_by = "dat_evd_free"

    def __init__(self, ia: Ia, own: _core.Owned, cno: Cno | None = None, *, owned: bool = True) -> None:
        self.ia = ia
        self.cno = cno
        if cno is not None:
            cno._evds.add(own.handle)
        self._owned = owned  # False: by the library, as the EVD for asynchronous events
        self._notifier: Cno | None = None  # the CNO that fileno() created
        self._claims: list[_Claim] = []
        self._set_aside: collections.deque[Event] = collections.deque()  # taken, but not yet wanted by a task
        super().__init__(own, ia)

    # ---- Taking events ----

    @awaits("event (or fewer than the threshold)")
    def wait(self, timeout: float | None = None, threshold: int = 1) -> Event:
        """Waits until `threshold` events are queued, then takes and returns the oldest (dat_evd_wait). Its n_more is
        the number of those that remain.

        Raises TimeoutError after `timeout` seconds, and then takes no event; Error: INVALID_STATE (another thread
        waits, or the EVD is unwaitable), ABORT (the EVD is closed meanwhile).
        """
        while True:
            kept = len(self._set_aside)
            if not 0 < threshold <= kept:
                is_valid = kept != 0 and 0 < threshold <= self.query().evd_qlen  # else the library refuses it
                missing = threshold - kept if is_valid else threshold
                event = self._event(*_dat.dat_evd_wait(self.handle, timeout, missing))
                if kept == 0:
                    return event
                self._set_aside.append(event)
            while (later := self._dequeue()) is not None:
                self._set_aside.append(later)
            with contextlib.suppress(IndexError):  # another thread has taken it
                event = self._set_aside.popleft()
                event.n_more = len(self._set_aside)
                return event

    def dequeue(self) -> Event | None:
        """Takes and returns the oldest event; None if there is none (DAT_QUEUE_EMPTY). Does not wait. Raises
        Error(INVALID_STATE) while another thread waits."""
        if self._set_aside:
            with contextlib.suppress(IndexError):  # another thread has taken it
                return self._set_aside.popleft()
        return self._dequeue()

    async def wait_async(self, timeout: float | None = None) -> Event:
        """Waits until an event is queued, without blocking the asyncio loop, then takes and returns the oldest. Several
        tasks of one loop may wait. Raises TimeoutError after `timeout` seconds, Error(ABORT) if the EVD is closed
        meanwhile."""
        return await self._await(None, timeout)

    def fileno(self) -> int:
        """Returns the descriptor, which is readable when events may be queued, until dequeue() has returned None.

        The EVD gets a CNO for that. Raises ValueError if it has one already: then wait for that one.
        """
        if self._notifier is None and self.cno is not None:
            raise ValueError("the EVD has a CNO already: wait for that one")
        notifier = _lifetime.only_one(self, "_notifier", self.ia.cno_fd_create)
        if self.handle not in notifier._evds:
            try:
                _dat.dat_evd_modify_cno(self.handle, notifier.handle)  # several threads may do it
            except Error:
                notifier.close()
                raise
            notifier._evds.add(self.handle)
        return notifier.fileno()

    def _dequeue(self) -> Event | None:
        raw = _dat.dat_evd_dequeue(self.handle)
        notifier = self._notifier  # a copy: another thread may remove it
        if raw is None and notifier is not None:
            notifier.trigger()  # later events make the descriptor readable again
            raw = _dat.dat_evd_dequeue(self.handle)
        return None if raw is None else self._event(raw)

    def _event(self, raw: _dat._Event, n_more: int = 0) -> Event:
        number, _, data, extension = raw
        kind = KINDS.get(number, Event)
        if kind is DtoCompletionEvent:
            return DtoCompletionEvent(NUMBERS[number], self, n_more, data[0], data[1], STATUSES[data[2]], data[3],
                                      OPERATIONS[data[4]], data[5])
        if kind is IbDtoEvent and extension is not None:
            return IbDtoEvent(NUMBERS[number], self, n_more, data[0], data[1], STATUSES[data[2]], data[3],
                              OPERATIONS[data[4]], data[5], IbExtType(extension[0]),
                              IbStatus.OP_ERR if extension[1] else IbStatus.OP_SUCCESS, extension[2])
        if kind is RmrBindCompletionEvent:
            return RmrBindCompletionEvent(NUMBERS[number], self, n_more, data[0], data[1], STATUSES[data[2]])
        if kind is CrArrivalEvent:
            cr = Cr(self.ia, data[3])
            return CrArrivalEvent(NUMBERS[number], self, n_more, data[0], data[1], data[2], cr, data[4])
        return kind(EventNumber(number), self, n_more, *data)

    # ---- asyncio: tasks that wait for any event, and tasks that wait for those of one endpoint ----

    async def _await(self, wanted: Wanted | None, timeout: float | None) -> Event:
        loop = asyncio.get_running_loop()
        fd = self.fileno()
        claim = _Claim(wanted, loop.create_future(), fd)
        self._claims.append(claim)
        try:
            self._distribute()
            loop.remove_reader(fd)  # of other tasks, or for a closed file with the same number
            loop.add_reader(fd, self._distribute)
            await asyncio.wait([claim.future], timeout=timeout)
        except asyncio.CancelledError:
            if claim.future.done() and claim.future.exception() is None:
                self._set_aside.append(claim.future.result())
                self._distribute()  # another task may wait for it
            raise
        finally:
            self._claims.remove(claim)
            if not self._claims and not self.closed:
                loop.remove_reader(fd)
        if not claim.future.done():
            assert timeout is not None
            expired = typing.cast(TimeoutError, _failure("dat_evd_wait", ReturnType.TIMEOUT_EXPIRED))
            raise expired._say("Evd.wait_async", "event", timeout)
        return claim.future.result()

    def _discard(self, unwanted: Wanted) -> None:
        """Takes the events that no task waits for any more."""
        others = []
        while (event := self.dequeue()) is not None:
            if not unwanted(event):
                others.append(event)
        self._set_aside.extend(others)
        self._distribute()

    def _distribute(self) -> None:
        """Passes events, oldest first, to the tasks that want them."""
        for event in list(self._set_aside):
            if self._deliver(event):
                self._set_aside.remove(event)
        while any(not claim.future.done() for claim in self._claims):
            event_or_none = self._dequeue()
            if event_or_none is None:
                return
            if not self._deliver(event_or_none):
                self._set_aside.append(event_or_none)

    def _deliver(self, event: Event) -> bool:
        """Passes an event to a task that wants it. Tasks that want this particular event take precedence."""
        takers = [claim for claim in self._claims if claim.takes(event)]
        if not takers:
            return False
        min(takers, key=lambda claim: claim.wanted is None).future.set_result(event)
        return True

    # ---- Its own state ----

    def query(self, mask: EvdParamMask = EvdParamMask.ALL) -> EvdParam:
        """Returns its parameters (dat_evd_query)."""
        return EvdParam._of(_dat.dat_evd_query(self.handle, mask))

    def resize(self, evd_min_qlen: int) -> None:
        """Changes the length of the queue (dat_evd_resize). Raises Error: INVALID_STATE (more events are queued),
        INSUFFICIENT_RESOURCES (longer than the adapter supports)."""
        _dat.dat_evd_resize(self.handle, evd_min_qlen)

    def modify_cno(self, cno: Cno | None) -> None:
        """Attaches the EVD to another CNO, or to none (dat_evd_modify_cno). Ends the descriptor of fileno()."""
        _dat.dat_evd_modify_cno(self.handle, handle_of(cno))
        self._leave(self.cno, self._notifier)
        if self._notifier is not None:
            self._notifier.close()
            self._notifier = None
        self.cno = cno
        if cno is not None:
            cno._evds.add(self.handle)

    def _leave(self, *cnos: Cno | None) -> None:
        for cno in cnos:
            if cno is not None:
                cno._evds.discard(self.handle)

    def enable(self) -> None:
        """Lets events notify the CNO (dat_evd_enable). New EVDs are enabled."""
        _dat.dat_evd_enable(self.handle)

    def disable(self) -> None:
        """Keeps events from notifying the CNO (dat_evd_disable)."""
        _dat.dat_evd_disable(self.handle)

    def set_unwaitable(self) -> None:
        """Forbids waiting (dat_evd_set_unwaitable): a thread that waits, now or later, gets Error(INVALID_STATE). Waits
        until the present one has returned."""
        _dat.dat_evd_set_unwaitable(self.handle)

    def clear_unwaitable(self) -> None:
        """Permits waiting again (dat_evd_clear_unwaitable)."""
        _dat.dat_evd_clear_unwaitable(self.handle)

    def post_se(self, pointer: int = 0, event_number: EventNumber = EventNumber.SOFTWARE_EVENT) -> None:
        """Posts a software event with 64 bits (dat_evd_post_se). Raises Error: QUEUE_FULL, INVALID_PARAMETER (the EVD
        does not take EvdFlags.SOFTWARE, or event_number is of another kind)."""
        _dat.dat_evd_post_se(self.handle, event_number, pointer)

    def _released(self) -> None:
        super()._released()
        self._leave(self.cno, self._notifier)

    def _release(self) -> None:
        self._dismiss()
        self._leave(self.cno, self._notifier)
        if self._owned:
            super()._release()
        if self._notifier is not None:
            self._notifier.close()

    def _dismiss(self) -> None:
        """Ends the waits of tasks, like the library ends those of threads."""
        for claim in list(self._claims):
            error = _failure("dat_evd_wait", ReturnType.ABORT)
            loop = claim.future.get_loop()
            if loop is asyncio._get_running_loop():
                _fail(loop, claim, error)
            else:
                with contextlib.suppress(RuntimeError):  # the loop is closed: the task will never run again
                    loop.call_soon_threadsafe(_fail, loop, claim, error)


def _failure(call: str, code: ReturnType) -> Exception:
    return error_of(call, _dat.DAT_CLASS_ERROR | code)


def _fail(loop: asyncio.AbstractEventLoop, claim: _Claim, error: Exception) -> None:
    loop.remove_reader(claim.fd)
    if not claim.future.done():
        claim.future.set_exception(error)
