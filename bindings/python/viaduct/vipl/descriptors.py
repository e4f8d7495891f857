# SPDX-License-Identifier: BSD-3-Clause
"""Descriptors and the memory that contains them."""
from __future__ import annotations

import collections
import struct
import typing

from viaduct import _vipl
from viaduct._arguments import MISTAKES, explain
from viaduct.memory import alloc, sequence_of
from viaduct.vipl.constants import Operation, Status, StatusOperation


class Segment(typing.NamedTuple):
    """A piece of a region of this process (VIP_DATA_SEGMENT). `region[0:8]` creates one.

    address    of the first byte
    handle     memory handle of the region
    view       the bytes, as a memoryview
    """
    address: int
    handle: int
    view: memoryview


class Remote(typing.NamedTuple):
    """A location in a region of the peer (VIP_ADDRESS_SEGMENT).

    The process that has the region gets it from `region.remote`, and sends its two numbers to the peer. `remote +
    64` is the location 64 bytes later.
    """
    address: int
    handle: int

    def __add__(self, offset: object) -> Remote:
        if not isinstance(offset, int):
            return NotImplemented
        return Remote(self.address + offset, self.handle)


Segments = typing.Union[Segment, typing.Sequence[Segment]]


def segments_of(segments: Segments) -> tuple[Segment, ...]:
    """Returns one segment, or several, as a tuple. Raises TypeError if they are none."""
    return tuple(sequence_of(segments, Segment, Segment))


_SEGMENT_BYTES = 16  # of a segment; the control segment takes twice as many
_CONTROL = struct.Struct("=QIHHIIII")  # Next, NextHandle, SegCount, Control, Reserved, ImmediateData, Length, Status
_SEGMENT = struct.Struct("=QII")
_IMMEDIATE, _LENGTH, _STATUS = 5, 6, 7  # in 32-bit words

ERROR_MASK = Status(_vipl.VIP_STATUS_ERROR_MASK)

# Plain numbers, because operations on flags are slow.
_DONE_OR_ERROR = int(Status.DONE | ERROR_MASK)
_DONE = int(Status.DONE)
_OP_MASK = _vipl.VIP_STATUS_OP_MASK
_ALIGNMENT = _vipl.VIP_DESCRIPTOR_ALIGNMENT


class Descriptor:
    """A descriptor in registered memory (VIP_DESCRIPTOR). It is posted, and the same object is returned when it has
    completed.

    address          its address
    memory_handle    handle of the memory that contains it
    capacity         the number of segments for which it has room; `remote` needs one, too
    segments         what it transfers, as passed to set()
    writable         whether all segments may be written; read-only memory, such as bytes, can only be sent
    posted           whether it is on a queue

    Ptag.descriptor() and Region.descriptor() create descriptors. While a descriptor is on a queue it belongs to the
    library: the program neither changes it nor its segments. After it was returned it may be posted again, unchanged
    or after set().
    """

    def __init__(self, memory: Segment, give_back: typing.Callable[[Segment], None] | None = None) -> None:
        """`give_back` is called with the memory when the descriptor is deleted. Raises ValueError if the memory is
        read-only or not aligned."""
        if memory.address % _ALIGNMENT != 0 or memory.view.readonly:
            raise ValueError(f"a descriptor lies at a multiple of {_ALIGNMENT} bytes, in memory that may be written")
        self._memory = memory
        self._give_back = give_back
        self._words = memory.view[:_CONTROL.size].cast("I")
        self.address = memory.address
        self.memory_handle = memory.handle
        self.capacity = memory.view.nbytes // _SEGMENT_BYTES - 2
        self.segments: tuple[Segment, ...] = ()
        self.writable = True
        self.posted = False

    def __del__(self) -> None:
        give_back = getattr(self, "_give_back", None)  # missing if __init__ has raised
        if give_back is not None:
            give_back(self._memory)

    def set(self, segments: Segments = (), operation: Operation = Operation.SENDRECV, remote: Remote | None = None,
            immediate: int | None = None, fence: bool = False) -> Descriptor:
        """Rewrites the descriptor and returns it.

        segments     the data to send, or the memory to receive into
        operation    SENDRECV, RDMAWRITE or RDMAREAD
        remote       the memory of the peer that RDMA writes or reads
        immediate    immediate data, 32 bits, of a send or an RDMA write
        fence        start only when earlier RDMA reads are complete

        Raises ValueError if the descriptor is posted, has too little room, or would read into read-only memory.
        """
        if self.posted:
            raise ValueError("the descriptor is posted")
        chosen = segments_of(segments)
        count = len(chosen) + (remote is not None)
        if count > self.capacity:
            raise ValueError(f"the descriptor has room for {self.capacity} segments")
        writable = not any(segment.view.readonly for segment in chosen)
        if operation == Operation.RDMAREAD and not writable:
            raise ValueError("the memory is read-only")
        self.segments, self.writable = chosen, writable
        try:
            control = 0 | operation
            if immediate is not None:
                control |= _vipl.VIP_CONTROL_IMMEDIATE
            if fence:
                control |= _vipl.VIP_CONTROL_QFENCE
            length = sum(segment.view.nbytes for segment in chosen)
            memory = self._memory.view
            _CONTROL.pack_into(memory, 0, 0, 0, count, control, 0, immediate or 0, length, 0)
            offset = _CONTROL.size
            if remote is not None:
                _SEGMENT.pack_into(memory, offset, remote.address, remote.handle, 0)
                offset += _SEGMENT_BYTES
            for address, handle, view in chosen:
                _SEGMENT.pack_into(memory, offset, address, handle, view.nbytes)
                offset += _SEGMENT_BYTES
        except MISTAKES as error:
            explain(error, Descriptor.set, locals())
            raise
        return self

    @property
    def raw(self) -> _vipl.VIP_DESCRIPTOR:
        """The structure with the fields of C, for tests that need unusual values. It keeps the descriptor alive."""
        return _vipl.VIP_DESCRIPTOR.at(self.address, self)

    @property
    def status(self) -> Status:
        """The outcome of the descriptor; 0 before it has completed."""
        return Status(self._words[_STATUS] & ~_OP_MASK)

    @property
    def operation(self) -> StatusOperation:
        """The operation of the descriptor; valid when it has completed."""
        return StatusOperation(self._words[_STATUS] & _OP_MASK)

    @property
    def done(self) -> bool:
        """Whether it has completed without an error."""
        return self._words[_STATUS] & _DONE_OR_ERROR == _DONE

    @property
    def length(self) -> int:
        """Before completion, the number of bytes to transfer; afterwards, the number of bytes transferred."""
        return self._words[_LENGTH]

    @property
    def immediate(self) -> int | None:
        """The immediate data, 32 bits, sent or received; None if there are none."""
        control = _vipl.VIP_DESCRIPTOR.at(self.address).CS.Control
        carries = self._words[_STATUS] & _vipl.VIP_STATUS_IMMEDIATE or control & _vipl.VIP_CONTROL_IMMEDIATE
        return self._words[_IMMEDIATE] if carries else None

    @property
    def data(self) -> memoryview:
        """The bytes that were transferred. With one segment it is a part of the region, with several a copy."""
        parts = self.parts
        return parts[0] if len(parts) == 1 else memoryview(b"".join(parts))

    @property
    def parts(self) -> list[memoryview]:
        """The bytes that were transferred, a memoryview for each segment, without a copy."""
        parts, left = [], self.length
        for segment in self.segments:
            parts.append(segment.view[:left])
            left -= parts[-1].nbytes
            if left == 0:
                break
        return parts

    def __repr__(self) -> str:
        return f"<viaduct.vipl.Descriptor at {self.address:#x}: {self.status!r}, {self.length} bytes>"


class DescriptorPool:
    """Registered memory for descriptors. It is reused when a descriptor is deleted. Thread-safe."""

    def __init__(self) -> None:
        self._free: dict[int, collections.deque[Segment]] = collections.defaultdict(collections.deque)

    def descriptor(self, segments: int, register: typing.Callable[[memoryview], Segment]) -> Descriptor:
        """Returns a descriptor with room for that many segments. register(memory) registers more memory if all is in
        use."""
        nbytes = -(-(2 + segments) * _SEGMENT_BYTES // _ALIGNMENT) * _ALIGNMENT
        free = self._free[nbytes]
        try:
            return Descriptor(free.pop(), free.append)
        except IndexError:
            chunk = register(alloc(max(1, 16384 // nbytes) * nbytes))
            slot, *rest = [Segment(chunk.address + offset, chunk.handle, chunk.view[offset:offset + nbytes])
                           for offset in range(0, chunk.view.nbytes, nbytes)]
            free.extend(rest)
            return Descriptor(slot, free.append)
