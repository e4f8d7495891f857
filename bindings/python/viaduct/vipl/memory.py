# SPDX-License-Identifier: BSD-3-Clause
"""Protection tags and registered memory."""
from __future__ import annotations

import dataclasses
import typing

from viaduct import _core, _vipl
from viaduct._arguments import quick
from viaduct.memory import Pinned
from viaduct.vipl.constants import Operation
from viaduct.vipl.descriptors import Descriptor, DescriptorPool, Remote, Segment, Segments, segments_of
from viaduct.vipl.objects import Handled

if typing.TYPE_CHECKING:
    from viaduct.vipl.nics import Nic


def _registered(nic: Nic, pinned: Pinned, attributes: _vipl.VIP_MEM_ATTRIBUTES) -> _core.Owned:
    return _core.Owned(_vipl, "VipDeregisterMem", _vipl.VipRegisterMem, nic.handle, pinned.address, pinned.nbytes,
                       attributes, before=(nic.handle, pinned.address))


class Ptag(Handled):
    """A protection tag: a VI uses memory of its own tag only. Created by Nic.create_ptag()."""

    def __init__(self, nic: Nic) -> None:
        own = _core.Owned(_vipl, "VipDestroyPtag", _vipl.VipCreatePtag, nic.handle, before=(nic.handle,))
        self.nic = nic
        self._pool = DescriptorPool()
        self._chunks: list[tuple[_core.Owned, Pinned]] = []  # what is registered for descriptors
        nic._ptags[own.handle] = self
        super().__init__(own, nic)

    def destroy(self) -> None:
        """VipDestroyPtag. Raises Error(ERROR_RESOURCE) if a VI or a region uses the tag; close() closes these first."""
        self._end_by(self._destroy)

    def _destroy(self) -> None:
        if not self._place.has_children:
            self._deregister_chunks()
        self._own.end()

    def _release(self) -> None:
        self._deregister_chunks()
        super()._release()

    @quick
    def descriptor(self, segments: Segments = (), operation: Operation = Operation.SENDRECV,
                   remote: Remote | None = None, immediate: int | None = None, fence: bool = False) -> Descriptor:
        """Returns a new descriptor, in memory that the tag registers for descriptors. The arguments are those of
        Descriptor.set(). Raises Error(ERROR_RESOURCE) if there is no memory."""
        count = len(segments_of(segments))
        descriptor = self._pool.descriptor(count + (remote is not None), self._register_chunk)
        return descriptor.set(segments, operation, remote, immediate, fence)

    def _register_chunk(self, view: memoryview) -> Segment:
        pinned = Pinned(view)
        raw = _vipl.VIP_MEM_ATTRIBUTES()
        raw.Ptag = self.handle
        own = _registered(self.nic, pinned, raw)
        self._chunks.append((own, pinned))
        own.hand_over()
        return Segment(pinned.address, own.handle, pinned.view)

    def _deregister_chunks(self) -> None:
        self._pool = DescriptorPool()
        while self._chunks:
            own, _ = chunk = self._chunks[-1]
            own.end_once()
            self._chunks.remove(chunk)


@dataclasses.dataclass(frozen=True)
class MemAttributes:
    """The attributes of a region (VIP_MEM_ATTRIBUTES).

    ptag                 the protection tag; None: that of the NIC
    enable_rdma_write    whether peers may write to it
    enable_rdma_read     whether peers may read it
    """
    ptag: Ptag | None = None
    enable_rdma_write: bool = False
    enable_rdma_read: bool = False


class Region(Handled):
    """Registered memory. Created by Nic.register_mem(); close() is VipDeregisterMem.

    handle    the memory handle, which identifies the region, also to peers
    view      the bytes, as a memoryview
    remote    what a peer needs to access the region

    `region[8:16]` is a segment for descriptors. Posted descriptors do not keep their regions: close a region after
    they have completed.
    """

    def __init__(self, nic: Nic, pinned: Pinned, attributes: MemAttributes) -> None:
        self.nic = nic
        self._pinned = pinned
        self._ptag = attributes.ptag or nic.ptag
        raw = self._to_raw(attributes, self._ptag)
        self.view = pinned.view
        super().__init__(_registered(nic, pinned, raw), nic, self._ptag)

    def deregister(self) -> None:
        """VipDeregisterMem. Ends all use of the memory: operations in progress, and later ones, complete with a
        protection error. Raises Error(INVALID_PARAMETER) if the region is closed."""
        self._end_by(self._own.end)

    def _released(self) -> None:
        self._pinned.release()
        super()._released()

    @property
    def remote(self) -> Remote:
        """The address and the handle of the region, for peers."""
        return Remote(self._pinned.address, self.handle)

    def __len__(self) -> int:
        return self._pinned.nbytes

    def __getitem__(self, part: slice) -> Segment:
        """Returns a segment. Raises IndexError if the slice is not within the region, ValueError if it has a
        step."""
        start, stop = self._pinned.extent(part)
        return Segment(self._pinned.address + start, self.handle, self._pinned.pin[start:stop])

    def _description(self) -> str:
        return f"{len(self)} bytes, handle {self.handle}"

    def descriptor(self, offset: int, segments: Segments = (), operation: Operation = Operation.SENDRECV,
                   remote: Remote | None = None, immediate: int | None = None, fence: bool = False) -> Descriptor:
        """Returns a new descriptor in this region, at `offset` bytes, with room for its segments, at least one.

        The other arguments are those of Descriptor.set(). Raises ValueError if there is too little room, or the
        address is not a multiple of 64.
        """
        count = len(segments_of(segments))
        end = offset + 32 + 16 * max(count + (remote is not None), 1)
        if not 0 <= offset < end <= len(self):
            raise ValueError(f"a descriptor from {offset} to {end} is not within the {len(self)} bytes of the region")
        return Descriptor(self[offset:end]).set(segments, operation, remote, immediate, fence)

    def query(self) -> MemAttributes:
        """VipQueryMem. Returns the attributes."""
        raw = _vipl.VipQueryMem(self.nic.handle, self._pinned.address, self.handle)
        return MemAttributes(self.nic._ptags.get(raw.Ptag), bool(raw.EnableRdmaWrite), bool(raw.EnableRdmaRead))

    def set_attributes(self, attributes: MemAttributes) -> None:
        """VipSetMemAttributes. Changes all attributes or, if it fails, none. Raises Error: INVALID_PTAG,
        ERROR_NOT_SUPPORTED (RDMA devices); ValueError if peers may write to read-only memory."""
        ptag = attributes.ptag or self.nic.ptag
        _vipl.VipSetMemAttributes(self.nic.handle, self._pinned.address, self.handle, self._to_raw(attributes, ptag))
        self._depend_on(self.nic, ptag)
        self._ptag = ptag

    def _to_raw(self, attributes: MemAttributes, ptag: Ptag) -> _vipl.VIP_MEM_ATTRIBUTES:
        if attributes.enable_rdma_write and self._pinned.readonly:
            raise ValueError("the memory is read-only")
        raw = _vipl.VIP_MEM_ATTRIBUTES()
        raw.Ptag = ptag.handle
        raw.EnableRdmaWrite = attributes.enable_rdma_write
        raw.EnableRdmaRead = attributes.enable_rdma_read
        return raw
