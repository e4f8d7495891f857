# SPDX-License-Identifier: BSD-3-Clause
"""Protection tags and registered memory."""
from __future__ import annotations

import dataclasses
import typing

from viaduct import _vipl
from viaduct.memory import Pinned
from viaduct.vipl.constants import Operation
from viaduct.vipl.descriptors import Descriptor, DescriptorPool, Remote, Segment, Segments
from viaduct.vipl.objects import Handled

if typing.TYPE_CHECKING:
    from viaduct.vipl.nics import Nic


class Ptag(Handled):
    """A protection tag: VIs use memory of their own tag only. Nic.create_ptag() makes it."""

    def __init__(self, nic: Nic, handle: int) -> None:
        super().__init__(handle, nic)
        self.nic = nic
        self._pool = DescriptorPool()
        self._chunks: list[Segment] = []
        nic._ptags[handle] = self

    def destroy(self) -> None:
        """VipDestroyPtag. Raises Error(ERROR_RESOURCE) where a VI or a region uses it; close() closes these first."""
        if not self._children:
            self._deregister_chunks()
        _vipl.VipDestroyPtag(self.nic.handle, self.handle)
        self._released()

    def _release(self) -> None:
        self._deregister_chunks()
        _vipl.VipDestroyPtag(self.nic.handle, self.handle)

    def descriptor(self, segments: Segments = (), operation: Operation = Operation.SENDRECV,
                   remote: Remote | None = None, immediate: int | None = None, fence: bool = False) -> Descriptor:
        """A descriptor in memory of this tag's own, which is used again when the descriptor is no more; the arguments
        are those of Descriptor.set()."""
        count = 1 if isinstance(segments, Segment) else len(segments)
        descriptor = self._pool.descriptor(count + (remote is not None), self._register_chunk)
        return descriptor.set(segments, operation, remote, immediate, fence)

    def _register_chunk(self, view: memoryview) -> Segment:
        pinned = Pinned(view)
        raw = _vipl.VIP_MEM_ATTRIBUTES()
        raw.Ptag = self.handle
        handle = _vipl.VipRegisterMem(self.nic.handle, pinned.address, pinned.nbytes, raw)
        self._chunks.append(Segment(pinned.address, handle, pinned.view))
        return self._chunks[-1]

    def _deregister_chunks(self) -> None:
        self._pool = DescriptorPool()
        while self._chunks:
            chunk = self._chunks.pop()
            _vipl.VipDeregisterMem(self.nic.handle, chunk.address, chunk.handle)


@dataclasses.dataclass(frozen=True)
class MemAttributes:
    """What a region is to be (VIP_MEM_ATTRIBUTES): its protection tag (None: that of the NIC), and what peers may
    do."""
    ptag: Ptag | None = None
    enable_rdma_write: bool = False
    enable_rdma_read: bool = False


class Region(Handled):
    """Registered memory. Nic.register_mem() makes it.

    handle      its memory handle, which names it at peers, too
    view        its bytes
    remote      what peers need to reach it: send them its two numbers

    `region[8:16]` is a segment for descriptors.
    """

    def __init__(self, nic: Nic, pinned: Pinned, attributes: MemAttributes) -> None:
        self.nic = nic
        self._pinned = pinned
        self._ptag = attributes.ptag or nic.ptag
        raw = self._to_raw(attributes, self._ptag)
        super().__init__(_vipl.VipRegisterMem(nic.handle, pinned.address, pinned.nbytes, raw), nic, self._ptag)
        self.view = pinned.view

    def deregister(self) -> None:
        """VipDeregisterMem. Operations that come later, or are under way, end with a protection error. The same as
        close(), but with errors."""
        _vipl.VipDeregisterMem(self.nic.handle, self._pinned.address, self.handle)
        self._released()
        self._pinned.release()

    def _release(self) -> None:
        _vipl.VipDeregisterMem(self.nic.handle, self._pinned.address, self.handle)
        self._pinned.release()

    @property
    def remote(self) -> Remote:
        return Remote(self._pinned.address, self.handle)

    def __len__(self) -> int:
        return self._pinned.nbytes

    def __getitem__(self, part: slice) -> Segment:
        """Raises ValueError for steps."""
        start, stop = self._pinned.extent(part)
        return Segment(self._pinned.address + start, self.handle, self.view[start:stop])

    def descriptor(self, offset: int, segments: Segments = (), operation: Operation = Operation.SENDRECV,
                   remote: Remote | None = None, immediate: int | None = None, fence: bool = False) -> Descriptor:
        """A descriptor in this region, at a multiple of 64 bytes, with room for as many segments as it is given, or
        one; the arguments are those of Descriptor.set(). Ptag.descriptor() finds memory by itself. Raises ValueError
        where there is no room, or the place is not aligned."""
        count = 1 if isinstance(segments, Segment) else len(segments)
        place = self[offset:offset + 32 + 16 * max(count + (remote is not None), 1)]
        return Descriptor(place).set(segments, operation, remote, immediate, fence)

    def query(self) -> MemAttributes:
        """VipQueryMem."""
        raw = _vipl.VipQueryMem(self.nic.handle, self._pinned.address, self.handle)
        return MemAttributes(self.nic._ptags.get(raw.Ptag), bool(raw.EnableRdmaWrite), bool(raw.EnableRdmaRead))

    def set_attributes(self, attributes: MemAttributes) -> None:
        """VipSetMemAttributes. Raises Error: INVALID_PTAG, ERROR_NOT_SUPPORTED (by RDMA devices)."""
        ptag = attributes.ptag or self.nic.ptag
        _vipl.VipSetMemAttributes(self.nic.handle, self._pinned.address, self.handle, self._to_raw(attributes, ptag))
        self._depend_on(self.nic, ptag)
        self._ptag = ptag

    def _to_raw(self, attributes: MemAttributes, ptag: Ptag) -> _vipl.VIP_MEM_ATTRIBUTES:
        if attributes.enable_rdma_write and self._pinned.readonly:
            raise ValueError("the memory may not be written")
        raw = _vipl.VIP_MEM_ATTRIBUTES()
        raw.Ptag = ptag.handle
        raw.EnableRdmaWrite = attributes.enable_rdma_write
        raw.EnableRdmaRead = attributes.enable_rdma_read
        return raw
