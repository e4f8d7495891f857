# SPDX-License-Identifier: BSD-3-Clause
"""Protection zones and memory regions."""
from __future__ import annotations

import typing
import weakref

from viaduct import _core, _dat
from viaduct.dat.constants import (CompletionFlags, LmrParamMask, MemPrivFlags, MemType, PzParamMask, ReturnType,
                                   RmrParamMask, VaType)
from viaduct.dat.objects import DatObject
from viaduct.dat.structures import LmrParam, LmrTriplet, PzParam, RmrParam, RmrTriplet
from viaduct.errors import Error
from viaduct.memory import Buffer, Pinned

if typing.TYPE_CHECKING:
    from viaduct.dat.adapters import Ia
    from viaduct.dat.endpoints import Ep


class Pz(DatObject):
    """A protection zone: endpoints use memory of their own zone only. Created by Ia.pz_create()."""

    _ended_by = "dat_pz_free"

    def __init__(self, ia: Ia) -> None:
        self.ia = ia
        super().__init__(self._make(_dat.dat_pz_create, ia.handle), ia)

    def query(self, mask: PzParamMask = PzParamMask.ALL) -> PzParam:
        """Returns its parameters (dat_pz_query)."""
        return PzParam._of(_dat.dat_pz_query(self.handle, mask))

    def rmr_create(self) -> Rmr:
        """Returns a new RMR, which the peers of all endpoints of the zone may use. Raises Error(MODEL_NOT_SUPPORTED) if
        the device has no memory windows."""
        return Rmr(self, Rmr._make(_dat.dat_rmr_create, self.handle))

    def rmr_create_for_ep(self) -> Rmr:
        """Returns a new RMR for the peer of the endpoint that binds it. That peer can invalidate it
        (Ep.post_send_with_invalidate()). Raises Error(MODEL_NOT_SUPPORTED) if the device has no such memory windows."""
        return Rmr(self, Rmr._make(_dat.dat_rmr_create_for_ep, self.handle))


class Lmr(DatObject):
    """A local memory region: memory that transfers may use. Created by Ia.lmr_create().

    view                                    the bytes, as a memoryview
    lmr_context                             identifies the region in local pieces
    rmr_context                             identifies the region to peers
    registered_address, registered_size     what the device has registered

    lmr[a:b] is the LmrTriplet of bytes a to b, for posts; lmr.target(a, b) is their RmrTriplet, for peers. Posted
    transfers do not keep their regions: close a region after they have completed.
    """

    _ended_by = "dat_lmr_free"

    def __init__(self, ia: Ia, region: Buffer | Lmr, pz: Pz, privileges: MemPrivFlags | None,
                 va_type: VaType, shared_memory_id: bytes | None) -> None:
        if isinstance(region, Lmr):
            mem_type, memory, described = MemType.LMR, Pinned(region._memory.pin), region.handle
        else:
            mem_type = MemType.VIRTUAL if shared_memory_id is None else MemType.SHARED_VIRTUAL
            memory = Pinned(region)
            described = memory.address
        if privileges is None:
            privileges = MemPrivFlags.ALL
        if memory.readonly:
            privileges &= MemPrivFlags.READ
        own = self._make(_dat.dat_lmr_create, ia.handle, mem_type, described, memory.nbytes, pz.handle, privileges,
                         va_type, shared_memory_id or b"", index=0)
        _, self.lmr_context, self.rmr_context, self.registered_size, self.registered_address = own.result
        self._memory: Pinned = memory
        self.view = memory.view
        self.ia = ia
        self.pz = pz
        self._rmrs: weakref.WeakSet[Rmr] = weakref.WeakSet()  # that were bound to it
        super().__init__(own, ia, pz, region if isinstance(region, Lmr) else None)

    def _description(self) -> str:
        return f"{len(self)} bytes, context {self.rmr_context}"

    def __len__(self) -> int:
        return self._memory.nbytes

    def __getitem__(self, part: slice) -> LmrTriplet:
        """Returns a piece of the region. Raises IndexError if the slice is not within the region, ValueError if it
        has a step."""
        start, stop = self._memory.extent(part)
        piece = LmrTriplet(self._memory.address + start, stop - start, self.lmr_context)
        piece.view = self._memory.pin[start:stop]
        piece.lmr = self
        return piece

    def target(self, start: int = 0, stop: int | None = None) -> RmrTriplet:
        """Returns a piece of the region for use by peers."""
        piece = self[start:stop]
        return RmrTriplet(piece.virtual_address, piece.segment_length, self.rmr_context)

    def query(self, mask: LmrParamMask = LmrParamMask.ALL) -> LmrParam:
        """Returns its parameters (dat_lmr_query)."""
        return LmrParam._of(_dat.dat_lmr_query(self.handle, mask))

    def _release(self) -> None:
        while True:
            try:
                return super()._release()
            except Error as error:  # an RMR was bound elsewhere, and nobody has taken the event yet
                if error.code is not ReturnType.INVALID_STATE or not self._rmrs:
                    raise
                self._rmrs.pop().close()

    def _released(self) -> None:
        self._memory.release()
        super()._released()


class Rmr(DatObject):
    """A remote memory region: a window into an LMR. Created by Pz.rmr_create(). Each bind gives it a new context.

    It keeps the LMR open, and the former one until the next bind. Closing an LMR closes the RMRs that are bound to it;
    also those that have been bound to another one, until the event of that bind is taken.

    Only one thread may bind an RMR at a time.
    """

    _ended_by = "dat_rmr_free"

    def __init__(self, pz: Pz, own: _core.Owned) -> None:
        self.pz = pz
        self._lmrs: list[Lmr] = []  # the former, which peers may reach until the bind is complete, and the present one
        super().__init__(own, pz)

    def bind(self, lmr: Lmr, piece: LmrTriplet | tuple[int, int, int], ep: Ep,
             privileges: MemPrivFlags = MemPrivFlags.ALL, va_type: VaType = VaType.VA, cookie: int = 0,
             flags: CompletionFlags = CompletionFlags.DEFAULT) -> RmrTriplet:
        """Posts a request to bind the RMR to a piece of a region, or with length 0 to unbind it, and returns what
        peers need to use it (dat_rmr_bind).

        An event of the endpoint's request EVD reports the completion, with `cookie`. Raises Error: INVALID_STATE
        (the endpoint was never connected), PROTECTION_VIOLATION (endpoint or region has another zone),
        PRIVILEGES_VIOLATION (the region does not allow that much), MODEL_NOT_SUPPORTED (addresses from zero).
        """
        context = _dat.dat_rmr_bind(self.handle, lmr.handle, piece, privileges, va_type, ep.handle, cookie, flags)
        lmr._rmrs.add(self)
        self._depend_on(self.pz, lmr)
        self._lmrs = [*self._lmrs[-1:], lmr]
        return RmrTriplet(piece[0], piece[1], context)

    def query(self, mask: RmrParamMask = RmrParamMask.ALL) -> RmrParam:
        """Returns its parameters (dat_rmr_query)."""
        return RmrParam._of(_dat.dat_rmr_query(self.handle, mask))
