# SPDX-License-Identifier: BSD-3-Clause
"""Objects that are closed in the right order, whichever object is closed first."""
from __future__ import annotations

import atexit
import contextlib
import os
import typing
import weakref

from viaduct import _core
from viaduct._arguments import Checked
from viaduct.errors import Error

_roots: weakref.WeakSet[Resource] = weakref.WeakSet()
_unreleased: list[Resource] = []  # could not be closed when unused; the library may still use their memory
_await_return = _core.Ending.await_return

Self = typing.TypeVar("Self", bound="Resource")
R = typing.TypeVar("R", bound="Resource")
T = typing.TypeVar("T")


class Resource(Checked):
    """An object that has to be closed. It keeps the parents from which it was created; closing a parent closes it
    first.

    Subclasses call __init__ last: from then on, another thread may close the object. If a parent has been closed
    meanwhile, __init__ releases the object.

    Thread-safe: several threads may close an object. Finalizers and signal handlers may close objects, too, wherever
    they interrupt a thread: no lock is held here, and the extension module makes changes as a whole.
    """

    _place = _core.Place(None)  # until __init__ has run: closed
    _inherited = False  # whether it was open in the parent process at fork()

    def __init__(self, *parents: Resource) -> None:
        self._parents = parents
        self._place = _core.Place(self)
        gone = self._place.open([parent._place for parent in parents])
        if gone is not None:
            with contextlib.suppress(Error):  # the library may have ended it with its parent
                self._release()
            raise ValueError(f"the {type(parents[gone]).__name__} is closed")
        if not parents:
            _roots.add(self)

    @property
    def closed(self) -> bool:
        """Whether the object is closed. Calls on a closed object fail."""
        return self._place.closed

    def close(self) -> None:
        """Closes the object, after everything created from it, the newest first.

        Works in every state. Closing an object twice has no effect. Waits until calls of other threads on the object
        have returned; waits for events are interrupted, which takes at most 0.1 seconds. In a signal handler it may
        raise RuntimeError: the interrupted call uses the object, which stays open. After another exception, such as
        KeyboardInterrupt, it may be called again.
        """
        with _core.Ending(self._place) as ending:
            while (to_close := ending.begin()) is not None:
                for child in to_close:
                    child.close()
                if not to_close:
                    _await_return(ending)
            if ending.begun:
                self._release()
                self._released()

    def _end_by(self, call: typing.Callable[[], T]) -> T:
        """Makes a call that ends the object, unless it fails. Other threads do not close it or its parents meanwhile.
        Afterwards it is closed."""
        with _core.Ending(self._place) as ending:
            ending.mark()
            result = call()
            self._released()
            return result

    def _release(self) -> None:
        """Releases the resource in any state. Subclasses override it. It is called again if an exception, which may
        come from a signal handler, has ended it at any place."""

    def _released(self) -> None:
        """Records that the resource is released, and closes abandoned parents that have no other children."""
        self._place.release()
        for parent in self._parents:
            if parent._place.abandoned and not parent._place.has_children:
                parent.close()

    def _depend_on(self, *parents: Resource) -> None:
        """Replaces the parents: from now on, closing one of these closes this object first."""
        former = self._parents
        self._parents = (*former, *parents)  # keeps all of them meanwhile
        is_open = self._place.move([parent._place for parent in parents])
        self._parents = parents if is_open else former

    def __copy__(self: Self) -> Self:
        return self  # a copy would release the same resource

    def __deepcopy__(self: Self, known: object) -> Self:
        return self

    def __reduce_ex__(self, protocol: typing.SupportsIndex) -> typing.NoReturn:
        raise TypeError(f"cannot pickle {type(self).__name__!r} object")

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __del__(self) -> None:
        if not self._place.abandon():
            try:
                self.close()
            except BaseException:
                _unreleased.append(self)
                raise

    def _description(self) -> str:
        """What repr() says of an open object: its name and its state, as far as it has them."""
        return "open"

    def __repr__(self) -> str:
        state = "closed"
        if not self.closed:
            try:
                state = self._description()
            except Exception:  # closed by another thread in the meantime
                state = "closing"
        return f"<{type(self).__module__.rpartition('.')[0]}.{type(self).__name__}: {state}>"


def only_one(owner: object, name: str, make: typing.Callable[[], R]) -> R:
    """Returns the open resource in an attribute, or makes one if there is none. Of several threads that make one, all
    get that of the first."""
    while True:
        found: R | None = getattr(owner, name)
        if found is not None and not found.closed:
            return found
        made = make()
        if not _core.replace(owner, name, found, made):
            made.close()


def _disown(resource: Resource) -> None:
    for child in resource._place.children():
        _disown(child)
    resource._place.disown()
    if vars(resource).pop("_raw", None) is not None:
        resource._inherited = True


def _disown_all() -> None:
    """In a forked child: what it inherits belongs to the parent."""
    for root in list(_roots):
        _disown(root)


os.register_at_fork(after_in_child=_disown_all)


@atexit.register
def _close_all() -> None:
    """Closes the remaining objects while the interpreter is still intact, also if some raise exceptions."""
    with contextlib.ExitStack() as closing:
        for root in list(_roots):
            closing.callback(root.close)
