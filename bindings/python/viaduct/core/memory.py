# SPDX-License-Identifier: BSD-3-Clause
"""Protection domains, memory regions and memory windows."""
from __future__ import annotations

import typing

from viaduct import _core
from viaduct._enums import IntFlag
from viaduct.core.objects import Held
from viaduct.core.structures import Piece, Remote
from viaduct.memory import Buffer, Pinned, buffer_of

if typing.TYPE_CHECKING:
    from viaduct.core.devices import Device


class Access(IntFlag):
    """The access of peers to a memory region or through an endpoint."""
    NONE = 0
    REMOTE_WRITE = 1
    REMOTE_READ = 2
    REMOTE_ATOMIC = 4
    ALL = 7


class ProtectionDomain(Held):
    """A protection domain. Endpoints use memory of their own domain only."""

    def __init__(self, device: Device) -> None:
        """Raises Error(NO_RESOURCES) if the device is out of resources."""
        self._raw = _core.ProtectionDomain(device._raw)
        self.device = device
        super().__init__(device)


class MemoryRegion(Held):
    """Registered memory: a buffer that is neither copied nor moved until the region is closed.

    domain     the protection domain
    access     the access of peers
    view       the bytes, as a memoryview
    key        identifies the region, also to peers
    remote     what a peer needs to access the region

    `region[8:16]` is a piece for requests. Requests do not keep their region: close it after they have completed.
    """

    def __init__(self, domain: ProtectionDomain, memory: Buffer | int, access: Access = Access.ALL) -> None:
        """Registers `memory`: a contiguous buffer, or that many bytes of new memory as alloc() returns it. Peers can
        only read read-only memory, whatever `access` says. Raises TypeError if the object has no buffer, BufferError if
        it is not contiguous, Error: INVALID_PARAMETER (no bytes), NO_RESOURCES."""
        self._pinned = Pinned(buffer_of(memory))
        self._writable = not self._pinned.readonly
        self.access = self._allowed(access)
        self._raw = _core.MemoryRegion(domain._raw, self._pinned.address, self._pinned.nbytes, self.access,
                                       self._writable)
        self.domain = domain
        self.view = self._pinned.view
        super().__init__(domain)

    def _description(self) -> str:
        return f"{len(self)} bytes, key {self.key}, {self.access!s}"

    @property
    def key(self) -> int:
        """The key of the region, a number."""
        return self._raw.key

    @property
    def remote(self) -> Remote:
        """The address and the key of the region, for peers."""
        return Remote(self._pinned.address, self.key)

    def __len__(self) -> int:
        return self._pinned.nbytes

    def __getitem__(self, part: slice) -> Piece:
        """Returns a piece of the region. Raises IndexError if the slice is not within the region, ValueError if it
        has a step."""
        start, stop = self._pinned.extent(part)
        return Piece(self._pinned.address + start, stop - start, self.key)

    def modify(self, access: Access, domain: ProtectionDomain | None = None) -> None:
        """Changes the access of peers, who can only read read-only memory, and the domain. The key may change.

        Changes nothing if it fails. Only one thread may call it at a time.
        """
        owner, allowed = domain or self.domain, self._allowed(access)
        self._raw.modify(owner._raw, allowed, self._writable)
        self.domain, self.access = owner, allowed
        self._depend_on(owner)

    def _allowed(self, access: Access) -> Access:
        return access if self._writable else access & Access.REMOTE_READ

    def _release(self) -> None:
        super()._release()
        self._pinned.release()


class MemoryWindow(Held):
    """A part of a region under a key of its own. Endpoint.bind() chooses the part.

    domain: the protection domain. of_endpoint: only the peer of the endpoint that binds the window may use it. That
    peer can also invalidate it, with post_send(invalidate=key).
    """

    def __init__(self, domain: ProtectionDomain, *, of_endpoint: bool = False) -> None:
        """Raises Error(UNSUPPORTED) if the device has no such windows."""
        self._raw = _core.MemoryWindow(domain._raw, of_endpoint)
        self.domain = domain
        super().__init__(domain)

    def _description(self) -> str:
        return f"key {self.key}"

    @property
    def key(self) -> int:
        """The key that the last bind has given."""
        return self._raw.key
