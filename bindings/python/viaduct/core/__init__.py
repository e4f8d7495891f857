# SPDX-License-Identifier: BSD-3-Clause
"""The model that VIPL, DAT and librpma share: devices, memory, endpoints, completions and events.

It is the shortest way to write a test. A server and a client, each in its own process:

    with core.Device() as device:
        endpoint = device.endpoint()
        region = device.register(bytearray(64))
        endpoint.post_receive(region[:])
        device.listen(7204).accept(endpoint)
        received = endpoint.wait_receive(timeout=5)
        print(bytes(region.view[:received.nbytes]))

    with core.Device() as device:
        endpoint = device.endpoint()
        region = device.register(b"hello, receiver")
        endpoint.connect("127.0.0.1", 7204, timeout=5)
        endpoint.post_send(region[:])
        endpoint.wait_send(timeout=5)

A service is a number below 65536 or any bytes. A number is the port of librpma, the connection qualifier of DAT, and
the VIPL discriminator of two bytes (big-endian).

Calls that fail raise Error, whose `code` is a Code, or TimeoutError. Calls on a closed object raise ValueError.
Calls with a timeout, in seconds, wait: None waits forever, 0 does not wait. Calls whose name ends in _async wait
without blocking the asyncio loop. All other calls return without waiting for a peer. Several threads may use an
object at the same time.
"""
from viaduct.core.addresses import Service as Service
from viaduct.core.addresses import resolve
from viaduct.core.connections import ConnectionRequest, Listener
from viaduct.core.constants import (AsyncEventKind, Code, CompletionCode, ConnectionEventKind, Operation, Reliability,
                                    State)
from viaduct.core.devices import Device, backend, devices
from viaduct.core.endpoints import Endpoint
from viaduct.core.errors import Error, RequestError, TimeoutError
from viaduct.core.memory import Access, MemoryRegion, MemoryWindow, ProtectionDomain
from viaduct.core.queues import CompletionQueue, SharedReceiveQueue
from viaduct.core.structures import (AsyncEvent, Completion, ConnectionEvent, Counters, DeviceCounters, Piece, Remote,
                                     Traffic)
from viaduct.core.structures import Pieces as Pieces
from viaduct.memory import Buffer as Buffer
from viaduct.memory import alloc

__all__ = ["Access", "AsyncEvent", "AsyncEventKind", "Code", "Completion", "CompletionCode", "CompletionQueue",
           "ConnectionEvent", "ConnectionEventKind", "ConnectionRequest", "Counters", "Device", "DeviceCounters",
           "Endpoint", "Error", "Listener", "MemoryRegion", "MemoryWindow", "Operation", "Piece", "ProtectionDomain",
           "Reliability", "Remote", "RequestError", "SharedReceiveQueue", "State", "TimeoutError", "Traffic", "alloc",
           "backend", "devices", "resolve"]
