# SPDX-License-Identifier: BSD-3-Clause
"""Objects that are closed in the right order, whichever object is closed first."""
from __future__ import annotations

import atexit
import contextlib
import os
import threading
import typing
import weakref

from viaduct._arguments import Checked
from viaduct.errors import Error

_lock = threading.RLock()  # guards the tree of resources: which are closed, and their children
_released = threading.Condition(_lock)  # signalled when a call that ends a resource has returned
_roots: weakref.WeakSet[Resource] = weakref.WeakSet()
_unreleased: list[Resource] = []  # could not be closed when unused; the library may still use their memory

Self = typing.TypeVar("Self", bound="Resource")


class Resource(Checked):
    """An object that has to be closed. It keeps the parents from which it was created; closing a parent closes it
    first.

    Subclasses call __init__ last: from then on, another thread may close the object. If a parent has been closed
    meanwhile, __init__ releases the object.

    Thread-safe: several threads may close an object.
    """

    _closed = True  # until __init__ has run
    _abandoned = False  # only its children refer to it

    def __init__(self, *parents: Resource) -> None:
        self._parents = parents
        self._children: dict[int, weakref.ref[Resource]] = {}  # oldest first
        self._enders: list[int] = []  # threads in calls that end it
        with _lock:
            gone = next((parent for parent in parents if parent._closed), None)
            if gone is None:
                for parent in parents:
                    parent._children[id(self)] = weakref.ref(self)
                if not parents:
                    _roots.add(self)
                self._closed = False
        if gone is not None:
            with contextlib.suppress(Error):  # the library may have ended it with its parent
                self._release()
            raise ValueError(f"the {type(gone).__name__} is closed")

    @property
    def closed(self) -> bool:
        """Whether the object is closed. Calls on a closed object fail."""
        return self._closed

    def close(self) -> None:
        """Closes the object, after everything created from it, the newest first.

        Works in every state. Closing an object twice has no effect. Waits until calls of other threads on the object
        have returned; waits for events are interrupted, which takes at most 0.1 seconds. In a signal handler it may
        raise RuntimeError: the interrupted call uses the object, which stays open.
        """
        with contextlib.ExitStack() as ending:
            while True:
                with _lock:
                    if self._closed or self._ending_elsewhere():
                        return
                    children = self._living_children()
                    to_close = [child for child in children if not child._closed and not child._ending_elsewhere()]
                    if not to_close and not any(child._ending_elsewhere() for child in children):
                        self._closed = True  # from here on there are no new children
                        ending.enter_context(self._ending())
                        break
                    if not to_close:
                        _released.wait()
                for child in to_close:
                    child.close()
            try:
                self._release()
            except BaseException:  # such as that a call of this thread, which a signal handler has interrupted, uses it
                self._closed = False
                raise

    @contextlib.contextmanager
    def _ending(self, *, even_if_it_fails: bool = False) -> typing.Iterator[None]:
        """Surrounds a call that ends the object, unless it fails. Other threads do not close it or its parents
        meanwhile. Afterwards it is closed."""
        with _lock:
            self._enders.append(threading.get_ident())
        try:
            yield
            self._released()
        except BaseException:
            if even_if_it_fails:
                self._released()
            raise
        finally:
            with _lock:
                self._enders.remove(threading.get_ident())
                _released.notify_all()

    def _living_children(self) -> list[Resource]:
        """Returns what was created from this object and has not been released yet, the newest first."""
        known = [reference() for reference in reversed(self._children.values())]
        return [child for child in known if child is not None]

    def _ending_elsewhere(self) -> bool:
        """Whether another thread is ending this object. A thread that closes the parent waits for that. A thread that
        closes this object does not: it may run a handler of the object, for which the first thread waits."""
        return any(thread != threading.get_ident() for thread in self._enders)

    def _release(self) -> None:
        """Releases the resource in any state. Subclasses override it."""

    def _released(self) -> None:
        """Records that the resource is released, and closes abandoned parents that have no other children."""
        with _lock:
            self._closed = True
            for parent in self._parents:
                parent._children.pop(id(self), None)
        for parent in self._parents:
            if parent._abandoned and not parent._children:
                parent.close()

    def _depend_on(self, *parents: Resource) -> None:
        """Replaces the parents: from now on, closing one of these closes this object first."""
        with _lock:
            if self._closed:  # by another thread; the parents' closing must not wait for it
                return
            for former in self._parents:
                former._children.pop(id(self), None)
            self._parents = tuple(dict.fromkeys(parents))
            for parent in self._parents:
                parent._children[id(self)] = weakref.ref(self)

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
        # The garbage collector finalizes a cycle of parents and children in any order. A parent whose children have
        # been finalized, but not released, is closed with the last of them.
        with _lock:
            self._abandoned = not self._closed and any(child() is None for child in self._children.values())
        if not self._abandoned:
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
        if not self._closed:
            try:
                state = self._description()
            except Exception:  # closed by another thread in the meantime
                state = "closing"
        return f"<{type(self).__module__.rpartition('.')[0]}.{type(self).__name__}: {state}>"


class _Inherited:
    """Stands for what an object of a parent process refers to."""

    def __getattr__(self, name: str) -> typing.NoReturn:
        raise ValueError("the object was made by the parent process, before fork()")


def _disown(resource: Resource) -> None:
    for child in resource._living_children():
        _disown(child)
    resource._closed = True
    if "_raw" in vars(resource):
        vars(resource)["_raw"] = _Inherited()


def _forget_all() -> None:
    """In a forked child: what it inherits belongs to the parent, whose threads may have held the lock."""
    global _lock, _released
    _lock = threading.RLock()
    _released = threading.Condition(_lock)
    for root in list(_roots):
        _disown(root)


os.register_at_fork(after_in_child=_forget_all)


@atexit.register
def _close_all() -> None:
    """Closes the remaining objects while the interpreter is still intact, also if some raise exceptions."""
    with contextlib.ExitStack() as closing:
        for root in list(_roots):
            closing.callback(root.close)
