# SPDX-License-Identifier: BSD-3-Clause
"""Pieces of memory, completions and events."""
from __future__ import annotations

import typing

from viaduct.core.constants import AsyncEventKind, Code, CompletionCode, ConnectionEventKind, Operation


class Piece(typing.NamedTuple):
    """A piece of a region of this process: what requests move. `region[0:8]` makes it."""
    address: int
    length: int
    key: int


class Remote(typing.NamedTuple):
    """A place in a peer's memory. Its fields travel in any message; `remote + 64` is 64 bytes further."""
    address: int
    key: int

    def __add__(self, offset: object) -> Remote:
        if not isinstance(offset, int):
            return NotImplemented
        return Remote(self.address + offset, self.key)


class Completion(typing.NamedTuple):
    """One finished request. nbytes: how many were moved; immediate: None where there is none."""
    context: int
    operation: Operation
    code: CompletionCode
    nbytes: int
    immediate: int | None
    invalidated: bool
    endpoint_context: int

    @property
    def ok(self) -> bool:
        return self.code == CompletionCode.SUCCESS


class ConnectionEvent(typing.NamedTuple):
    """reason: with REJECTED NO_LISTENER or OK, with CONFLICT what does not agree. Over RDMA devices, private data may
    have zeros behind them."""
    kind: ConnectionEventKind
    reason: Code
    host: bytes
    service: bytes
    private_data: bytes


class AsyncEvent(typing.NamedTuple):
    """Contexts are those of the objects concerned; 0 where none is."""
    kind: AsyncEventKind
    endpoint_context: int
    completion_queue_context: int
    shared_receive_queue_context: int


Pieces = typing.Union[Piece, typing.Sequence[Piece]]


def sequence_of(pieces: Pieces) -> typing.Sequence[Piece]:
    return (pieces,) if isinstance(pieces, Piece) else pieces
