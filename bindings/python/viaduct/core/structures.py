# SPDX-License-Identifier: BSD-3-Clause
"""Pieces of memory, completions and events."""
from __future__ import annotations

import typing

from viaduct.core.constants import AsyncEventKind, Code, CompletionCode, ConnectionEventKind, Operation


class Piece(typing.NamedTuple):
    """A piece of a memory region of this process; requests transfer pieces. `region[0:8]` creates one.

    address    of the first byte
    length     in bytes
    key        of the region
    """
    address: int
    length: int
    key: int


class Remote(typing.NamedTuple):
    """A location in a peer's memory. Send its two numbers to the peer that uses them. `remote + 64` is the location 64
    bytes later.
    """
    address: int
    key: int

    def __add__(self, offset: object) -> Remote:
        if not isinstance(offset, int):
            return NotImplemented
        return Remote(self.address + offset, self.key)


class Completion(typing.NamedTuple):
    """A finished request.

    context             the number that was given when the request was posted
    operation           the operation of the request
    code                the outcome
    nbytes              bytes transferred
    immediate           the immediate data, 32 bits; None if there are none
    invalidated         whether the message invalidated a memory window of this process
    endpoint_context    the `context` of the endpoint
    """
    context: int
    operation: Operation
    code: CompletionCode
    nbytes: int
    immediate: int | None
    invalidated: bool
    endpoint_context: int

    @property
    def ok(self) -> bool:
        """Whether the request succeeded."""
        return self.code == CompletionCode.SUCCESS


class ConnectionEvent(typing.NamedTuple):
    """An event of a connection.

    kind            what happened
    reason          of REJECTED: NO_LISTENER, or OK if the peer refused; of CONFLICT: the attribute that differs
                    (INVALID_RELIABILITY, INVALID_TRANSFER_SIZE)
    host            address of the peer
    service         service of the peer
    private_data    the peer's private data; over RDMA devices it may be padded with zeros
    """
    kind: ConnectionEventKind
    reason: Code
    host: bytes
    service: bytes
    private_data: bytes


class AsyncEvent(typing.NamedTuple):
    """An event of a device. Each context is that of the object concerned, or 0."""
    kind: AsyncEventKind
    endpoint_context: int
    completion_queue_context: int
    shared_receive_queue_context: int


Pieces = typing.Union[Piece, typing.Sequence[Piece]]


def sequence_of(pieces: Pieces) -> typing.Sequence[Piece]:
    """Returns one piece, or several, as a sequence."""
    return (pieces,) if isinstance(pieces, Piece) else pieces
