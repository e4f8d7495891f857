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
                    (INVALID_RELIABILITY, INVALID_TRANSFER_SIZE); of LOST: UNREACHABLE if the peer caused it, else OK;
                    of UNREACHABLE: NO_RESOURCES if this side lacks them, else OK
    host            address of the peer
    service         service of the peer
    private_data    the peer's private data; over RDMA devices it may be padded with zeros
    why             what happened, in words; empty if ESTABLISHED
    """
    kind: ConnectionEventKind
    reason: Code
    host: bytes
    service: bytes
    private_data: bytes
    why: str = ""


class AsyncEvent(typing.NamedTuple):
    """An event of a device. Each context is that of the object concerned, or 0."""
    kind: AsyncEventKind
    endpoint_context: int
    completion_queue_context: int
    shared_receive_queue_context: int


class Traffic(typing.NamedTuple):
    """How much was transferred: a number of messages or operations, and their bytes."""
    messages: int
    bytes: int


class Counters(typing.NamedTuple):
    """What an endpoint has transferred since it was created, or all endpoints of a device since it was opened.

    traffic            by operation and way, if there was any: {("send", "slot"): Traffic(3, 24), ...}. Operations of
                       this side: send, rdma_write, rdma_write_immediate, rdma_read, atomic_write, fetch_add,
                       compare_swap. Of the peer, if this process takes part: receive, receive_immediate, serve_write,
                       serve_read, serve_atomic. Ways of loopback: slot, area, mapped, kernel, agent; of verbs: device;
                       of tcp: frame.
    posted_receives    receives that were posted, and their capacity
    credit_waits       requests that had to wait because the peer had posted no receive
    refusals           requests that the peer did not permit
    retries            connection requests that were repeated
    wakeups            how often the peer was asked to act because it did not poll
    """
    traffic: dict[tuple[str, str], Traffic]
    posted_receives: Traffic
    credit_waits: int
    refusals: int
    retries: int
    wakeups: int

    def of(self, name: str) -> Traffic:
        """Returns the sum over all ways of an operation, or over all operations of a way."""
        chosen = [traffic for key, traffic in self.traffic.items() if name in key]
        return Traffic(sum(traffic.messages for traffic in chosen), sum(traffic.bytes for traffic in chosen))


class DeviceCounters(typing.NamedTuple):
    """What a device has done since it was opened.

    endpoints              the sum over all endpoints, also of those that are closed
    endpoints_created      the number of endpoints that were created
    connections            connections that were established
    refused_connections    attempts to connect that were refused, or not answered
    lost_connections       connections that broke
    agent_wakeups          how often the thread of the device was woken
    """
    endpoints: Counters
    endpoints_created: int
    connections: int
    refused_connections: int
    lost_connections: int
    agent_wakeups: int


Pieces = typing.Union[Piece, typing.Sequence[Piece]]
