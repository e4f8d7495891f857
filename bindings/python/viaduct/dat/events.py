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

__all__ = ["AsynchErrorEvent", "ConnectionEvent", "CrArrivalEvent", "DtoCompletionEvent", "Event", "IbDtoEvent",
           "RmrBindCompletionEvent", "SoftwareEvent"]


@dataclasses.dataclass(eq=False)
class Event:
    """Something that happened.

    event_number    what
    evd             the dispatcher that told of it
    n_more          how many more events waited there, where wait() has returned it; otherwise 0
    """
    event_number: EventNumber
    evd: Evd
    n_more: int


@dataclasses.dataclass(eq=False)
class DtoCompletionEvent(Event):
    """A transfer is done, or failed.

    user_cookie         the number with which it was posted
    status              how it ended
    transfered_length   bytes, where it succeeded
    operation           which transfer it was
    rmr_context         the RMR that the peer's message has ended
    """
    ep_handle: int
    user_cookie: int
    status: DtoCompletionStatus
    transfered_length: int
    operation: Dtos
    rmr_context: int

    @property
    def ep(self) -> Ep | None:
        """The endpoint; None where it is gone."""
        return typing.cast("Ep | None", object_of(self.ep_handle))

    @property
    def ok(self) -> bool:
        """Whether the transfer succeeded."""
        return self.status == DtoCompletionStatus.SUCCESS


@dataclasses.dataclass(eq=False)
class IbDtoEvent(DtoCompletionEvent):
    """As a DtoCompletionEvent: of an atomic operation or a write with immediate data, or of the receive that such a
    write has taken.

    ext_type, ext_status    of the extension
    immed_data              the 32 bits that came, for a receive
    """
    ext_type: IbExtType
    ext_status: IbStatus
    immed_data: int


@dataclasses.dataclass(eq=False)
class RmrBindCompletionEvent(Event):
    """An RMR is bound, or was not."""
    rmr_handle: int
    user_cookie: int
    status: DtoCompletionStatus

    @property
    def rmr(self) -> Rmr | None:
        """The RMR; None where it is gone."""
        return typing.cast("Rmr | None", object_of(self.rmr_handle))

    @property
    def ok(self) -> bool:
        """Whether it is bound."""
        return self.status == DtoCompletionStatus.SUCCESS


@dataclasses.dataclass(eq=False)
class CrArrivalEvent(Event):
    """A peer asks for a connection.

    sp_handle               the service point that was asked; 0 where it is gone
    local_ia_address_ptr    the address that was asked, (host, port)
    cr                      the request, to be accepted or rejected. It is rejected when nothing refers to it any more
    truncate_flag           its private data were too long, and were cut
    """
    sp_handle: int
    local_ia_address_ptr: Address | None
    conn_qual: int
    cr: Cr
    truncate_flag: bool


@dataclasses.dataclass(eq=False)
class ConnectionEvent(Event):
    """What became of a connection.

    private_data    the peer's, of EventNumber.CONNECTION_EVENT_ESTABLISHED and ..._PEER_REJECTED. Over RDMA devices
                    maybe with zeros behind
    """
    ep_handle: int
    private_data: bytes

    @property
    def ep(self) -> Ep | None:
        """The endpoint; None where it is gone."""
        return typing.cast("Ep | None", object_of(self.ep_handle))

    @property
    def established(self) -> bool:
        """Whether there is a connection."""
        return self.event_number == EventNumber.CONNECTION_EVENT_ESTABLISHED


@dataclasses.dataclass(eq=False)
class AsynchErrorEvent(Event):
    """Something happened to an object. reason: of the enumeration for its kind (EvdAsyncErrorReason)."""
    dat_handle: int
    reason: int

    @property
    def object(self) -> DatObject | None:
        """The object; None where it is gone."""
        return object_of(self.dat_handle)


@dataclasses.dataclass(eq=False)
class SoftwareEvent(Event):
    """What Evd.post_se() has posted. pointer: its 64 bits."""
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
