# SPDX-License-Identifier: BSD-3-Clause
"""Registered memory, and descriptions of the memory of peers."""
from __future__ import annotations

from viaduct import _rpma
from viaduct.memory import Buffer, Pinned, no_piece
from viaduct.rpma.constants import AdviseMr, AdviseMrFlags, MrUsage
from viaduct.rpma.objects import Object


class Piece:
    """A piece of a region of this process; operations transfer pieces. `region[0:8]` creates one.

    region    the region
    offset    of the first byte
    nbytes    the number of bytes
    """

    __slots__ = ("region", "offset", "nbytes")

    def __init__(self, region: MrLocal, offset: int, nbytes: int) -> None:
        """Does not check whether the piece is within the region; the completion of an operation reports that."""
        self.region = region
        self.offset = offset
        self.nbytes = nbytes

    @property
    def view(self) -> memoryview:
        """The bytes, as a memoryview."""
        return self.region.view[self.offset:self.offset + self.nbytes]

    def __repr__(self) -> str:
        return f"{self.region!r}[{self.offset}:{self.offset + self.nbytes}]"


def place_of(piece: Piece | None) -> tuple[int, int, int]:
    """Returns handle, offset and length, as the calls of C take them."""
    if piece is None:
        return (0, 0, 0)
    if not isinstance(piece, Piece) or not isinstance(piece.region, MrLocal):
        raise no_piece(piece) from None
    return (piece.region._handle, piece.offset, piece.nbytes)


_USAGES_THAT_WRITE = MrUsage.READ_DST | MrUsage.WRITE_DST | MrUsage.RECV
_USAGES_THAT_READ = MrUsage.READ_SRC | MrUsage.WRITE_SRC | MrUsage.SEND
_ALL_USAGES = _USAGES_THAT_WRITE | _USAGES_THAT_READ | MrUsage.FLUSH_TYPE_VISIBILITY | MrUsage.FLUSH_TYPE_PERSISTENT


class MrLocal(Object):
    """Registered memory. Created by Peer.mr_reg(); `region[8:16]` is a piece of it for operations.

    view     the bytes, as a memoryview
    usage    what it was registered for

    Operations do not keep their regions: close a region after they have completed.
    """

    _ended_by = "rpma_mr_dereg"

    def __init__(self, peer: Object, buffer: Buffer, usage: MrUsage | None) -> None:
        pinned = Pinned(buffer)
        if usage is None:
            usage = _USAGES_THAT_READ if pinned.readonly else _ALL_USAGES
        if pinned.readonly and usage & _USAGES_THAT_WRITE:
            raise TypeError(f"{usage!r} needs memory that may be written, and this is read-only") from None
        self._pinned = pinned
        self.usage = usage
        self.view = pinned.view
        super().__init__(self._make(_rpma.rpma_mr_reg, peer._handle, pinned.address, pinned.nbytes, usage), peer)

    def _released(self) -> None:
        if not self._own.failed:  # else peers may still access the memory
            self._pinned.release()
        super()._released()

    def dereg(self) -> None:
        """Deregisters the memory. Operations that use it fail, also those in progress and those of peers."""
        self._delete()

    def __len__(self) -> int:
        return self._pinned.nbytes

    def _description(self) -> str:
        return f"{len(self)} bytes, {self.usage!s}"

    def __getitem__(self, part: slice) -> Piece:
        """Returns a piece of the region. Raises IndexError if the slice is not within the region, ValueError if it
        has a step."""
        start, stop = self._pinned.extent(part)
        return Piece(self, start, stop - start)

    @property
    def descriptor(self) -> bytes:
        """The description of the region for peers, 21 bytes: see MrRemote. It gives access to the memory."""
        return _rpma.rpma_mr_get_descriptor(self._handle)

    @property
    def descriptor_size(self) -> int:
        """The length of the descriptor, 21 bytes."""
        return _rpma.rpma_mr_get_descriptor_size(self._handle)

    @property
    def ptr(self) -> int:
        """The address of the memory."""
        return _rpma.rpma_mr_get_ptr(self._handle)

    @property
    def size(self) -> int:
        """The size of the memory in bytes."""
        return _rpma.rpma_mr_get_size(self._handle)

    def advise(self, offset: int, length: int, advice: AdviseMr, flags: AdviseMrFlags = AdviseMrFlags(0)) -> None:
        """Announces how a part of the region will be used. Raises Error: INVAL (the part is not within the region, the
        usage does not allow the advice, or a flag is unknown), NOSUPP (the advice is unknown)."""
        _rpma.rpma_mr_advise(self._handle, offset, length, advice, flags)


class MrRemote(Object):
    """The description of a region of a peer, which Conn.read(), Conn.write() and other operations access."""

    _ended_by = "rpma_mr_remote_delete"

    @classmethod
    def from_descriptor(cls, descriptor: Buffer) -> MrRemote:
        """Creates the description from MrLocal.descriptor of the peer; bytes that follow it are ignored. Raises
        Error(INVAL) if it is too short or damaged."""
        return cls(cls._make(_rpma.rpma_mr_remote_from_descriptor, bytes(memoryview(descriptor))))

    def delete(self) -> None:
        """Deletes the description. The memory stays registered."""
        self._delete()

    @property
    def size(self) -> int:
        """The size of the memory in bytes."""
        return _rpma.rpma_mr_remote_get_size(self._handle)

    @property
    def flush_type(self) -> MrUsage:
        """The flushes that the region allows: FLUSH_TYPE_VISIBILITY, FLUSH_TYPE_PERSISTENT."""
        return MrUsage(_rpma.rpma_mr_remote_get_flush_type(self._handle))
