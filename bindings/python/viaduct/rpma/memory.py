# SPDX-License-Identifier: BSD-3-Clause
"""Registered memory, and descriptions of the memory of others."""
from __future__ import annotations

from viaduct import _rpma
from viaduct.memory import Buffer, Pinned
from viaduct.rpma.constants import AdviseMr, AdviseMrFlags, MrUsage
from viaduct.rpma.objects import Object


class Piece:
    """A piece of a region of this process: what operations move. `region[0:8]` makes it.

    region, offset, nbytes   where it is
    """

    __slots__ = ("region", "offset", "nbytes")

    def __init__(self, region: MrLocal, offset: int, nbytes: int) -> None:
        """Neither is compared with the size of the region: the completion of an operation tells of that."""
        self.region = region
        self.offset = offset
        self.nbytes = nbytes

    @property
    def view(self) -> memoryview:
        """Its bytes."""
        return self.region.view[self.offset:self.offset + self.nbytes]

    def __repr__(self) -> str:
        return f"{self.region!r}[{self.offset}:{self.offset + self.nbytes}]"


def place_of(piece: Piece | None) -> tuple[int, int, int]:
    """Handle, offset and length, as the calls of C take them."""
    return (0, 0, 0) if piece is None else (piece.region._handle, piece.offset, piece.nbytes)

_USAGES_THAT_WRITE = MrUsage.READ_DST | MrUsage.WRITE_DST | MrUsage.RECV
_USAGES_THAT_READ = MrUsage.READ_SRC | MrUsage.WRITE_SRC | MrUsage.SEND
_ALL_USAGES = _USAGES_THAT_WRITE | _USAGES_THAT_READ | MrUsage.FLUSH_TYPE_VISIBILITY | MrUsage.FLUSH_TYPE_PERSISTENT


class MrLocal(Object):
    """Registered memory. Peer.mr_reg() makes it; `region[8:16]` is a piece of it for operations.

    view     its bytes, as a memoryview; received data are found there
    usage    what it was registered for
    """

    def __init__(self, peer: Object, buffer: Buffer, usage: MrUsage | None) -> None:
        pinned = Pinned(buffer)
        if usage is None:
            usage = _USAGES_THAT_READ if pinned.readonly else _ALL_USAGES
        if pinned.readonly and usage & _USAGES_THAT_WRITE:
            raise TypeError(f"the memory is read-only, which {usage!r} does not do with")
        self._pinned = pinned
        self.usage = usage
        self.view = pinned.view
        super().__init__(_rpma.rpma_mr_reg(peer._handle, pinned.address, pinned.nbytes, usage), peer)

    def _end(self, handle: int) -> None:
        _rpma.rpma_mr_dereg(handle)
        self._pinned.release()

    def dereg(self) -> None:
        """Ends every use of the memory, also by others; what they have under way fails."""
        self._delete()

    def __len__(self) -> int:
        return self._pinned.nbytes

    def __getitem__(self, part: slice) -> Piece:
        """Raises ValueError for steps."""
        start, stop = self._pinned.extent(part)
        return Piece(self, start, stop - start)

    @property
    def descriptor(self) -> bytes:
        """The region for other hosts: see MrRemote. It gives access to the memory: send it over trusted ways."""
        return _rpma.rpma_mr_get_descriptor(self._handle)

    @property
    def descriptor_size(self) -> int:
        """How long the descriptor is: 21."""
        return _rpma.rpma_mr_get_descriptor_size(self._handle)

    @property
    def ptr(self) -> int:
        """The address of the memory."""
        return _rpma.rpma_mr_get_ptr(self._handle)

    @property
    def size(self) -> int:
        """How much memory it is."""
        return _rpma.rpma_mr_get_size(self._handle)

    def advise(self, offset: int, length: int, advice: AdviseMr, flags: AdviseMrFlags = AdviseMrFlags(0)) -> None:
        """Says that a part of the region will be used soon. Raises Error(INVAL) where the part is not in the region,
        the usage does not allow the advice, or a flag is unknown, Error(NOSUPP) for unknown advice."""
        _rpma.rpma_mr_advise(self._handle, offset, length, advice, flags)


class MrRemote(Object):
    """The description of a region of another process: what Conn.read(), Conn.write() and their kin reach."""

    def __init__(self, handle: int) -> None:
        super().__init__(handle)

    @classmethod
    def from_descriptor(cls, descriptor: Buffer) -> MrRemote:
        """What MrLocal.descriptor is at the other side; what follows it is left. Raises Error(INVAL) for anything
        else that shows."""
        return cls(_rpma.rpma_mr_remote_from_descriptor(bytes(descriptor)))

    def _end(self, handle: int) -> None:
        _rpma.rpma_mr_remote_delete(handle)

    def delete(self) -> None:
        """Deletes the description; the memory stays what it is."""
        self._delete()

    @property
    def size(self) -> int:
        """How much memory it is."""
        return _rpma.rpma_mr_remote_get_size(self._handle)

    @property
    def flush_type(self) -> MrUsage:
        """Which flushes the region allows: FLUSH_TYPE_VISIBILITY, FLUSH_TYPE_PERSISTENT."""
        return MrUsage(_rpma.rpma_mr_remote_get_flush_type(self._handle))
