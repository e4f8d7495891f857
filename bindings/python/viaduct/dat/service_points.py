# SPDX-License-Identifier: BSD-3-Clause
"""Service points and their connection requests."""
from __future__ import annotations

import typing

from viaduct import _dat
from viaduct.dat.constants import CrParamMask, CspParamMask, PspFlags, PspParamMask, RspParamMask
from viaduct.dat.endpoints import Ep, socket_address
from viaduct.dat.events import ConnectionEvent
from viaduct.dat.objects import DatObject, handle_of, object_of
from viaduct.dat.structures import Comm, CrParam, CspParam, PspParam, RspParam

if typing.TYPE_CHECKING:
    from viaduct.dat.adapters import Ia
    from viaduct.dat.dispatchers import Evd


class Psp(DatObject):
    """A public service point: its EVD receives connection requests for its conn_qual. Created by Ia.psp_create()."""

    _ended_by = "dat_psp_free"

    def __init__(self, ia: Ia, conn_qual: int | None, evd: Evd, flags: PspFlags) -> None:
        if conn_qual is None:
            own = self._make(_dat.dat_psp_create_any, ia.handle, evd.handle, flags)
            conn_qual = typing.cast(int, own.result[0])
        else:
            own = self._make(_dat.dat_psp_create, ia.handle, conn_qual, evd.handle, flags)
        self.ia = ia
        self.conn_qual = conn_qual
        super().__init__(own, ia, evd)

    def _description(self) -> str:
        return f"qualifier {self.conn_qual}"

    def query(self, mask: PspParamMask = PspParamMask.ALL) -> PspParam:
        """Returns its parameters (dat_psp_query)."""
        return PspParam._of(_dat.dat_psp_query(self.handle, mask))


class Rsp(DatObject):
    """A reserved service point: accepts one request for one endpoint, then is destroyed. Created by Ia.rsp_create()."""

    _ended_by = "dat_rsp_free"

    def __init__(self, ia: Ia, conn_qual: int, ep: Ep | None, evd: Evd) -> None:
        self.ia = ia
        self.conn_qual = conn_qual
        own = self._make(_dat.dat_rsp_create, ia.handle, conn_qual, handle_of(ep), evd.handle)
        super().__init__(own, ia, evd, ep)

    def _description(self) -> str:
        return f"qualifier {self.conn_qual}"

    def query(self, mask: RspParamMask = RspParamMask.ALL) -> RspParam:
        """Returns its parameters (dat_rsp_query)."""
        return RspParam._of(_dat.dat_rsp_query(self.handle, mask))


class Csp(DatObject):
    """A common service point: its EVD receives connection requests for a port of a communicator. Created by
    Ia.csp_create()."""

    _ended_by = "dat_csp_free"

    def __init__(self, ia: Ia, comm: Comm, host: str, port: int, evd: Evd) -> None:
        own = self._make(_dat.dat_csp_create, ia.handle, vars(comm), socket_address(host, port), evd.handle)
        self.ia = ia
        super().__init__(own, ia, evd)

    def query(self, mask: CspParamMask = CspParamMask.ALL) -> CspParam:
        """Returns its parameters (dat_csp_query)."""
        return CspParam._of(_dat.dat_csp_query(self.handle, mask))


class Cr(DatObject):
    """A connection request. accept(), reject() or handoff() must be called once to answer it.

    private_data    the peer's private data; over RDMA devices it may be padded with zeros
    ep              the endpoint that the service point provided, or None

    If it is closed without an answer, it is rejected.
    """

    _ended_by = "dat_cr_reject"
    _end_arguments = (b"",)

    def __init__(self, ia: Ia, handle: int) -> None:
        own = self._make(int, handle)
        param = CrParam._of(_dat.dat_cr_query(handle, CrParamMask.ALL))
        known = object_of(param.local_ep_handle)
        self.ep = known if isinstance(known, Ep) else None
        if self.ep is None and param.local_ep_handle:
            self.ep = Ep(ia, Ep._make(int, param.local_ep_handle))
        self.ia = ia
        self.private_data = param.private_data
        super().__init__(own, ia, self.ep)

    def accept(self, ep: Ep | None = None, private_data: bytes = b"") -> None:
        """Connects an endpoint, and returns (dat_cr_accept). Without `ep`, it connects the endpoint that the service
        point provided.

        An event of the endpoint's connect EVD reports the outcome. Raises Error: INVALID_STATE (the endpoint is in
        use), INVALID_HANDLE (it is not suitable); another endpoint may be tried.
        """
        self._end_by(lambda: self._own.end_with(_dat.dat_cr_accept, self.handle, handle_of(ep), private_data))

    async def accept_async(self, ep: Ep | None = None, private_data: bytes = b"",
                           timeout: float | None = None) -> ConnectionEvent:
        """Connects an endpoint, waits for the outcome, and returns the event. For asyncio.

        Raises what accept() raises, ConnectionFailed if the peer is gone, TimeoutError after `timeout` seconds.
        """
        connected = ep or self.ep
        self.accept(ep, private_data)
        assert connected is not None  # otherwise the library would have refused
        return await connected._outcome("dat_cr_accept", timeout)

    def reject(self, private_data: bytes = b"") -> None:
        """Refuses the request (dat_cr_reject). The peer gets CONNECTION_EVENT_PEER_REJECTED with the private data."""
        self._end_by(lambda: self._own.end_with(_dat.dat_cr_reject, self.handle, private_data))

    def handoff(self, conn_qual: int) -> None:
        """Passes the request to another public service point of the adapter (dat_cr_handoff). Raises
        Error(INVALID_PARAMETER) if there is none; the request stays then."""
        self._end_by(lambda: self._own.end_with(_dat.dat_cr_handoff, self.handle, conn_qual))

    def query(self, mask: CrParamMask = CrParamMask.ALL) -> CrParam:
        """Returns its parameters (dat_cr_query)."""
        return CrParam._of(_dat.dat_cr_query(self.handle, mask))
