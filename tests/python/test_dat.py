# SPDX-License-Identifier: BSD-3-Clause
"""viaduct.dat: each call of DAT 2.0, its results and its errors, between two ends in one process."""
import ctypes
import os
import pickle
import re
import socket

import pytest
import viaduct
from checks import fails
from dat_pair import AREA, ESTABLISHED, TIMEOUT, Pair, Side, free_qual, ia, of_extension, pair, succeeded
from programs import MANUAL, ROOT
from viaduct import _dat, dat
from viaduct.dat.errors import error_of

TCP = dat.Comm(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)


@pytest.fixture
def side(ia):
    return Side(ia)


def windows(pz):
    """Skips the test if the device does not support memory windows."""
    try:
        return pz.rmr_create()
    except dat.Error as error:
        if error.code is dat.ReturnType.MODEL_NOT_SUPPORTED and os.environ.get("VIADUCT_BACKEND") == "verbs":
            pytest.skip("the device has no memory windows")
        raise


# ---- Errors and the registry -----------------------------------------------------------------------------------------

def test_errors_have_code_subtype_and_names():
    with fails(dat.ReturnType.PROVIDER_NOT_FOUND, dat.ReturnSubtype.NAME_NOT_REGISTERED) as raised:
        dat.ia_open("no such adapter")
    error = raised.value
    assert (error.call, error.name) == ("dat_ia_openv", "DAT_PROVIDER_NOT_FOUND")
    assert error.text.startswith("DAT_NAME_NOT_REGISTERED: no adapter no such adapter, there are ")
    assert isinstance(error, viaduct.Error)
    copy = pickle.loads(pickle.dumps(error))
    assert (copy.code, copy.subtype, str(copy)) == (error.code, error.subtype, str(error))


def test_strerror_names_results():
    result = _dat.DAT_CLASS_ERROR | _dat.DAT_INVALID_STATE | _dat.DAT_INVALID_STATE_EP_CONNECTED
    assert dat.strerror(result) == ("DAT_INVALID_STATE", "DAT_INVALID_STATE_EP_CONNECTED")
    with fails(dat.ReturnType.INVALID_PARAMETER):
        dat.strerror(0x80770000)


def test_unknown_result_of_a_foreign_provider_is_an_internal_error():
    error = error_of("dat_ep_create", 0x80770000)
    assert error.code is dat.ReturnType.INTERNAL_ERROR
    assert "0x80770000" in error.name


def test_registry_lists_adapters():
    names = [entry.ia_name for entry in dat.registry_list_providers()]
    assert dat.DEFAULT_IA in names
    assert len(dat.registry_list_providers(1)) == 1
    assert len(dat.registry_list_providers(2**31 - 1)) == len(names)
    with fails(dat.ReturnType.INVALID_PARAMETER):
        dat.registry_list_providers(0)


def test_registry_takes_a_provider_of_the_program_and_gives_it_back():
    table = ctypes.create_string_buffer(4096)  # none of its functions is called
    info = dat.ProviderInfo("of-this-test")
    dat.registry_add_provider(ctypes.addressof(table), info)
    with fails(dat.ReturnType.PROVIDER_ALREADY_REGISTERED):
        dat.registry_add_provider(ctypes.addressof(table), info)
    dat.registry_remove_provider(ctypes.addressof(table), info)
    with fails(dat.ReturnType.PROVIDER_NOT_FOUND):
        dat.registry_remove_provider(ctypes.addressof(table), info)
    with fails(dat.ReturnType.INVALID_PARAMETER):
        dat.registry_add_provider(0, info)


def test_registry_tells_how_adapters_are_related(ia):
    assert dat.registry_providers_related(ia.name, ia.name) is not dat.HaRelationship.UNKNOWN
    assert dat.registry_providers_related("no such adapter", "nor such a one") is dat.HaRelationship.UNKNOWN


# ---- Adapters --------------------------------------------------------------------------------------------------------

def test_ia_tells_its_attributes(ia):
    attributes, provider = ia.query(), ia.query_provider()
    assert attributes.adapter_name == ia.name == dat.DEFAULT_IA
    assert attributes.ia_address_ptr == (ia.address, 0)
    assert attributes.max_evd_qlen > 0
    assert attributes.extension_supported is dat.Extension.IB
    assert provider.dapl_version_major == 2
    assert len(provider.evd_stream_merging_supported) == 6
    assert all(len(row) == 6 for row in provider.evd_stream_merging_supported)
    with fails(dat.ReturnType.INVALID_PARAMETER, dat.ReturnSubtype.INVALID_ARG3):
        ia.query(1 << 60)
    with fails(dat.ReturnType.INVALID_PARAMETER, dat.ReturnSubtype.INVALID_ARG5):
        ia.query_provider(1 << 60)


def test_ia_can_share_the_evd_for_asynchronous_events(ia):
    with dat.ia_open(async_evd=ia.async_evd) as other:
        assert other.async_evd is ia.async_evd
    assert not ia.async_evd.closed
    assert ia.async_evd.query().evd_flags == dat.EvdFlags.ASYNC
    with dat.ia_open(async_evd=dat.EVD_ASYNC_EXISTS) as other:
        assert other.async_evd is None
    with fails(dat.ReturnType.INVALID_STATE, dat.ReturnSubtype.INVALID_STATE_EVD_IN_USE):
        ia.async_evd.free()
    with fails(dat.ReturnType.INVALID_HANDLE, dat.ReturnSubtype.INVALID_HANDLE_EVD_ASYNC):
        dat.ia_open(async_evd=ia.evd_create(4, dat.EvdFlags.DTO))


def test_ia_of_a_version_that_nobody_has():
    with fails(dat.ReturnType.PROVIDER_NOT_FOUND, dat.ReturnSubtype.MAJOR_NOT_FOUND):
        dat.ia_open(version=(7, 0))


def test_ia_closes_gracefully_only_when_nothing_is_left(ia):
    pz = ia.pz_create()
    for flags in dat.CloseFlags.GRACEFUL, int(dat.CloseFlags.GRACEFUL):
        with fails(dat.ReturnType.INVALID_STATE, dat.ReturnSubtype.INVALID_STATE_IA_IN_USE):
            ia.close(flags)
    pz.free()
    ia.free()
    assert ia.closed and ia.async_evd.closed
    with fails(dat.ReturnType.INVALID_HANDLE, dat.ReturnSubtype.INVALID_HANDLE_IA):
        ia.query()


def test_ia_has_a_number_and_a_handle(ia):
    assert dat.get_ia_handle(dat.get_ia_handle(ia.handle)) == ia.handle
    with fails(dat.ReturnType.INVALID_HANDLE):
        dat.get_ia_handle(0)


def test_attributes_of_an_adapter_that_is_not_open():
    attributes, provider = dat.ib_open_query()
    with dat.ia_open() as ia:
        assert ia.query() == attributes and ia.query_provider() == provider
    with fails(dat.ReturnType.PROVIDER_NOT_FOUND):
        dat.ib_open_query("no such adapter")


def test_objects_have_a_type_and_a_context(ia):
    pz = ia.pz_create()
    assert pz.handle_type is dat.HandleType.PZ and ia.handle_type is dat.HandleType.IA
    assert pz.context == 0
    pz.context = 2**64 - 1
    assert pz.context == 2**64 - 1
    assert pz.query() == dat.PzParam(ia.handle)
    pz.close()
    for use in (lambda: pz.context, lambda: setattr(pz, "context", 1), lambda: pz.handle_type, pz.query, pz.free):
        with fails(dat.ReturnType.INVALID_HANDLE):
            use()


# ---- Memory; more of this in test_dat_memory.py ----------------------------------------------------------------------

def test_regions_tell_what_they_are_made_of(side):
    param = side.lmr.query()
    assert (param.ia_handle, param.pz_handle, param.length) == (side.ia.handle, side.pz.handle, len(side.lmr))
    side.lmr.close()
    with fails(dat.ReturnType.INVALID_HANDLE, dat.ReturnSubtype.INVALID_HANDLE_LMR):
        side.lmr.query()


def test_memory_is_synchronised(ia):
    lmr = ia.lmr_create(bytearray(64), ia.pz_create())
    ia.lmr_sync_rdma_read([lmr[:32], lmr[32:]])
    ia.lmr_sync_rdma_write([lmr[:]])
    lmr.close()
    for call in (ia.lmr_sync_rdma_read, ia.lmr_sync_rdma_write):
        with fails(dat.ReturnType.INVALID_PARAMETER):
            call([(0x1000, 8, 0xFFFFFFFF)])


# ---- Transfers -------------------------------------------------------------------------------------------------------

def test_messages(pair):
    event = pair.send(b"hello, receiver")
    assert (event.user_cookie, event.operation, event.ep) == (1, dat.Dtos.RECEIVE, pair.server.ep)
    assert event.event_number is dat.EventNumber.DTO_COMPLETION_EVENT
    assert event.evd is pair.server.received


def test_messages_of_several_pieces(pair):
    client, server = pair.client, pair.server
    server.ep.post_recv([server.lmr[:3], server.lmr[100:200]], cookie=2**64 - 1)
    client.lmr.view[:6] = b"abcdef"
    client.ep.post_send([client.lmr[4:6], client.lmr[:4], tuple(client.lmr[2:2])])
    event = server.got()
    assert (event.transfered_length, event.user_cookie) == (6, 2**64 - 1)
    assert bytes(server.lmr.view[:3]) == b"efa" and bytes(server.lmr.view[100:103]) == b"bcd"


def test_suppressed_completions(pair):
    pair.server.ep.post_recv(pair.server.lmr[:8])
    pair.client.ep.post_send(pair.client.lmr[:8], 1, dat.CompletionFlags.SUPPRESS)
    pair.server.got()
    pair.send(b"next")  # its completion is the first one


def test_rdma(pair):
    client, server = pair.client, pair.server
    client.lmr.view[:5] = b"write"
    client.ep.post_rdma_write(client.lmr[:5], server.lmr.target(64, 69), cookie=3)
    assert (client.done().operation, bytes(server.lmr.view[64:69])) == (dat.Dtos.RDMA_WRITE, b"write")
    client.ep.post_rdma_read(client.lmr[200:205], server.lmr.target(64, 69), cookie=4)
    event = client.done()
    assert (event.operation, event.user_cookie) == (dat.Dtos.RDMA_READ, 4)
    assert bytes(client.lmr.view[200:205]) == b"write"
    with fails(dat.ReturnType.LENGTH_ERROR):
        client.ep.post_rdma_write(client.lmr[:5], server.lmr.target(0, 4))
    with fails(dat.ReturnType.LENGTH_ERROR):
        client.ep.post_rdma_read(client.lmr[:5], server.lmr.target(0, 6))


def test_failed_transfers_tell_why_and_break_the_connection(pair):
    client = pair.client
    client.ep.post_rdma_write(client.lmr[:5], (0x1000, 5, 0x7FFFFF00), cookie=3)
    event = client.requested.wait(TIMEOUT)
    assert not event.ok and event.status is dat.DtoCompletionStatus.ERR_REMOTE_ACCESS
    assert client.connection() == dat.EventNumber.CONNECTION_EVENT_BROKEN


def test_posts_that_cannot_be(pair):
    client = pair.client
    unconnected = client.new_ep()
    for post in (lambda ep: ep.post_send(client.lmr[:8]),
                 lambda ep: ep.post_rdma_write(client.lmr[:8], client.lmr.target(0, 8)),
                 lambda ep: ep.post_rdma_read(client.lmr[:8], client.lmr.target(0, 8)),
                 lambda ep: ep.post_send_with_invalidate(client.lmr[:8], 1),
                 lambda ep: ep.post_rdma_read_to_rmr(client.lmr.target(0, 8), client.lmr.target(0, 8)),
                 lambda ep: ep.post_rdma_write_immed(client.lmr[:8], client.lmr.target(0, 8), 1),
                 lambda ep: ep.post_fetch_and_add(1, client.lmr[:8], client.lmr.target(8, 16)),
                 lambda ep: ep.post_cmp_and_swap(1, 2, client.lmr[:8], client.lmr.target(8, 16))):
        with fails(dat.ReturnType.INVALID_STATE, dat.ReturnSubtype.INVALID_STATE_EP_UNCONNECTED):
            post(unconnected)
    many = [client.lmr[:8]] * 65
    with fails(dat.ReturnType.INVALID_PARAMETER):
        client.ep.post_send(many)
    with fails(dat.ReturnType.INVALID_PARAMETER):
        client.ep.post_recv(many)
    with pytest.raises(TypeError):
        client.ep.post_send([(1, 2)])
    with pytest.raises(OverflowError):
        client.ep.post_send(client.lmr[:8], cookie=2**64)
    unconnected.close()
    with fails(dat.ReturnType.INVALID_HANDLE, dat.ReturnSubtype.INVALID_HANDLE_EP):
        unconnected.post_recv(client.lmr[:8])


# ---- RMRs ------------------------------------------------------------------------------------------------------------

def test_windows(pair):
    client, server = pair.client, pair.server
    rmr = windows(server.pz)
    assert rmr.query().rmr_scope in dat.RmrScope
    target = rmr.bind(server.lmr, server.lmr[64:128], server.ep, cookie=9)
    event = succeeded(server.requested.wait(TIMEOUT))
    assert isinstance(event, dat.RmrBindCompletionEvent)
    assert (event.rmr, event.user_cookie) == (rmr, 9)
    assert rmr.query().rmr_context == target.rmr_context
    assert rmr.query().lmr_triplet == server.lmr[64:128]
    client.lmr.view[:4] = b"here"
    client.ep.post_rdma_write(client.lmr[:4], target._replace(segment_length=4))
    client.done()
    assert bytes(server.lmr.view[64:68]) == b"here"
    with fails(dat.ReturnType.INVALID_STATE, dat.ReturnSubtype.INVALID_STATE_LMR_IN_USE):
        server.lmr.free()
    server.lmr.close()  # after the window
    assert rmr.closed
    with fails(dat.ReturnType.INVALID_HANDLE, dat.ReturnSubtype.INVALID_HANDLE_RMR):
        rmr.query()


@pytest.fixture
def moved(ia, pair):
    """A window of the server that has been bound to another region, whose event nobody has taken yet; the former region
    and its piece for peers; and the buffer of that region."""
    server = pair.server
    rmr = windows(server.pz)
    buffer = bytearray(AREA)
    former = ia.lmr_create(buffer, server.pz)
    target = rmr.bind(former, former[:], server.ep)
    server.done()
    rmr.bind(server.lmr, server.lmr[:], server.ep)
    return rmr, [former], target, buffer


def test_windows_keep_their_former_region(pair, moved):
    rmr, former, target, buffer = moved
    former.clear()
    with pytest.raises(BufferError):
        buffer.append(0)
    server = pair.server
    server.done()
    rmr.bind(server.lmr, server.lmr[:], server.ep)
    buffer.append(0)
    server.done()
    assert not rmr.closed


def test_closing_the_former_region_of_a_window(pair, moved):
    rmr, [former], target, buffer = moved
    former.close()
    assert former.closed and rmr.closed
    buffer.append(0)
    pair.client.ep.post_rdma_write(pair.client.lmr[:8], target._replace(segment_length=8))
    assert not pair.client.requested.wait(TIMEOUT).ok


def test_windows_that_the_peer_ends(pair):
    client, server = pair.client, pair.server
    windows(server.pz).free()
    rmr = server.pz.rmr_create_for_ep()
    target = rmr.bind(server.lmr, server.lmr[64:128], server.ep)
    succeeded(server.requested.wait(TIMEOUT))
    server.ep.post_recv(server.lmr[:8])
    client.ep.post_send_with_invalidate(client.lmr[:8], target.rmr_context, cookie=8)
    assert client.done().user_cookie == 8
    event = server.got()
    assert (event.operation, event.rmr_context) == (dat.Dtos.RECEIVE_WITH_INVALIDATE, target.rmr_context)


def test_reads_into_a_window(pair):
    client, server = pair.client, pair.server
    rmr = windows(client.pz)
    target = rmr.bind(client.lmr, client.lmr[64:72], client.ep)
    succeeded(client.requested.wait(TIMEOUT))
    server.lmr.view[:8] = b"from far"
    client.ep.post_rdma_read_to_rmr(target, server.lmr.target(0, 8), cookie=3)
    assert client.done().user_cookie == 3
    assert bytes(client.lmr.view[64:72]) == b"from far"


def test_windows_need_a_connection(side):
    with fails(dat.ReturnType.INVALID_STATE):
        windows(side.pz).bind(side.lmr, side.lmr[:8], side.ep)


# ---- Endpoints -------------------------------------------------------------------------------------------------------

def test_endpoint_tells_what_it_is_made_of(side):
    attributes = dat.EpAttr(max_recv_dtos=7, max_request_dtos=9, max_message_size=1000)
    ep = side.new_ep(attributes)
    param = ep.query()
    assert param.ep_state is dat.EpState.UNCONNECTED
    assert (param.ia_handle, param.pz_handle) == (side.ia.handle, side.pz.handle)
    assert (param.recv_evd_handle, param.request_evd_handle) == (side.received.handle, side.requested.handle)
    assert (param.ep_attr.max_recv_dtos, param.ep_attr.max_request_dtos) == (7, 9)
    assert param.ep_attr.max_message_size == 1000
    assert ep.get_status() == (dat.EpState.UNCONNECTED, True, True)
    ep.post_recv(side.lmr[:8])
    assert ep.get_status() == (dat.EpState.UNCONNECTED, False, True)


def test_endpoint_can_be_modified(side):
    ep = side.new_ep()
    ep.modify(max_recv_dtos=5, recv_evd_handle=side.requested, comm=TCP)
    param = ep.query()
    assert (param.ep_attr.max_recv_dtos, param.recv_evd_handle, param.comm) == (5, side.requested.handle, TCP)
    with pytest.raises(TypeError):
        ep.modify(no_such_field=1)
    with pytest.raises(OverflowError):
        ep.modify(max_recv_dtos=2**31)
    with fails(dat.ReturnType.INVALID_PARAMETER):
        ep.modify(ep_state=int(dat.EpState.CONNECTED))


def test_endpoints_that_cannot_be(side):
    with fails(dat.ReturnType.INVALID_PARAMETER, dat.ReturnSubtype.INVALID_ARG6):
        side.new_ep(dat.EpAttr(max_recv_dtos=2**30))
    with fails(dat.ReturnType.INVALID_HANDLE, dat.ReturnSubtype.INVALID_HANDLE_EVD_CONN):
        side.ia.ep_create(side.pz, side.received, side.requested, side.received)


def test_endpoint_is_freed_only_once(side):
    side.ep.free()
    assert side.ep.closed
    for call in (side.ep.free, side.ep.reset, side.ep.disconnect, side.ep.query, side.ep.get_status,
                 lambda: side.ep.modify(max_recv_dtos=1), lambda: side.ep.connect(side.ia.address, 1),
                 lambda: side.ep.dup_connect(side.ep), lambda: side.ep.common_connect(side.ia.address, 1)):
        with fails(dat.ReturnType.INVALID_HANDLE, dat.ReturnSubtype.INVALID_HANDLE_EP):
            call()


def test_endpoint_tells_how_many_receives_it_has(side):
    side.ep.post_recv(side.lmr[:8])
    assert side.ep.recv_query() == (1, _dat.DAT_VALUE_UNKNOWN)


def test_endpoint_has_no_watermarks(ia):
    side = Side(ia, srq=True)
    assert side.ep.recv_query() == (_dat.DAT_VALUE_UNKNOWN, _dat.DAT_VALUE_UNKNOWN)
    side.ep.set_watermark(_dat.DAT_WATERMARK_INFINITE, _dat.DAT_WATERMARK_INFINITE)
    with fails(dat.ReturnType.MODEL_NOT_SUPPORTED):
        side.ep.set_watermark(4, 8)


def test_shared_receive_queue(ia):
    pair = Pair(ia, srq=True).connect()
    srq = pair.server.srq
    srq.post_recv(pair.server.lmr[:100], cookie=11)
    pair.client.ep.post_send(pair.client.lmr[:8])
    assert pair.server.got().user_cookie == 11
    srq.resize(32)
    srq.set_lw(1)
    param = srq.query()
    assert param.srq_state is dat.SrqState.OPERATIONAL and param.low_watermark == 1 and param.max_recv_dtos >= 32
    with fails(dat.ReturnType.INVALID_PARAMETER):
        srq.set_lw(-1)
    with fails(dat.ReturnType.INVALID_PARAMETER):
        srq.resize(0)
    with fails(dat.ReturnType.INVALID_STATE, dat.ReturnSubtype.INVALID_STATE_SRQ_IN_USE):
        srq.free()
    srq.close()
    assert pair.server.ep.closed
    with fails(dat.ReturnType.INVALID_HANDLE, dat.ReturnSubtype.INVALID_HANDLE_SRQ):
        srq.post_recv(pair.server.lmr[:8])


def test_low_watermark_is_told_to_the_adapter(ia):
    pair = Pair(ia, srq=True).connect()
    pair.server.srq.post_recv(pair.server.lmr[:8])
    pair.server.srq.post_recv(pair.server.lmr[:8])
    pair.server.srq.set_lw(2)
    pair.client.ep.post_send(pair.client.lmr[:8])
    event = ia.async_evd.wait(TIMEOUT)
    assert isinstance(event, dat.AsynchErrorEvent)
    assert (event.object, event.reason) == (pair.server.srq, dat.SrqAsyncErrorReason.LOW_WATERMARK_EVENT)


# ---- Connecting; more of this in test_dat_connections.py -------------------------------------------------------------

def test_requests_are_rejected(ia):
    pair = Pair(ia)
    request = pair.request().cr
    request.reject(b"no")
    assert request.closed
    event = pair.client.connections.wait(TIMEOUT)
    assert event.event_number is dat.EventNumber.CONNECTION_EVENT_PEER_REJECTED
    assert event.private_data.startswith(b"no")
    for call in (request.reject, request.query, lambda: request.accept(pair.server.ep), lambda: request.handoff(1)):
        with fails(dat.ReturnType.INVALID_HANDLE, dat.ReturnSubtype.INVALID_HANDLE_CR):
            call()


def test_handed_over_requests(ia):
    pair = Pair(ia)
    other = ia.psp_create(free_qual(), pair.server.requests_for_connection)
    request = pair.request().cr
    with fails(dat.ReturnType.INVALID_PARAMETER):
        request.handoff(free_qual())
    request.handoff(other.conn_qual)
    assert request.closed
    event = pair.server.requests_for_connection.wait(TIMEOUT)
    assert event.sp_handle == other.handle
    event.cr.accept(pair.server.ep)
    assert pair.client.connection() == ESTABLISHED


def test_public_service_points(side):
    evd = side.requests_for_connection
    psp = side.ia.psp_create_any(evd)
    assert psp.query() == dat.PspParam(side.ia.handle, psp.conn_qual, evd.handle, dat.PspFlags.CONSUMER)
    with fails(dat.ReturnType.CONN_QUAL_IN_USE):
        side.ia.psp_create(psp.conn_qual, evd)
    with fails(dat.ReturnType.INVALID_HANDLE, dat.ReturnSubtype.INVALID_HANDLE_EVD_CR):
        side.ia.psp_create_any(side.received)
    psp.free()
    side.ia.psp_create(psp.conn_qual, evd).close()
    with fails(dat.ReturnType.INVALID_HANDLE, dat.ReturnSubtype.INVALID_HANDLE_PSP):
        psp.query()


def test_reserved_service_points(ia):
    pair = Pair(ia)
    evd = pair.server.requests_for_connection
    rsp = ia.rsp_create(free_qual(), pair.server.ep, evd)
    assert rsp.query() == dat.RspParam(ia.handle, rsp.conn_qual, evd.handle, pair.server.ep.handle)
    assert pair.server.ep.state is dat.EpState.RESERVED
    with fails(dat.ReturnType.INVALID_STATE, dat.ReturnSubtype.INVALID_STATE_EP_RESERVED):
        pair.server.ep.free()
    pair.client.ep.connect(ia.address, rsp.conn_qual, TIMEOUT)
    request = evd.wait(TIMEOUT).cr
    assert request.ep is pair.server.ep
    with fails(dat.ReturnType.INVALID_HANDLE, dat.ReturnSubtype.INVALID_HANDLE_EP):
        request.accept(pair.server.ep)  # it is reserved for the request
    request.accept()
    assert pair.client.connection() == pair.server.connection() == ESTABLISHED
    with fails(dat.ReturnType.INVALID_HANDLE, dat.ReturnSubtype.INVALID_HANDLE_RSP):
        rsp.query()  # it was destroyed by its request
    another = ia.rsp_create(free_qual(), pair.server.new_ep(), evd)
    another.free()
    with fails(dat.ReturnType.INVALID_STATE):
        ia.rsp_create(free_qual(), pair.server.ep, evd)


def test_common_service_points(ia):
    pair = Pair(ia)
    port = free_qual()
    evd = pair.server.requests_for_connection
    csp = ia.csp_create(TCP, ia.address, port, evd)
    assert csp.query() == dat.CspParam(ia.handle, TCP, (ia.address, port), evd.handle)
    with fails(dat.ReturnType.PORT_IN_USE):
        ia.csp_create(TCP, ia.address, port, evd)
    with fails(dat.ReturnType.COMM_NOT_SUPPORTED):
        ia.csp_create(dat.Comm(socket.AF_UNIX, socket.SOCK_RAW, 77), ia.address, port, evd)
    pair.client.ep.modify(comm=TCP)
    pair.client.ep.common_connect(ia.address, port, TIMEOUT)
    event = evd.wait(TIMEOUT)
    assert event.sp_handle == csp.handle
    event.cr.accept(pair.server.ep)
    assert pair.client.connection() == ESTABLISHED
    csp.free()
    with fails(dat.ReturnType.INVALID_HANDLE):
        csp.query()


# ---- Events, and who is told of them; more of this in test_dat_events.py ---------------------------------------------

def test_software_events_and_the_state_of_an_evd(ia):
    evd = ia.evd_create(4, dat.EvdFlags.SOFTWARE)
    for pointer in (1, 2**64 - 1):
        evd.post_se(pointer)
    assert evd.wait(TIMEOUT).n_more == 1
    event = evd.dequeue()
    assert isinstance(event, dat.SoftwareEvent) and event.pointer == 2**64 - 1
    assert evd.dequeue() is None
    evd.disable()
    evd.set_unwaitable()
    assert evd.query().evd_state & (dat.EvdState.DISABLED | dat.EvdState.UNWAITABLE) == 10
    with fails(dat.ReturnType.INVALID_STATE, dat.ReturnSubtype.INVALID_STATE_EVD_UNWAITABLE):
        evd.wait(TIMEOUT)
    evd.enable()
    evd.clear_unwaitable()
    evd.resize(8)
    assert evd.query().evd_qlen == 8
    with fails(dat.ReturnType.INVALID_PARAMETER, dat.ReturnSubtype.INVALID_ARG2):
        evd.resize(0)
    with fails(dat.ReturnType.INVALID_PARAMETER):
        evd.post_se(0, dat.EventNumber.DTO_COMPLETION_EVENT)
    evd.free()
    for call in (evd.dequeue, evd.wait, evd.query, evd.enable, evd.disable, evd.set_unwaitable, evd.post_se,
                 evd.clear_unwaitable, lambda: evd.resize(1), lambda: evd.modify_cno(None), evd.free):
        with fails(dat.ReturnType.INVALID_HANDLE):
            call()


def test_full_evd(ia):
    evd = ia.evd_create(1, dat.EvdFlags.SOFTWARE)
    evd.post_se()
    with fails(dat.ReturnType.QUEUE_FULL):
        evd.post_se()
    with fails(dat.ReturnType.INSUFFICIENT_RESOURCES, dat.ReturnSubtype.RESOURCE_TEVD):
        ia.evd_create(ia.query().max_evd_qlen + 1)
    with fails(dat.ReturnType.INVALID_PARAMETER):
        ia.evd_create(1, dat.EvdFlags(0))


def test_notification_objects(ia):
    cno, with_descriptor = ia.cno_create(), ia.cno_fd_create()
    evd = ia.evd_create(4, dat.EvdFlags.SOFTWARE, cno)
    assert evd.query().cno_handle == cno.handle
    assert cno.query() == dat.CnoParam(ia.handle, dat.ProxyType.NONE, None)
    assert with_descriptor.query() == dat.CnoParam(ia.handle, dat.ProxyType.FD, with_descriptor.fileno())
    evd.post_se()
    assert cno.wait(TIMEOUT) is evd
    evd.modify_cno(with_descriptor)
    evd.post_se()
    assert with_descriptor.trigger() is evd
    assert with_descriptor.trigger() is None
    with fails(dat.ReturnType.INVALID_STATE, dat.ReturnSubtype.INVALID_STATE_CNO_IN_USE):
        with_descriptor.free()
    evd.modify_cno(None)
    with_descriptor.free()
    agent = print
    cno.modify_agent(agent)
    assert cno.query().proxy is agent
    cno.modify_agent(None)
    assert cno.query().proxy_type is dat.ProxyType.NONE
    cno.free()
    for call in (cno.wait, cno.trigger, cno.query, cno.free, lambda: cno.modify_agent(None)):
        with fails(dat.ReturnType.INVALID_HANDLE, dat.ReturnSubtype.INVALID_HANDLE_CNO):
            call()


# ---- All of it -------------------------------------------------------------------------------------------------------

def exported():
    """Returns the functions of libdat2.so.2: those that its headers declare, and one that they do not."""
    headers = ROOT / "api/udat/include/dat2"
    texts = [(headers / name).read_text() for name in ("dat.h", "udat.h", "dat_registry.h")]
    names = {"dats_get_ia_handle", *re.findall(r"^DAT_RETURN DAT_API (dat_\w+)\(", "\n".join(texts), re.M)}
    assert len(names) == 84
    return names


def test_every_call_of_dat_is_there():
    missing = {name for name in exported() if not hasattr(_dat, name)}
    assert not missing


def test_every_call_is_documented():
    documented = set(re.findall(r"`(dats?_\w+)`", MANUAL.read_text()))
    assert exported() <= documented


def test_every_call_was_made(uncalled):
    assert not [call for call in uncalled("dat") if not of_extension(call)]
