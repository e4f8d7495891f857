# SPDX-License-Identifier: BSD-3-Clause
"""The base classes of the objects of librpma."""
from __future__ import annotations

import typing

from viaduct import _rpma
from viaduct._lifetime import Resource

T = typing.TypeVar("T")
CLOSED = 1  # no object has this handle, so that calls on a closed object give INVAL


class Object(Resource):
    """An object of librpma, known by its handle."""

    _ended_by: str  # the function of C that deletes the object
    _handle = CLOSED

    def __init__(self, handle: int, *parents: Resource) -> None:
        self._handle = handle
        super().__init__(*parents)

    def _take(self) -> int:
        """Takes the handle away, so that no other call uses it while the object is being deleted."""
        handle, self._handle = self._handle, CLOSED
        return handle

    def _end(self, handle: int) -> None:
        getattr(_rpma, self._ended_by)(handle)

    def _release(self) -> None:
        handle = self._take()
        if handle != CLOSED:
            self._end(handle)

    def _delete(self) -> None:
        """Deletes the object with the call of C, and raises its errors. The object is gone even then."""
        self._end_by(lambda: self._end_anyhow(self._end))

    def _end_anyhow(self, end: typing.Callable[[int], T]) -> T:
        try:
            return end(self._take())
        except BaseException:
            self._released()
            raise


class Configuration(Object):
    """The base class of the configurations."""

    def delete(self) -> None:
        """Deletes the configuration; same as close()."""
        self._delete()


def handle_of(what: Object | None) -> int:
    return 0 if what is None else what._handle
