# SPDX-License-Identifier: BSD-3-Clause
"""The base classes of the objects of librpma."""
from __future__ import annotations

import typing

from viaduct import _core, _rpma
from viaduct._lifetime import Resource

T = typing.TypeVar("T")
CLOSED = 1  # no object has this handle, so that calls on a closed object give INVAL


class Object(Resource):
    """An object of librpma, known by its handle."""

    _ended_by: str  # the function of C that deletes the object
    _handle = CLOSED

    def __init__(self, own: _core.Owned, *parents: Resource) -> None:
        self._own = own
        self._handle = own.handle
        super().__init__(*parents)
        own.hand_over()

    @classmethod
    def _make(cls, create: typing.Callable[..., object], *arguments: object) -> _core.Owned:
        """Makes a call of C that creates an object of this class. It is deleted if none takes it over."""
        return _core.Owned(_rpma, cls._ended_by, create, *arguments, anyhow=True)

    def _hide(self) -> None:
        """Takes the handle away, so that no other call uses it while the object is being deleted."""
        self._handle = CLOSED

    def _show(self) -> None:
        self._handle = self._own.handle

    def _end_anyhow(self, end: typing.Callable[[], T]) -> T:
        """Makes a call that ends the object even if it fails."""
        try:
            self._hide()
            return end()
        finally:
            if self._own.ended:
                self._released()
            else:  # it was interrupted, or interrupts a call of this thread that uses the object
                self._show()

    def _release(self) -> None:
        self._end_anyhow(self._own.end_once)

    def _delete(self) -> None:
        """Deletes the object with the call of C, and raises its errors. The object is gone even then."""
        if self._own.ended:
            getattr(_rpma, self._ended_by)(CLOSED)
        self._end_by(lambda: self._end_anyhow(self._own.end))


class Configuration(Object):
    """The base class of the configurations."""

    def delete(self) -> None:
        """Deletes the configuration; same as close()."""
        self._delete()


def handle_of(what: Object, kind: type[Object]) -> int:
    """Returns the handle of an object. C cannot tell the kinds of objects apart."""
    if not isinstance(what, kind):
        raise TypeError(f"expected {kind.__name__}, not {type(what).__name__}")
    return what._handle


def handle_or_null(what: Object | None, kind: type[Object]) -> int:
    return 0 if what is None else handle_of(what, kind)
