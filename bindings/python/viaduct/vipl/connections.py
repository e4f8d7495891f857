# SPDX-License-Identifier: BSD-3-Clause
"""Requests for connections."""
from __future__ import annotations

import typing

from viaduct import _vipl
from viaduct.vipl.addresses import from_raw_address
from viaduct.vipl.errors import TimeoutError
from viaduct.vipl.objects import Handled
from viaduct.vipl.vis import Vi

if typing.TYPE_CHECKING:
    from viaduct.vipl.nics import Nic


class ConnectionRequest(Handled):
    """A request for a connection. Nic.connect_wait() makes it. One that is closed without an answer is refused.

    remote_address, remote_attributes   of the VI that asks
    """

    def __init__(self, nic: Nic, remote: _vipl.VIP_NET_ADDRESS, attributes: _vipl.VIP_VI_ATTRIBUTES,
                 handle: int) -> None:
        super().__init__(handle, nic)
        self.nic = nic
        self.remote_address = from_raw_address(remote)
        self.remote_attributes = nic._from_raw(attributes)

    def accept(self, vi: Vi) -> None:
        """VipConnectAccept. Connects an idle VI with the peer's. Raises TimeoutError: the peer has given up; Error:
        INVALID_RELIABILITY_LEVEL, INVALID_MTU, INVALID_QOS (not those of the peer: another VI may be tried),
        INVALID_STATE (not idle)."""
        try:
            _vipl.VipConnectAccept(self.handle, vi.handle)
        except TimeoutError:
            self._released()
            raise
        self._released()

    def reject(self) -> None:
        """VipConnectReject. Refuses; the peer gets REJECT."""
        _vipl.VipConnectReject(self.handle)
        self._released()

    def _release(self) -> None:
        _vipl.VipConnectReject(self.handle)
