# SPDX-License-Identifier: BSD-3-Clause
"""The base classes of the objects of DAT."""
from __future__ import annotations

import typing
import weakref

from viaduct import _core, _dat, _lifetime
from viaduct.dat.constants import HandleType, IbOp, ReturnType
from viaduct.errors import Error

_objects: weakref.WeakValueDictionary[int, DatObject] = weakref.WeakValueDictionary()


def object_of(handle: int) -> DatObject | None:
    """Returns the object that has a handle; None if it is closed, or unknown."""
    found = _objects.get(handle)
    return None if found is None or found.closed else found


def handle_of(thing: DatObject | None) -> int:
    """Returns the handle of an object; DAT_HANDLE_NULL for None."""
    return 0 if thing is None else thing.handle


class DatObject(_lifetime.Resource):
    """An object of DAT.

    handle     its handle, for viaduct._dat; not valid when the object is closed
    context    64 bits for the program
    """

    _ended_by: str  # the function of the API that ends the object
    _end_arguments: tuple[object, ...] = ()  # of that function, after the handle

    def __init__(self, own: _core.Owned, *parents: DatObject | None) -> None:
        self._own = own
        self.handle = own.handle
        _objects[self.handle] = self
        super().__init__(*(parent for parent in parents if parent is not None))
        own.hand_over()

    @classmethod
    def _make(cls, create: typing.Callable[..., object], *arguments: object, index: int = -1) -> _core.Owned:
        """Makes a call that creates an object of this class; its results contain the handle at `index`. The object is
        ended if none takes it over. int(handle): the library has created it."""
        return _core.Owned(_dat, cls._ended_by, create, *arguments, after=cls._end_arguments, index=index)

    def _release(self) -> None:
        try:
            self._own.end_once()
        except Error as error:
            if error.code is not ReturnType.INVALID_HANDLE:  # the library has ended it already
                raise

    def free(self) -> None:
        """Ends the object, as close() does, but only if nothing uses it. Raises Error(INVALID_STATE) otherwise."""
        self._end_by(self._own.end)

    @property
    def context(self) -> int:
        """64 bits for the program (dat_get_consumer_context, dat_set_consumer_context); 0 at first."""
        return _dat.dat_get_consumer_context(self.handle)

    @context.setter
    def context(self, context: int) -> None:
        _dat.dat_set_consumer_context(self.handle, context)

    @property
    def handle_type(self) -> HandleType:
        """The kind of the object (dat_get_handle_type)."""
        return HandleType(_dat.dat_get_handle_type(self.handle))

    def extension_op(self, operation: IbOp | int, *arguments: int) -> None:
        """Calls an operation of an extension (dat_extension_op). Arguments are numbers and addresses of at most 64
        bits.

        Raises Error(NOT_IMPLEMENTED) if the provider does not have the operation, ValueError for more than 8 arguments.
        """
        _dat.dat_extension_op(self.handle, operation, list(arguments))


class Counting(DatObject):
    """An object with counters, which the InfiniBand extension reports."""

    _counters: dict[str, int]  # numbers of the counters by name

    def query_counters(self, reset: bool = False) -> dict[str, int]:
        """Returns all counters by their names in C, without the common prefix: {"POST_SEND": 3, ...}. reset: sets them
        to 0 afterwards."""
        values = _dat.dat_ib_query_counters(self.handle, self._counters["ALL_COUNTERS"], reset)
        return {name: values[number] for name, number in self._counters.items() if name != "ALL_COUNTERS"}

    def query_counter(self, name: str, reset: bool = False) -> int:
        """Returns one counter. Raises KeyError if there is none of this name."""
        number = self._counters[name]
        return _dat.dat_ib_query_counters(self.handle, number, reset)[number]

    def print_counters(self, name: str = "ALL_COUNTERS", reset: bool = False) -> None:
        """Prints one counter, or all of them, to standard output."""
        _dat.dat_ib_print_counters(self.handle, self._counters[name], reset)


def counters_of(prefix: str) -> dict[str, int]:
    """Returns the constants with a prefix, by the rest of their names."""
    return {name[len(prefix):]: getattr(_dat, name) for name in vars(_dat) if name.startswith(prefix)}
