# SPDX-License-Identifier: BSD-3-Clause
"""viaduct.vipl: every call and its errors."""
import array
import itertools
import mmap
import pickle
import queue
import re
import textwrap
import weakref

import numpy
import pytest
import viaduct
from background import TIMEOUT, Background
from programs import MANUAL
from vipl_pair import (RDMA, connect, connected, errors_of, free_discriminator, must_fail, nic, pair, region, repeated,
                       request)
from viaduct import _vipl, vipl
from viaduct.vipl import ReturnCode

OPEN = vipl.MemAttributes(enable_rdma_write=True, enable_rdma_read=True)


# ---- NICs ----

def test_nics_have_attributes(nic):
    attributes = nic.query()
    assert attributes == nic.attributes
    assert attributes.name.startswith("VINIC") and attributes.thread_safe
    assert len(attributes.local_nic_address) in (4, 16)
    assert vipl.ReliabilityLevel.RELIABLE_DELIVERY in attributes.reliability_level_support


def test_unknown_nic_is_refused():
    error = must_fail(ReturnCode.INVALID_PARAMETER, vipl.open_nic, "no such NIC")
    assert (error.call, error.name) == ("VipOpenNic", "VIP_INVALID_PARAMETER")
    assert error.text.endswith(": no NIC with that name: no such NIC")
    assert isinstance(error, viaduct.Error)


def test_calls_after_the_end_have_an_invalid_handle():
    nic = vipl.open_nic()
    vi, cq, ptag, region = nic.create_vi(), nic.create_cq(), nic.create_ptag(), nic.register_mem(64)
    discriminator = free_discriminator()
    nic.close()
    assert all(end.closed for end in (vi, cq, ptag, region, nic))
    for call in (nic.query, nic.create_cq, nic.create_ptag, nic.ns_init, nic.ns_shutdown, vi.query, vi.destroy,
                 vi.disconnect, vi.send_done, vi.recv_done, cq.destroy, cq.done, ptag.destroy, region.deregister,
                 region.query, lambda: cq.resize(4), lambda: vi.send_wait(1), lambda: vi.recv_wait(1),
                 lambda: cq.wait(1), lambda: nic.connect_wait(discriminator, 1), lambda: nic.error_callback(print),
                 lambda: vi.recv_notify(print), lambda: vi.send_notify(print), lambda: cq.notify(print),
                 lambda: vi.connect_request(vipl.NetAddress(b"1234", b"x"), 1), vi.connect_peer_wait,
                 vi.connect_peer_done, nic.query_system_management_info, nic.create_vi):
        must_fail(ReturnCode.INVALID_PARAMETER, call)
    must_fail(ReturnCode.INVALID_PARAMETER, setattr, vi, "user_data", 5)
    assert vi.user_data == 0
    nic.close()


def test_null_is_refused_where_a_structure_is_asked_for(nic):
    """The raw module passes None as NULL."""
    vi = nic.create_vi()
    for call in (lambda: _vipl.VipCreateVi(nic.handle, None, 0, 0), lambda: _vipl.VipConnectWait(nic.handle, None, 1),
                 lambda: _vipl.VipConnectRequest(vi.handle, None, None, 1),
                 lambda: _vipl.VipConnectPeerRequest(vi.handle, None, None, 1),
                 lambda: _vipl.VipRegisterMem(nic.handle, vi.handle, 1, None),
                 lambda: _vipl.VipSetViAttributes(vi.handle, None), lambda: _vipl.VipPostSend(vi.handle, 0, 0),
                 lambda: _vipl.VipPostRecv(vi.handle, 0, 0), lambda: _vipl.VipRecvNotify(vi.handle, 0, None),
                 lambda: _vipl.VipNSGetHostByAddr(nic.handle, None),
                 lambda: _vipl.VipConnectAccept(0, vi.handle), lambda: _vipl.VipConnectReject(0)):
        must_fail(ReturnCode.INVALID_PARAMETER, call)


def test_wrong_types_are_type_errors(nic):
    for call in (lambda: vipl.open_nic(7), lambda: nic.register_mem("text"), lambda: nic.create_cq("many"),
                 lambda: nic.connect_wait(1, "soon"), lambda: _vipl.VipCloseNic(None)):
        with pytest.raises(TypeError):
            call()
    with pytest.raises(ValueError):
        nic.connect_wait(1, float("nan"))
    with pytest.raises(OverflowError):
        nic.net_address(65536)


def test_errors_are_of_one_family_and_can_be_pickled(nic):
    with pytest.raises(TimeoutError) as raised:
        nic.connect_wait(free_discriminator(), 0)
    error = raised.value
    for kind in (vipl.TimeoutError, vipl.Error, viaduct.TimeoutError, viaduct.Error):
        assert isinstance(error, kind)
    assert (error.code, error.call) == (ReturnCode.TIMEOUT, "VipConnectWait")
    copy = pickle.loads(pickle.dumps(error))
    assert (copy.call, copy.code, str(copy)) == (error.call, error.code, str(error))


# ---- VIs, tags, completion queues ----

def test_attributes_of_a_vi(nic):
    ptag = nic.create_ptag()
    wanted = vipl.ViAttributes(vipl.ReliabilityLevel.RELIABLE_RECEPTION, 4096, 0, ptag, True, False)
    vi = nic.create_vi(wanted)
    assert vi.query() == (vipl.State.IDLE, wanted, True, True)
    changed = vipl.ViAttributes(max_transfer_size=8192, enable_rdma_read=True)
    vi.set_attributes(changed)
    assert vi.query().attributes == vipl.ViAttributes(max_transfer_size=8192, ptag=nic.ptag, enable_rdma_read=True)
    vi.user_data = 4711
    assert vi.user_data == 4711


@pytest.mark.parametrize("attributes, code", [
    (vipl.ViAttributes(reliability_level=vipl.ReliabilityLevel(6)), ReturnCode.INVALID_RELIABILITY_LEVEL),
    (vipl.ViAttributes(max_transfer_size=0), ReturnCode.INVALID_MTU),
    (vipl.ViAttributes(qos=1), ReturnCode.INVALID_QOS),
    (vipl.ViAttributes(vipl.ReliabilityLevel.UNRELIABLE, enable_rdma_read=True), ReturnCode.INVALID_RDMAREAD)])
def test_attributes_that_no_vi_can_have(nic, attributes, code):
    assert must_fail(code, nic.create_vi, attributes).call == "VipCreateVi"
    vi = nic.create_vi()
    assert must_fail(code, vi.set_attributes, attributes).call == "VipSetViAttributes"


def test_what_is_used_cannot_be_destroyed(nic):
    ptag, cq = nic.create_ptag(), nic.create_cq(4)
    vi = nic.create_vi(vipl.ViAttributes(ptag=ptag), recv_cq=cq)
    must_fail(ReturnCode.ERROR_RESOURCE, ptag.destroy)
    must_fail(ReturnCode.ERROR_RESOURCE, cq.destroy)
    vi.destroy()
    cq.destroy()
    ptag.destroy()
    assert vi.closed and cq.closed and ptag.closed
    must_fail(ReturnCode.INVALID_PTAG, nic.create_vi, vipl.ViAttributes(ptag=ptag))
    must_fail(ReturnCode.INVALID_PARAMETER, nic.create_vi, RDMA, cq)


def test_tags_that_failed_to_be_destroyed_are_as_they_were(nic):
    ptag = nic.create_ptag()
    vi = nic.create_vi(vipl.ViAttributes(ptag=ptag))
    region = nic.register_mem(64, vipl.MemAttributes(ptag))
    descriptor = ptag.descriptor(region[:])
    must_fail(ReturnCode.ERROR_RESOURCE, ptag.destroy)
    errors = errors_of(nic)
    vi.post_recv(descriptor)
    vi.disconnect()
    with pytest.raises(vipl.DescriptorError) as raised:
        vi.recv_wait(TIMEOUT)
    assert raised.value.descriptor is descriptor and errors.empty()


def test_what_has_another_tag_belongs_to_it(nic):
    before, after = nic.create_ptag(), nic.create_ptag()
    vi = nic.create_vi(vipl.ViAttributes(ptag=before))
    vi.set_attributes(vipl.ViAttributes(ptag=after))
    before.destroy()
    errors = errors_of(nic)
    vi.post_recv(nic.register_mem(64, vipl.MemAttributes(after))[:])
    after.close()
    assert vi.closed and errors.empty()


def test_queues_have_sizes(nic):
    cq = nic.create_cq(4)
    cq.resize(8)
    assert cq.done() is None
    with pytest.raises(vipl.TimeoutError):
        cq.wait(0.01)
    must_fail(ReturnCode.INVALID_PARAMETER, cq.resize, 0)
    must_fail(ReturnCode.INVALID_PARAMETER, nic.create_cq, 0)
    must_fail(ReturnCode.ERROR_RESOURCE, nic.create_cq, nic.attributes.max_cq_entries + 1)


# ---- Memory ----

@pytest.mark.parametrize("make", [
    lambda: bytearray(4096), lambda: memoryview(bytearray(4096)), lambda: mmap.mmap(-1, 4096),
    lambda: array.array("d", bytes(4096)), lambda: numpy.zeros((8, 64)), lambda: viaduct.alloc(4096)])
def test_any_buffer_is_registered_without_a_copy(nic, pair, make):
    buffer = make()
    client, _ = pair
    with nic.register_mem(buffer, OPEN) as target, nic.register_mem(bytearray(b"12345678")) as source:
        client.post_send(source[:], vipl.Operation.RDMAWRITE, target.remote + 8)
        client.send_wait(TIMEOUT)
        assert bytes(memoryview(buffer).cast("B")[8:16]) == b"12345678"


def test_registered_memory_is_pinned(nic):
    memory = bytearray(64)
    region = nic.register_mem(memory)
    with pytest.raises(BufferError):
        memory.append(0)
    region.deregister()
    memory.append(0)
    assert region.closed
    must_fail(ReturnCode.INVALID_PARAMETER, region.query)


def test_attributes_of_memory(nic):
    ptag = nic.create_ptag()
    region = nic.register_mem(64, vipl.MemAttributes(ptag, enable_rdma_read=True))
    assert region.query() == vipl.MemAttributes(ptag, False, True)
    try:
        region.set_attributes(OPEN)
        assert region.query() == vipl.MemAttributes(nic.ptag, True, True)
        changed = True
    except vipl.Error as error:
        assert error.code == ReturnCode.ERROR_NOT_SUPPORTED
        changed = False
    ptag.close()
    assert region.closed != changed
    must_fail(ReturnCode.INVALID_PTAG, nic.register_mem, 64, vipl.MemAttributes(ptag))
    must_fail(ReturnCode.INVALID_PARAMETER, _vipl.VipRegisterMem, nic.handle, 0, 64, _vipl.VIP_MEM_ATTRIBUTES())


def test_what_is_only_read_can_be_sent_alone(nic, pair):
    client, server = pair
    memory = b"only read"
    with pytest.raises(ValueError):
        nic.register_mem(memory, OPEN)
    region = nic.register_mem(memory, vipl.MemAttributes(enable_rdma_read=True))
    with pytest.raises(ValueError):
        region.set_attributes(OPEN)
    with pytest.raises(ValueError):
        server.post_recv(region[:])
    with pytest.raises(ValueError):
        client.post_send(region[:], vipl.Operation.RDMAREAD, region.remote)
    target = nic.register_mem(64)
    server.post_recv(target[:])
    client.post_send(region[:])
    assert bytes(server.recv_wait(TIMEOUT).data) == memory
    client.send_wait(TIMEOUT)
    client.post_send(target[32:32 + len(memory)], vipl.Operation.RDMAREAD, region.remote)
    client.send_wait(TIMEOUT)
    assert bytes(target.view[32:32 + len(memory)]) == memory


# ---- Connections ----

def test_connection_shows_both_ends_to_each_other(nic):
    client = nic.create_vi(vipl.ViAttributes(max_transfer_size=4096, enable_rdma_write=True))
    server = nic.create_vi(vipl.ViAttributes(max_transfer_size=4096))
    discriminator = free_discriminator()
    asked = Background(request, client, nic.net_address(discriminator))
    asking = nic.connect_wait(discriminator, TIMEOUT)
    assert asking.remote_address == nic.net_address()
    assert asking.remote_attributes.enable_rdma_write and asking.remote_attributes.max_transfer_size == 4096
    asking.accept(server)
    assert not asked.result().enable_rdma_write
    assert (client.state, server.state) == (vipl.State.CONNECTED, vipl.State.CONNECTED)
    must_fail(ReturnCode.INVALID_PARAMETER, asking.reject)
    must_fail(ReturnCode.INVALID_STATE, client.destroy)
    must_fail(ReturnCode.INVALID_STATE, client.set_attributes, RDMA)
    must_fail(ReturnCode.INVALID_STATE, client.connect_request, nic.net_address(discriminator), 1)


@pytest.mark.parametrize("discriminator", [b"", b"abc", "a name", b"twelve bytes"])
def test_discriminators_are_any_bytes(nic, discriminator):
    client, server = nic.create_vi(), nic.create_vi()
    asked = Background(request, client, nic.net_address(discriminator))
    nic.connect_wait(discriminator, TIMEOUT).accept(server)
    asked.result()


def test_requests_that_fail(nic):
    vi = nic.create_vi()
    nobody = nic.net_address(free_discriminator())
    must_fail(ReturnCode.NO_MATCH, vi.connect_request, nobody, TIMEOUT)
    must_fail(ReturnCode.INVALID_PARAMETER, vi.connect_request, nobody, 0)
    must_fail(ReturnCode.INVALID_PARAMETER, vi.connect_request, vipl.NetAddress(b"x"), 1)
    must_fail(ReturnCode.INVALID_PARAMETER, nic.connect_wait, nic.net_address(1, "192.0.2.1"), 1)
    with pytest.raises(ValueError):
        nic.net_address(1, "nowhere")
    asked = Background(request, vi, nobody)
    nic.connect_wait(nobody, TIMEOUT).reject()
    must_fail(ReturnCode.REJECT, asked.result)
    asked = Background(request, vi, nobody)
    nic.connect_wait(nobody, TIMEOUT).close()
    must_fail(ReturnCode.REJECT, asked.result)


def test_peers_find_each_other(nic):
    left, right = nic.create_vi(), nic.create_vi()
    meeting = nic.net_address(free_discriminator())
    must_fail(ReturnCode.INVALID_STATE, left.connect_peer_done)
    must_fail(ReturnCode.INVALID_STATE, left.connect_peer_wait)
    left.connect_peer_request(meeting, TIMEOUT, local=meeting)
    assert left.connect_peer_done() is None
    assert left.state == vipl.State.CONNECT_PENDING
    right.connect_peer_request(meeting, TIMEOUT, local=meeting)
    assert isinstance(right.connect_peer_wait(), vipl.ViAttributes)
    assert isinstance(left.connect_peer_wait(), vipl.ViAttributes)
    assert left.state == vipl.State.CONNECTED


# ---- Transfers ----

def test_messages_arrive_in_order_in_the_objects_that_were_posted(nic, pair):
    client, server = pair
    inbox, words = nic.register_mem(256), nic.register_mem(bytearray(b"zero one two three"))
    posted = [server.post_recv(inbox[64 * index:64 * (index + 1)]) for index in range(4)]
    for first, last in ((0, 4), (5, 8), (9, 12), (13, 18)):
        sent = client.post_send(words[first:last])
        assert client.send_wait(TIMEOUT) is sent
        assert (sent.operation, sent.length) == (vipl.StatusOperation.SEND, last - first)
    got = [server.recv_wait(TIMEOUT) for _ in range(4)]
    assert got == posted and all(descriptor.done for descriptor in got)
    assert [bytes(descriptor.data) for descriptor in got] == [b"zero", b"one", b"two", b"three"]
    assert got[0].data.obj is inbox.view.obj


def test_immediate_data_come_along(pair, region):
    client, server = pair
    server.post_recv(region[:])
    client.post_send((), immediate=0xDEADBEEF)
    assert client.send_wait(TIMEOUT).immediate == 0xDEADBEEF
    received = server.recv_wait(TIMEOUT)
    assert (received.immediate, received.length, received.data) == (0xDEADBEEF, 0, b"")
    server.post_recv(region[:])
    client.post_send(region[0:1])
    assert server.recv_wait(TIMEOUT).immediate is None


def test_several_segments(nic, pair):
    client, server = pair
    source, target = nic.register_mem(bytearray(b"viaduct")), nic.register_mem(64)
    posted = server.post_recv([target[0:2], target[8:11], target[16:32]])
    client.post_send([source[0:3], source[3:7]])
    assert server.recv_wait(TIMEOUT) is posted
    assert [bytes(part) for part in posted.parts] == [b"vi", b"adu", b"ct"]
    assert bytes(posted.data) == b"viaduct"


def test_rdma_moves_what_it_is_told(nic, pair):
    client, server = pair
    table, local = nic.register_mem(bytearray(range(64)), OPEN), nic.register_mem(64)
    client.post_send(local[8:16], vipl.Operation.RDMAREAD, table.remote + 16)
    assert client.send_wait(TIMEOUT).operation == vipl.StatusOperation.RDMA_READ
    assert bytes(local.view[8:16]) == bytes(range(16, 24))
    server.post_recv(())
    client.post_send([local[8:12], local[12:16]], vipl.Operation.RDMAWRITE, table.remote, immediate=5, fence=True)
    client.send_wait(TIMEOUT)
    assert bytes(table.view[:8]) == bytes(range(16, 24))
    received = server.recv_wait(TIMEOUT)
    assert (received.operation, received.immediate) == (vipl.StatusOperation.REMOTE_RDMA_WRITE, 5)


def test_done_does_not_wait(pair, region):
    client, server = pair
    for done in (client.send_done, client.recv_done):
        with pytest.raises(vipl.DescriptorError) as raised:
            done()
        assert raised.value.descriptor is None
    posted = server.post_recv(region[:])
    assert server.recv_done() is None
    with pytest.raises(vipl.TimeoutError):
        server.recv_wait(0.01)
    client.post_send(region[0:3])
    while (received := server.recv_done()) is None:
        pass
    assert received is posted
    client.send_wait(TIMEOUT)


def test_descriptors_may_be_posted_again_but_not_twice(nic, pair, region):
    client, server = pair
    descriptor = client.nic.ptag.descriptor(region[0:4])
    for _ in range(3):
        server.post_recv(region[32:])
        client.post_send(descriptor)
        assert client.send_wait(TIMEOUT) is descriptor
        server.recv_wait(TIMEOUT)
    waiting = server.post_recv(region[:])
    with pytest.raises(ValueError):
        server.post_recv(waiting)
    with pytest.raises(ValueError):
        waiting.set(region[0:1])
    assert waiting.posted and not waiting.done


def test_descriptors_in_memory_of_the_program(nic, pair):
    client, server = pair
    region = nic.register_mem(viaduct.alloc(4096))
    sending = region.descriptor(0, region[1024:1028])
    receiving = region.descriptor(64, [region[2048:2050], region[2050:2112]])
    assert (sending.address, sending.memory_handle) == (region.remote.address, region.handle)
    region.view[1024:1028] = b"data"
    server.post_recv(receiving)
    client.post_send(sending)
    assert server.recv_wait(TIMEOUT) is receiving
    assert client.send_wait(TIMEOUT) is sending
    assert bytes(region.view[2048:2052]) == b"data"
    assert receiving.raw.CS.SegCount == 2
    for offset in (8, 4096 - 32):
        with pytest.raises(ValueError):
            region.descriptor(offset, region[0:1])
    with pytest.raises(ValueError):
        sending.set([region[0:1]] * 9)


def test_raw_structures_keep_their_descriptor(nic, region):
    descriptor = nic.ptag.descriptor(region[:8])
    known, control = weakref.ref(descriptor), descriptor.raw.CS
    del descriptor
    other = nic.ptag.descriptor(region[:16])
    control.Length = 5
    assert other.length == 16 and known().length == 5
    del control
    assert known() is None


def test_errors_of_descriptors(nic, pair):
    client, server = pair
    errors = errors_of(nic)
    other = nic.register_mem(64, vipl.MemAttributes(nic.create_ptag()))
    descriptor = client.post_send(other[:])
    with pytest.raises(vipl.DescriptorError) as raised:
        client.send_wait(TIMEOUT)
    assert raised.value.descriptor is descriptor
    assert vipl.Status.PROTECTION_ERROR in descriptor.status and not descriptor.done
    assert "PROTECTION_ERROR" in str(raised.value)
    lost = errors.get(timeout=TIMEOUT)
    assert (lost.error_code, lost.resource_code) == (vipl.ErrorCode.CONN_LOST, vipl.ResourceCode.VI)
    assert lost.vi in pair and lost.nic is nic and lost.cq is None and lost.descriptor is None


def test_odd_descriptors_are_found_out(nic, pair):
    client, _ = pair
    descriptor = nic.ptag.descriptor(nic.register_mem(64)[:])
    descriptor.raw.CS.Control = _vipl.VIP_CONTROL_OP_RESERVED
    client.post_send(descriptor)
    with pytest.raises(vipl.DescriptorError):
        client.send_wait(TIMEOUT)
    assert vipl.Status.FORMAT_ERROR in descriptor.status
    assert _vipl.VIP_DESCRIPTOR.at(descriptor.address).DS(0).Local.Length == 64
    assert _vipl.VIP_CONTROL_SEGMENT.at(descriptor.address).SegCount == 1


def test_disconnect_flushes(nic, pair):
    client, server = pair
    posted = server.post_recv(nic.register_mem(64)[:])
    server.disconnect()
    assert server.state == vipl.State.IDLE
    with pytest.raises(vipl.DescriptorError) as raised:
        server.recv_wait(TIMEOUT)
    assert raised.value.descriptor is posted
    assert vipl.Status.DESC_FLUSHED_ERROR in posted.status
    client.disconnect()
    connect(client, server)


def test_posting_without_a_connection(nic, region):
    vi = nic.create_vi()
    sent = vi.post_send(region[:])
    with pytest.raises(vipl.DescriptorError) as raised:
        vi.send_wait(TIMEOUT)
    assert raised.value.descriptor is sent and vipl.Status.DESC_FLUSHED_ERROR in sent.status
    vi.post_recv(region[:])
    must_fail(ReturnCode.INVALID_STATE, vi.destroy)


def test_posting_too_many(nic):
    vi = nic.create_vi()
    for _ in range(nic.attributes.max_descriptors_per_queue):
        vi.post_recv(())
    errors = errors_of(nic)
    one_more = vi.post_recv(nic.ptag.descriptor(()))
    error = errors.get(timeout=TIMEOUT)
    assert error.error_code is vipl.ErrorCode.VI_OVERRUN and error.vi is vi and error.descriptor is one_more
    assert not one_more.posted
    assert vi.state == vipl.State.ERROR


def test_completion_queues_tell_which_queue(nic, region):
    cq = nic.create_cq(16)
    client, server = connected(nic, RDMA, send_cq=cq, recv_cq=cq)
    receiving = server.post_recv(region[:])
    must_fail(ReturnCode.ERROR_RESOURCE, server.recv_wait, 1)
    must_fail(ReturnCode.ERROR_RESOURCE, server.recv_notify, print)
    client.post_send(region[0:4])
    entry = cq.wait(TIMEOUT)
    assert entry == (server, True) and entry.done() is receiving
    client.post_recv(region[:])
    sending = server.post_send(region[0:4])
    while (entry := cq.done()) is None:
        pass
    assert entry == (server, False) and entry.done() is sending


def test_closed_vis_have_no_entries(nic):
    cq = nic.create_cq()
    vi = nic.create_vi(recv_cq=cq)
    vi.close()
    assert cq._entry(vi.handle, True) is None


# ---- Surroundings ----

def test_names(nic, tmp_path):
    must_fail(ReturnCode.ERROR_NAMESERVICE, nic.ns_shutdown)
    must_fail(ReturnCode.ERROR_NAMESERVICE, nic.ns_get_host_by_name, "peer")
    hosts = tmp_path / "hosts"
    hosts.write_text("192.0.2.1 peer.example peer\n192.0.2.2 peer\n# nothing\n192.0.2.3 " + "h" * 400 + "\n")
    nic.ns_init(str(hosts))
    must_fail(ReturnCode.ERROR_NAMESERVICE, nic.ns_init)
    assert nic.ns_get_host_by_name("peer") == nic.net_address(b"", "192.0.2.1")
    assert nic.ns_get_host_by_name("peer", 1) == nic.net_address(b"", "192.0.2.2")
    must_fail(ReturnCode.ERROR_NAMESERVICE, nic.ns_get_host_by_name, "peer", 2)
    assert nic.ns_get_host_by_addr(nic.net_address(b"", "192.0.2.1")) == "peer.example"
    assert nic.ns_get_host_by_addr(nic.net_address(b"", "192.0.2.3")) == "h" * 400
    must_fail(ReturnCode.ERROR_NAMESERVICE, nic.ns_get_host_by_addr, nic.net_address(b"", "192.0.2.9"))
    nic.ns_shutdown()
    must_fail(ReturnCode.INVALID_PARAMETER, nic.ns_init, str(tmp_path / "missing"))


def test_autodiscovery(nic):
    assert nic.net_address() in nic.query_system_management_info()
    assert nic.query_system_management_info(0) == [nic.net_address()]
    must_fail(ReturnCode.ERROR_NOT_SUPPORTED, nic.query_system_management_info, info_type=99)


# ---- Notifications ----

def test_user_data_and_calls_that_the_objects_do_not_need(nic):
    """Uses the raw call if the method behaves differently."""
    vi = nic.create_vi()
    _vipl.VipSetUserData(vi.handle, 7)
    assert _vipl.VipGetUserData(vi.handle) == 7
    _vipl.VipErrorCallback(nic.handle, None, None)
    cq = nic.create_cq()
    assert _vipl.VipCQDone(cq.handle) is None


def test_notify(nic, pair):
    client, server = pair
    region, told = nic.register_mem(64), queue.Queue()
    posted = server.post_recv(region[:])
    server.recv_notify(lambda vi, descriptor: told.put((vi, descriptor)))
    sent = client.post_send(region[0:4])
    client.send_notify(lambda vi, descriptor: told.put((vi, descriptor)))
    assert {told.get(timeout=TIMEOUT), told.get(timeout=TIMEOUT)} == {(server, posted), (client, sent)}
    with pytest.raises(vipl.DescriptorError):
        server.recv_notify(print)


def test_notify_of_a_completion_queue(nic, region):
    cq, told = nic.create_cq(), queue.Queue()
    client, server = connected(nic, RDMA, recv_cq=cq)
    cq.notify(lambda queue_, entry: told.put((queue_, entry)))
    server.post_recv(region[:])
    client.post_send(region[0:4])
    queue_, entry = told.get(timeout=TIMEOUT)
    assert queue_ is cq and entry == (server, True)
    assert entry.done().length == 4


# ---- The manual ----

def test_the_example_of_the_manual_works(capsys):
    blocks = re.findall(r"^    with .*?(?=^\s*$)", vipl.__doc__, re.M | re.S)
    server, client = map(textwrap.dedent, blocks)
    serving = Background(exec, server, {"vipl": vipl})
    repeated(lambda: exec(client, {"vipl": vipl}))
    serving.result()
    assert capsys.readouterr().out == "b'hello, receiver'\n"


def names_in_the_manual():
    """Returns the (C name, Python name) pairs in docs/python.md."""
    for row in re.findall(r"^\| (`Vip.*) \| (.*) \|$", MANUAL.read_text(encoding="utf-8"), re.MULTILINE):
        calls, names = (re.findall(r"`([\w.]+)(?:\(\))?`", column) for column in row)
        yield from itertools.product(calls, names)


def test_the_manual_has_every_call(watched):
    pairs = list(names_in_the_manual())
    assert sorted({call for call, _ in pairs}) == sorted(watched["vipl"].names)
    for _, name in pairs:
        owner, _, attribute = name.rpartition(".")
        assert hasattr(getattr(vipl, owner) if owner else vipl, attribute) or name == "Nic.attributes", name


def test_every_call_was_made(uncalled):
    assert uncalled("vipl") == []
