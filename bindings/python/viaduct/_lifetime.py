# SPDX-License-Identifier: BSD-3-Clause
"""Objects that are closed in the right order, whoever closes them."""
from __future__ import annotations

import atexit
import threading
import types
import typing
import weakref

_lock = threading.RLock()  # guards the tree of resources: who is closed, and who has which children
_released = threading.Condition(_lock)  # a resource has left the tree
_roots: weakref.WeakSet[Resource] = weakref.WeakSet()

Self = typing.TypeVar("Self", bound="Resource")


class Resource:
    """Something that has to be given back. It keeps its parents, from which it was made; closing one closes it first.

    Thread-safe: of several threads that close it, one does.
    """

    _closed = True  # until __init__ has run
    _closer = 0  # the thread that gives it back
    _abandoned = False  # nothing refers to it any more but what was made from it

    def __init__(self, *parents: Resource) -> None:
        self._parents = parents
        self._children: dict[int, weakref.ref[Resource]] = {}  # oldest first
        with _lock:
            for parent in parents:
                if parent._closed:
                    raise ValueError(f"the {type(parent).__name__} is closed")
            for parent in parents:
                parent._children[id(self)] = weakref.ref(self)
            if not parents:
                _roots.add(self)
            self._closed = False

    @property
    def closed(self) -> bool:
        """Whether it is closed: its own calls fail then."""
        return self._closed

    def close(self) -> None:
        """Closes it, and before it all that was made from it, the newest first. Closing twice does nothing."""
        while True:
            with _lock:
                if self._closed:
                    return
                children = self._living_children()
                to_close = [child for child in children if not child._closed]
                if not to_close and not any(child._closing_elsewhere() for child in children):
                    self._closed = True  # from now on there are no new children
                    self._closer = threading.get_ident()
                    break
                if not to_close:
                    _released.wait()
            for child in to_close:
                child.close()
        try:
            self._release()
        finally:
            self._released()

    def _living_children(self) -> list[Resource]:
        """What was made from it and is not given back, the newest first."""
        known = [reference() for reference in reversed(self._children.values())]
        return [child for child in known if child is not None]

    def _closing_elsewhere(self) -> bool:
        """Whether another thread is just giving it back. Who closes a parent waits for that; who closes it, too, does
        not: that may be a handler of its own, for which the first thread waits."""
        return self._closer not in (0, threading.get_ident())

    def _release(self) -> None:
        """Gives the resource back, whatever state it is in. For subclasses."""

    def _released(self) -> None:
        """Notes that the resource was given back, and closes the parents that only waited for this."""
        with _lock:
            self._closed = True
            for parent in self._parents:
                parent._children.pop(id(self), None)
            _released.notify_all()
        for parent in self._parents:
            if parent._abandoned and not parent._children:
                parent.close()

    def _depend_on(self, *parents: Resource) -> None:
        """Is made from these from now on, and closed before each of them."""
        with _lock:
            if self._closed:  # by another thread: who closes one of these must not wait for it
                return
            for former in self._parents:
                former._children.pop(id(self), None)
            self._parents = tuple(dict.fromkeys(parents))
            for parent in self._parents:
                parent._children[id(self)] = weakref.ref(self)

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: types.TracebackType | None) -> None:
        self.close()

    def __del__(self) -> None:
        # The garbage collector takes back parents and children that refer to each other in any order. Those whose
        # children are not to be found any more are closed with the last of these.
        with _lock:
            self._abandoned = not self._closed and any(child() is None for child in self._children.values())
        if not self._abandoned:
            self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__module__}.{type(self).__name__}{' (closed)' if self._closed else ''}>"


@atexit.register
def _close_all() -> None:
    """Closes what is left while the interpreter is still whole."""
    for root in list(_roots):
        root.close()
