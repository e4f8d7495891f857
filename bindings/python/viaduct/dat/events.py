# SPDX-License-Identifier: BSD-3-Clause
"""Events, as event dispatchers return them."""
from __future__ import annotations

import dataclasses
import typing

from viaduct.dat.constants import DtoCompletionStatus, Dtos, EventNumber, IbExtType, IbStatus
from viaduct.dat.objects import DatObject, object_of
from viaduct.dat.structures import Address

if typing.TYPE_CHECKING:
    from viaduct.dat.dispatchers import Evd
    from viaduct.dat.endpoints import Ep
    from viaduct.dat.memory import Rmr
    from viaduct.dat.service_points import Cr


@dataclasses.dataclass(eq=False)
class Event:
    """An event.

    event_number    what happened
    evd             the dispatcher that returned the event
    n_more          the number of further events queued, if wait() returned this one; otherwise 0
    """
    event_number: EventNumber
    evd: Evd
    n_more: int


@dataclasses.dataclass(eq=False)
class DtoCompletionEvent(Event):
    """A transfer has completed.

    ep_handle            handle of the endpoint; see ep
    user_cookie          the number that was given when it was posted
    status               the outcome
    transfered_length    bytes, if it succeeded
    operation            the kind of transfer
    rmr_context          the RMR that the peer's message invalidated
    """
    ep_handle: int
    user_cookie: int
    status: DtoCompletionStatus
    transfered_length: int
    operation: Dtos
    rmr_context: int

    @property
    def ep(self) -> Ep | None:
        """The endpoint; None if it is closed."""
        return typing.cast("Ep | None", object_of(self.ep_handle))

    @property
    def ok(self) -> bool:
        """Whether the transfer succeeded."""
        return self.status == DtoCompletionStatus.SUCCESS


@dataclasses.dataclass(eq=False)
class IbDtoEvent(DtoCompletionEvent):
    """The completion of an atomic operation, of a write with immediate data, or of the receive that such a write
    completed.

    ext_type                type of the extension
    ext_status              OP_SUCCESS, or OP_ERR if `status` is an error
    immed_data              the immediate data, 32 bits, of a receive
    """
    ext_type: IbExtType
    ext_status: IbStatus
    immed_data: int


@dataclasses.dataclass(eq=False)
class RmrBindCompletionEvent(Event):
    """The binding of an RMR has completed; `status` contains the result."""
    rmr_handle: int
    user_cookie: int
    status: DtoCompletionStatus

    @property
    def rmr(self) -> Rmr | None:
        """The RMR; None if it is closed."""
        return typing.cast("Rmr | None", object_of(self.rmr_handle))

    @property
    def ok(self) -> bool:
        """Whether the RMR is bound."""
        return self.status == DtoCompletionStatus.SUCCESS


@dataclasses.dataclass(eq=False)
class CrArrivalEvent(Event):
    """A peer requests a connection.

    sp_handle               handle of the service point; 0 if it is gone
    local_ia_address_ptr    the address that the peer requested, (host, port)
    conn_qual               the connection qualifier that the peer requested
    cr                      the request. When it is no longer referenced, it is rejected.
    truncate_flag           whether its private data were truncated because they were too long
    """
    sp_handle: int
    local_ia_address_ptr: Address | None
    conn_qual: int
    cr: Cr
    truncate_flag: bool


@dataclasses.dataclass(eq=False)
class ConnectionEvent(Event):
    """An event of a connection.

    ep_handle       handle of the endpoint; see ep
    private_data    the peer's, for CONNECTION_EVENT_ESTABLISHED and CONNECTION_EVENT_PEER_REJECTED. Over RDMA devices
                    it may be padded with zeros.
    """
    ep_handle: int
    private_data: bytes

    @property
    def ep(self) -> Ep | None:
        """The endpoint; None if it is closed."""
        return typing.cast("Ep | None", object_of(self.ep_handle))

    @property
    def established(self) -> bool:
        """Whether the connection is established."""
        return self.event_number == EventNumber.CONNECTION_EVENT_ESTABLISHED


@dataclasses.dataclass(eq=False)
class AsynchErrorEvent(Event):
    """An asynchronous event of an object.

    dat_handle    handle of the object; see object
    reason        a member of the enumeration for its kind, such as EvdAsyncErrorReason
    """
    dat_handle: int
    reason: int

    @property
    def object(self) -> DatObject | None:
        """The object; None if it is closed."""
        return object_of(self.dat_handle)


@dataclasses.dataclass(eq=False)
class SoftwareEvent(Event):
    """An event that Evd.post_se() posted. pointer: its 64 bits."""
    pointer: int


def _by_number(kind: type[Event], *beginnings: str) -> dict[int, type[Event]]:
    return {number: kind for number in EventNumber if number.name.startswith(beginnings)}


KINDS: dict[int, type[Event]] = {
    EventNumber.DTO_COMPLETION_EVENT: DtoCompletionEvent,
    EventNumber.RMR_BIND_COMPLETION_EVENT: RmrBindCompletionEvent,
    EventNumber.CONNECTION_REQUEST_EVENT: CrArrivalEvent,
    EventNumber.SOFTWARE_EVENT: SoftwareEvent,
    EventNumber.IB_DTO_EVENT: IbDtoEvent,
    **_by_number(ConnectionEvent, "CONNECTION_EVENT_"),
    **_by_number(AsynchErrorEvent, "ASYNC_ERROR_", "HA_"),
}
NUMBERS = {int(number): number for number in EventNumber}
STATUSES = {int(status): status for status in DtoCompletionStatus}
OPERATIONS = {int(operation): operation for operation in Dtos}
