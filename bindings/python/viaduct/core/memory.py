# SPDX-License-Identifier: BSD-3-Clause
"""Protection domains, memory regions and memory windows."""
from __future__ import annotations

import typing

from viaduct import _core
from viaduct.core.constants import Access, rights_of
from viaduct.core.objects import Held
from viaduct.core.structures import Piece, Remote
from viaduct.memory import Buffer, Pinned, alloc

if typing.TYPE_CHECKING:
    from viaduct.core.devices import Device


class ProtectionDomain(Held):
    """Endpoints use memory of their own protection domain only."""

    def __init__(self, device: Device) -> None:
        self._raw = _core.ProtectionDomain(device._raw)
        super().__init__(device)
        self.device = device


class MemoryRegion(Held):
    """Registered memory: any object with a contiguous buffer, which stays where it is until the region is closed.

    view       its bytes
    key        names it at peers
    remote     what peers need to reach it: send them this

    `region[8:16]` is a piece for requests.
    """

    def __init__(self, domain: ProtectionDomain, memory: Buffer | int, access: Access = Access.ALL) -> None:
        self._pinned = Pinned(alloc(memory) if isinstance(memory, int) else memory)
        self._writable = not self._pinned.readonly
        if self._pinned.readonly:
            access &= Access.REMOTE_READ
        self._raw = _core.MemoryRegion(domain._raw, self._pinned.address, self._pinned.nbytes, *rights_of(access),
                                       local_write=self._writable)
        super().__init__(domain)
        self.domain = domain
        self.access = access
        self.view = self._pinned.view

    @property
    def key(self) -> int:
        return self._raw.key

    @property
    def remote(self) -> Remote:
        return Remote(self._pinned.address, self.key)

    def __len__(self) -> int:
        return self._pinned.nbytes

    def __getitem__(self, part: slice) -> Piece:
        """Raises ValueError for steps."""
        start, stop = self._pinned.extent(part)
        return Piece(self._pinned.address + start, stop - start, self.key)

    def modify(self, access: Access, domain: ProtectionDomain | None = None) -> None:
        """Changes what peers may do, and the domain: both or, on failure, nothing. The key may be another then."""
        owner = domain or self.domain
        self._raw.modify(owner._raw, *rights_of(access), self._writable)
        self.domain, self.access = owner, access

    def _release(self) -> None:
        super()._release()
        self._pinned.release()


class MemoryWindow(Held):
    """A part of a region with a key of its own for peers. of_endpoint: only for the peer of the endpoint that has bound
    it, who may also end it (post_send(invalidate=key))."""

    def __init__(self, domain: ProtectionDomain, *, of_endpoint: bool = False) -> None:
        self._raw = _core.MemoryWindow(domain._raw, of_endpoint)
        super().__init__(domain)

    @property
    def key(self) -> int:
        """That of the last bind."""
        return self._raw.key
