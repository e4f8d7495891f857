# SPDX-License-Identifier: BSD-3-Clause
"""VIPL, the Virtual Interface Provider Library of the "Intel Virtual Interface Architecture Developer's Guide".

A server and a client, each in its own process:

    with vipl.open_nic() as nic:
        vi = nic.create_vi()
        region = nic.register_mem(bytearray(64))
        vi.post_recv(region[:])
        nic.connect_wait(4711, timeout=5).accept(vi)
        print(bytes(vi.recv_wait(timeout=5).data))

    with vipl.open_nic() as nic:
        vi = nic.create_vi()
        region = nic.register_mem(bytearray(b"hello, receiver"))
        vi.connect_request(nic.net_address(4711), timeout=5)
        vi.post_send(region[:])
        vi.send_wait(timeout=5)

Names are those of the guide without prefix and object: VipConnectRequest is Vi.connect_request. The description of
each method begins with the call of the guide. Arguments for which most programs use the same value have a default:
the protection tag, descriptors and attributes.

Calls that fail raise Error, whose `code` is a ReturnCode; TimeoutError if a timeout has expired; DescriptorError if
a descriptor completed with an error. Calls on a closed object raise Error(INVALID_PARAMETER).

Calls with a timeout, in seconds, wait: None waits forever, and Ctrl-C ends every wait. Calls whose name ends in
_async wait without blocking the asyncio loop. All other calls return without waiting for a peer. Several threads may
use an object at the same time. Nic.error_callback() reports broken connections.
"""
from viaduct.memory import Buffer as Buffer
from viaduct.memory import alloc
from viaduct.vipl.addresses import Discriminator as Discriminator
from viaduct.vipl.addresses import NetAddress
from viaduct.vipl.completion_queues import CompletionQueue, CqEntry
from viaduct.vipl.connections import ConnectionRequest
from viaduct.vipl.constants import (Control, ErrorCode, Operation, ReliabilityLevel, ResourceCode, ReturnCode, State,
                                    Status, StatusOperation)
from viaduct.vipl.descriptors import Descriptor, Remote, Segment
from viaduct.vipl.descriptors import Segments as Segments
from viaduct.vipl.errors import DescriptorError, Error, TimeoutError
from viaduct.vipl.memory import MemAttributes, Ptag, Region
from viaduct.vipl.nics import ErrorDescriptor, Nic, NicAttributes, open_nic
from viaduct.vipl.vis import Vi, ViAttributes, ViInfo

__all__ = ["CompletionQueue", "ConnectionRequest", "Control", "CqEntry", "Descriptor", "DescriptorError", "Error",
           "ErrorCode", "ErrorDescriptor", "MemAttributes", "NetAddress", "Nic", "NicAttributes", "Operation", "Ptag",
           "Region", "ReliabilityLevel", "Remote", "ResourceCode", "ReturnCode", "Segment", "State", "Status",
           "StatusOperation", "TimeoutError", "Vi", "ViAttributes", "ViInfo", "alloc", "open_nic"]
