# SPDX-License-Identifier: BSD-3-Clause
"""VIPL, the Virtual Interface Provider Library of the "Intel Virtual Interface Architecture Developer's Guide".

A server and a client, each a process:

    with vipl.open_nic() as nic:
        vi = nic.create_vi()
        region = nic.register_mem(bytearray(64))
        vi.post_recv(region[:])
        nic.connect_wait(4711, timeout=5).accept(vi)
        print(bytes(vi.recv_wait(timeout=5).data))

    with vipl.open_nic() as nic:
        vi = nic.create_vi()
        region = nic.register_mem(bytearray(b"over the valley"))
        vi.connect_request(nic.net_address(4711), timeout=5)
        vi.post_send(region[:])
        vi.send_wait(timeout=5)

Names are those of the guide without their prefix and their object: VipConnectRequest is Vi.connect_request. What a call
of the guide needs besides, and most programs choose alike, has defaults: a protection tag, descriptors, attributes.

Calls that fail raise Error, whose `code` is a ReturnCode; where a time-out has passed, TimeoutError; where a descriptor
completed with an error, DescriptorError. Time-outs are in seconds, None waits for ever, and Ctrl-C ends every wait.
Every object may be used by several threads at once. A connection that breaks is told by Nic.error_callback().
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
