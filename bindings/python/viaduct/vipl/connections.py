# SPDX-License-Identifier: BSD-3-Clause
"""Connection requests."""
from __future__ import annotations

import typing

from viaduct import _core, _vipl
from viaduct.vipl.addresses import from_raw_address
from viaduct.vipl.errors import TimeoutError
from viaduct.vipl.objects import Handled
from viaduct.vipl.vis import Vi

if typing.TYPE_CHECKING:
    from viaduct.vipl.nics import Nic


class ConnectionRequest(Handled):
    """A peer's connection request. Nic.connect_wait() returns it; accept() or reject() must be called once to answer
    it.

    remote_address       address of the peer, as its `local` says
    remote_attributes    attributes of the peer's VI

    If it is closed without an answer, it is rejected.
    """

    def __init__(self, nic: Nic, own: _core.Owned) -> None:
        remote, attributes, _ = own.result
        self.nic = nic
        self.remote_address = from_raw_address(remote)
        self.remote_attributes = nic._from_raw(attributes)
        super().__init__(own, nic)

    def _description(self) -> str:
        return f"from {self.remote_address}"

    def accept(self, vi: Vi) -> None:
        """VipConnectAccept. Connects an idle VI with the peer's. The connection is established when it returns.

        Raises TimeoutError if the peer has given up; Error: INVALID_STATE (the VI is not idle),
        INVALID_RELIABILITY_LEVEL, INVALID_MTU, INVALID_QOS (the attribute differs from the peer's: try another VI).
        """
        self._end_by(lambda: self._accept(vi))

    def _accept(self, vi: Vi) -> None:
        try:
            self._own.end_with(_vipl.VipConnectAccept, self.handle, vi.handle)
        except TimeoutError:
            self._released()
            raise

    def reject(self) -> None:
        """VipConnectReject. Refuses the request. The peer gets REJECT."""
        self._end_by(self._own.end)
