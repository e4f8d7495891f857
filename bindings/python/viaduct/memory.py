# SPDX-License-Identifier: BSD-3-Clause
"""Memory to be registered with a device."""
from __future__ import annotations

import contextlib
import numbers
import operator
import typing

from viaduct import _core
from viaduct._arguments import checked

Buffer = typing.Any  # anything with the buffer protocol: bytearray, memoryview, mmap, array, numpy.ndarray ...


@checked
def alloc(size: int) -> memoryview:
    """Allocates memory that other processes of this host can map.

    With the loopback backend, peers read and write such memory directly, which is faster than with any other memory.
    Returns a memoryview of `size` bytes, which are zero and start at a page boundary. The memory is freed when the
    memoryview and all slices of it are gone. Raises MemoryError if there is not enough memory, ValueError if `size`
    is 0.
    """
    return _core.alloc(size)


def buffer_of(memory: Buffer | int) -> Buffer:
    """Returns a buffer itself; for a number, that many bytes of new memory."""
    return alloc(int(memory)) if isinstance(memory, numbers.Integral) else memory


def no_piece(thing: object) -> TypeError:
    """The exception for something that is used as a piece of a region and is none."""
    return TypeError(f"expected a piece of a memory region, such as region[0:8], not {type(thing).__name__}")


def sequence_of(pieces: typing.Any, kind: type, element: type = tuple) -> typing.Sequence[typing.Any]:
    """Returns one piece, which is of that kind, or several as a sequence. Raises TypeError for what is no piece."""
    if isinstance(pieces, kind):
        return (pieces,)
    if not isinstance(pieces, (tuple, list)) and not isinstance(pieces, typing.Sequence):
        raise no_piece(pieces) from None
    for piece in pieces:
        if not isinstance(piece, element):
            # Text, and the numbers of one piece, are sequences, too.
            alone = not isinstance(pieces, list) and all(isinstance(item, (int, str)) for item in pieces)
            raise no_piece(pieces if alone else piece) from None
    return pieces


class Pinned:
    """A buffer that can neither be moved nor resized until release().

    view       the bytes, as a memoryview, for the program, which may release it
    pin        the same, for the package
    address    the address of the first byte
    nbytes     the number of bytes
    """

    def __init__(self, buffer: Buffer) -> None:
        """Raises TypeError if the object has no buffer, BufferError if the buffer is not contiguous."""
        self.address, self.pin = _core.pin(buffer)
        self.view = self.pin[:]
        self.nbytes = self.pin.nbytes

    @property
    def readonly(self) -> bool:
        """Whether the memory is read-only. Such memory can be sent from, and peers can read it."""
        return self.pin.readonly

    def extent(self, part: slice) -> tuple[int, int]:
        """Returns the start and the end of a slice as byte offsets. Unlike slices of a memoryview, which become
        shorter, raises IndexError if the slice is not within the buffer; ValueError if it has a step."""
        if not isinstance(part, slice):
            raise TypeError(f"a region takes a slice, such as region[0:8], not {type(part).__name__}") from None
        if part.step is not None and part.step != 1:
            raise ValueError("a slice with a step is no piece")
        given = (0 if part.start is None else operator.index(part.start),
                 self.nbytes if part.stop is None else operator.index(part.stop))
        start, stop = (offset + self.nbytes if offset < 0 else offset for offset in given)
        if not (0 <= start <= self.nbytes and 0 <= stop <= self.nbytes):
            raise IndexError(f"the slice {given[0]}:{given[1]} is not within the {self.nbytes} bytes of the region")
        return start, max(start, stop)

    def release(self) -> None:
        """Releases the buffer. It stays pinned while other memoryviews or regions still use it."""
        for view in self.view, self.pin:
            with contextlib.suppress(BufferError):  # another region uses the view; the last one releases it
                view.release()
