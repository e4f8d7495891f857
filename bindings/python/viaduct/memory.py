# SPDX-License-Identifier: BSD-3-Clause
"""Memory that is registered with a device."""
from __future__ import annotations

import contextlib
import typing

from viaduct import _core

__all__ = ["alloc", "Pinned", "Buffer"]

Buffer = typing.Any  # whatever has the buffer protocol: bytearray, memoryview, mmap, array, numpy.ndarray ...


def alloc(size: int) -> memoryview:
    """Zeroed, page-aligned memory of `size` bytes that other processes of this host can map: with the loopback backend
    peers write and read it directly, which is the fastest way. It lives as long as the memoryview or a part of it.
    Raises MemoryError where there is none, ValueError for a size of 0."""
    return _core.alloc(size)


class Pinned:
    """A buffer whose memory stays where it is, and as large as it is, until release().

    view       its bytes, as a memoryview
    address    of the first one
    nbytes     how many there are
    """

    def __init__(self, buffer: Buffer) -> None:
        """Raises TypeError where the object has no buffer, BufferError where it has one that is not contiguous."""
        self.address, self.view = _core.pin(buffer)
        self.nbytes = self.view.nbytes

    @property
    def readonly(self) -> bool:
        """Whether the memory may not be written: it can be sent from, and peers may read it."""
        return self.view.readonly

    def extent(self, part: slice) -> tuple[int, int]:
        """Where a part begins and ends, in bytes from the beginning. Raises ValueError for steps."""
        start, stop, step = part.indices(self.nbytes)
        if step != 1:
            raise ValueError("a piece has no gaps")
        return start, max(start, stop)

    def release(self) -> None:
        """Lets the buffer go. Parts of the view that others hold, or have registered, keep it where it is, too."""
        with contextlib.suppress(BufferError):  # another region of the view; the last one lets it go
            self.view.release()
