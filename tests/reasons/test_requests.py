# SPDX-License-Identifier: BSD-3-Clause
"""Why requests fail or are refused, as both ends log it: the mistakes of docs/mistakes.md. In VIPL, whose descriptors
let a program make most of them. On loopback, or on the backend that VIADUCT_BACKEND names."""
import os
import queue

import pytest

from services import free_number
from test_vipl import End, TIMEOUT_S, hear_of_listener
from two_ends import run, run_alone, said_once

ON_LOOPBACK = "VIADUCT_BACKEND" not in os.environ
if not ON_LOOPBACK:
    os.environ["VIADUCT_CONNECT_RETRY_MS"] = f"{TIMEOUT_S}000"  # the client need not know that there is a listener

RESERVED = 5
NO_SUCH_HANDLE = 0x7FFF0


class Port(End):
    """An end with memory of 64 bytes, and what the error callback has got."""

    def __init__(self, **attributes):
        from viaduct import vipl
        super().__init__(**{"reliability_level": 2, "enable_rdma_write": True, "enable_rdma_read": True, **attributes})
        self.errors = queue.Queue()
        self.nic.error_callback(self.errors.put)
        self.memory = self.register(enable_rdma_write=True, enable_rdma_read=True)
        self.vipl = vipl

    def register(self, size=64, **attributes):
        from viaduct import vipl
        attributes.setdefault("ptag", self.nic.ptag)
        return self.nic.register_mem(bytearray(size), vipl.MemAttributes(**attributes))

    def wait_for(self, code):
        while self.errors.get(timeout=TIMEOUT_S).error_code.name != code:
            pass

    def descriptor(self, change=lambda raw: None, **arguments):
        """A descriptor for the memory, after a change of its fields."""
        descriptor = self.nic.ptag.descriptor(self.memory[:], **arguments)
        change(descriptor.raw)
        return descriptor

    def send(self, change=lambda raw: None, **arguments):
        self.vi.post_send(self.descriptor(change, **arguments))

    def access(self, operation, remote, **arguments):
        self.send(operation=self.vipl.Operation[operation], remote=self.vipl.Remote(*remote), **arguments)

    def write(self, remote, **arguments):
        self.access("RDMAWRITE", remote, **arguments)

    def post_at(self, address, handle):
        """Posts whatever is there."""
        from viaduct import _vipl
        _vipl.VipPostSend(self.vi.handle, address, handle)


def pair(client, server=lambda port: None, *, lost=True, server_attributes=None, **attributes):
    """Connects two VIs. `client` gets its port and the memory of the server's, (address, handle). `lost`: the
    connection ends then, and both wait for that. Returns the logs of the server and of the client."""
    service = free_number()

    def serve(wire):
        port = Port(**{**attributes, **(server_attributes or {})})
        server(port)
        request = port.wait(service, wire)
        request.accept(port.vi)
        wire.tell(f"{port.memory[:].address} {port.memory.handle}")
        wire.hear()
        if lost:
            port.wait_for("CONN_LOST")

    def ask(wire):
        port = Port(**attributes)
        if ON_LOOPBACK:
            hear_of_listener(wire, service)
        else:
            wire.hear()
        port.vi.connect_request(port.nic.net_address(service), TIMEOUT_S)
        client(port, tuple(int(word) for word in wire.hear().split()))
        if lost:
            port.wait_for("CONN_LOST")
        wire.tell()
    return run(serve, ask)


def client_says(log, result, *words, call="VipPostSend(0x"):
    said_once(log, f"info: {call}", ", descriptor 0x", f": {result}: ", *words)


# ---- What this end finds ---------------------------------------------------------------------------------------------

def set_length(raw, length):
    raw.DS(0).Local.Length = length
    raw.CS.Length = length


def local(field, value):
    return lambda raw: setattr(raw.DS(0).Local, field, value)


def control(field, value):
    return lambda raw: setattr(raw.CS, field, value)


@pytest.mark.parametrize("change, result, words", [
    (local("Handle", NO_SUCH_HANDLE), "PROTECTION", "data segment 0: there is no region 0x7fff0"),
    (lambda raw: set_length(raw, 160), "PROTECTION",
     "data segment 0: 160 bytes at 0x{address:x} reach 96 bytes beyond region {handle:#x}, which has 64 bytes at "),
    (control("Length", 63), "LENGTH", "CS.Length is 63, and the data segments have 64 bytes"),
    (control("Reserved", RESERVED), "FORMAT", "CS.Reserved is 0x5, not 0"),
    (control("Control", 0x10), "FORMAT", "CS.Control is 0x10 and has reserved bits"),
    (control("Control", 3), "FORMAT", "CS.Control is 0x3: no operation"),
    (control("SegCount", 5000), "LENGTH", "CS.SegCount is 5000, more than the maximum of the NIC, which is "),
    (lambda raw: set_length(raw, 4097), "LENGTH", "4097 bytes are more than the maximum of a transfer, which is 4096"),
], ids=lambda value: value if isinstance(value, str) else "")
def test_descriptor_with_an_error(change, result, words):
    place = {}

    def client(port, remote):
        print(port.memory[:].address, port.memory.handle, file=open(2, "w", closefd=False), flush=True)
        port.send(change)
    server_log, log = pair(client, max_transfer_size=4096)
    place["address"], place["handle"] = next(
        tuple(int(word) for word in line.split()) for line in log.splitlines() if line[0].isdigit())
    client_says(log, f"VIP_STATUS_{result}_ERROR", words.format(**place))
    said_once(log, "info: VI 0x", ": the connection ended: a request failed")
    said_once(server_log, "info: VI 0x", ": the connection ended: the peer")


def test_address_segment_with_a_reserved_field():
    def client(port, remote):
        port.write(remote, change=lambda raw: setattr(raw.DS(0).Remote, "Reserved", RESERVED))
    client_says(pair(client)[1], "VIP_STATUS_FORMAT_ERROR", "DS[0].Remote.Reserved is 0x5, not 0")


def test_rdma_read_at_the_unreliable_level():
    def client(port, remote):
        port.send(operation=port.vipl.Operation.RDMAREAD, remote=port.vipl.Remote(*remote))
        with pytest.raises(port.vipl.DescriptorError):
            port.vi.send_wait(TIMEOUT_S)
    log = pair(client, lost=False, reliability_level=1, enable_rdma_read=False)[1]
    client_says(log, "VIP_STATUS_FORMAT_ERROR", "an RDMA read needs a reliability level")


@pytest.mark.parametrize("offset, handle, words", [
    (8, None, "its address is not a multiple of 64"),
    (0, NO_SUCH_HANDLE, "MemoryHandle 0x7fff0 is not one of registered memory"),
    (1 << 20, None, "the descriptor is not inside the memory of handle 0x"),
])
def test_descriptor_that_cannot_be_read(offset, handle, words):
    def client(port, remote):
        descriptor = port.descriptor()
        port.post_at(descriptor.address + offset, descriptor.memory_handle if handle is None else handle)
        port.wait_for("POST_DESC")
    client_says(pair(client)[1], "the descriptor cannot be posted", words)


def test_descriptor_with_another_tag():
    def client(port, remote):
        ptag = port.nic.create_ptag()
        port.vi.post_send(ptag.descriptor(port.memory[:]))
        port.wait_for("POST_DESC")
    client_says(pair(client)[1], "the descriptor cannot be posted", "has another protection tag than the VI")


def test_memory_with_another_tag():
    def client(port, remote):
        memory = port.register(ptag=port.nic.create_ptag())
        port.vi.post_send(port.nic.ptag.descriptor(memory[:]))
        port.wait_for("CONN_LOST")
    client_says(pair(client, lost=False)[1], "VIP_STATUS_PROTECTION_ERROR", "belongs to another protection domain")


def test_memory_that_was_deregistered():
    def client(port, remote):
        memory = port.register()
        descriptor = port.nic.ptag.descriptor(memory[:])
        memory.deregister()
        port.vi.post_send(descriptor)
    client_says(pair(client)[1], "VIP_STATUS_PROTECTION_ERROR", "data segment 0: there is no region 0x")


def test_full_queue():
    def client(port, remote):
        for _ in range(port.nic.query().max_descriptors_per_queue + 1):
            port.vi.post_recv(port.descriptor())
        port.wait_for("VI_OVERRUN")
    client_says(pair(client)[1], "work queue overrun", "descriptors and room for no more", call="VipPostRecv(0x")


def test_full_completion_queue():
    def program(_):
        port = Port()
        port.vi = port.nic.create_vi(port.vipl.ViAttributes(), recv_cq=port.nic.create_cq(1))
        for _ in range(2):
            port.vi.post_recv(port.descriptor())
        port.vi.disconnect()
        for _ in range(2):
            with pytest.raises(port.vipl.DescriptorError):
                port.vi.recv_done()
        port.wait_for("CATASTROPHIC")
    log = run_alone(program)
    said_once(log, "warning: VIPL: completion queue 0x", " has overflowed: its 1 entries wait for VipCQDone or ",
              "of the receive queue of VI 0x")
    said_once(log, "info: VI 0x", " is in the Error state: its completion queue has overflowed")


def test_send_before_connecting():
    def program(wire):
        port = Port()
        port.send()
        with pytest.raises(port.vipl.DescriptorError):
            port.vi.send_wait(TIMEOUT_S)
    client_says(run(lambda wire: None, program)[1], "VIP_STATUS_DESC_FLUSHED_ERROR", "the endpoint is not connected")


# ---- What the other end finds ----------------------------------------------------------------------------------------

def refused(log, operation, *words):
    said_once(log, "info: VI 0x", f": the peer's {operation} was refused: ", *words)


def test_no_receive():
    server_log, log = pair(lambda port, remote: port.send())
    refused(server_log, "message", "no receive was posted for it; the peer is told: remote operation error")
    said_once(log, "info: V", " no receive")


def test_message_longer_than_its_receive():
    def server(port):
        port.vi.post_recv(port.nic.ptag.descriptor(port.memory[:40]))
    server_log, log = pair(lambda port, remote: port.send(), server)
    client_says(server_log, "VIP_STATUS_LENGTH_ERROR", "the message has 64 bytes, and the receive has room for 40; "
                "the peer is told: remote length error", call="VipPostRecv(0x")
    said_once(log, "the connection ended: the peer refused a request: the message is longer than its receive")


def test_receive_into_memory_that_is_not_there():
    def server(port):
        port.vi.post_recv(port.descriptor(local("Handle", NO_SUCH_HANDLE)))
    server_log, log = pair(lambda port, remote: port.send(), server)
    client_says(server_log, "VIP_STATUS_PROTECTION_ERROR", "data segment 0: there is no region 0x7fff0; the peer is ",
                call="VipPostRecv(0x")
    said_once(log, "the connection ended: the peer refused a request: ", "the receive failed")


def elsewhere(remote):
    return remote[0], NO_SUCH_HANDLE


def beyond(remote):
    return remote[0] + 32, remote[1]


@pytest.mark.parametrize("place, words", [
    (elsewhere, "the target has no region or window 0x7fff0"),
    (beyond, " reach 32 bytes beyond region 0x"),
])
def test_write_to_a_wrong_place(place, words):
    server_log, log = pair(lambda port, remote: port.write(place(remote)), reliability_level=4)
    refused(server_log, "RDMA write")
    client_says(log, "VIP_STATUS_RDMA_PROT_ERROR")
    said_once(server_log + log, words)  # the end that has checked the access


@pytest.mark.parametrize("of_memory", [True, False])
@pytest.mark.parametrize("access", ["write", "read"])
def test_access_without_the_right(access, of_memory):
    other = {"write": "read", "read": "write"}[access]

    def server(port):
        if of_memory:
            port.memory = port.register(**{f"enable_rdma_{other}": True})

    def client(port, remote):
        port.access(f"RDMA{access.upper()}", remote)
    server_log, log = pair(client, server, reliability_level=4, server_attributes={f"enable_rdma_{access}": of_memory})
    refused(server_log, f"RDMA {access}")
    said_once(log + server_log, f"does not permit remote {access}s", "region or window" if of_memory else "endpoint")
