# SPDX-License-Identifier: BSD-3-Clause
"""viaduct.dat: the InfiniBand extension."""
import array
import ctypes

import pytest
from checks import fails
from dat_pair import TIMEOUT, Pair, ia, of_extension, pair
from viaduct import _dat, dat

ATOMIC = dat.MemPrivFlags.ALL | dat.MemPrivFlags.REMOTE_ATOMIC


def announced(ia, name):
    return dict(ia.query_provider().provider_specific_attr).get(name) == "TRUE"


def test_writes_with_immediate_data(pair):
    client, server = pair.client, pair.server
    server.ep.post_recv(server.lmr[:8], cookie=5)
    client.lmr.view[:3] = b"abc"
    client.ep.post_rdma_write_immed(client.lmr[:3], server.lmr.target(8, 11), 0xFFFFFFFF, cookie=6)
    received, sent = server.got(), client.done()
    assert isinstance(received, dat.IbDtoEvent) and isinstance(sent, dat.IbDtoEvent)
    assert (received.immed_data, received.user_cookie, received.transfered_length) == (0xFFFFFFFF, 5, 3)
    assert received.ext_type is dat.IbExtType.RDMA_WRITE_IMMED_DATA
    assert received.operation is dat.Dtos.IB_DTO_RECV_IMMED
    assert received.ext_status is dat.IbStatus.OP_SUCCESS
    assert sent.operation is dat.Dtos.IB_DTO_RDMA_WRITE_IMMED
    assert bytes(server.lmr.view[8:11]) == b"abc"


def test_atomics(ia):
    pair = Pair(ia, privileges=ATOMIC)
    if not announced(ia, _dat.DAT_IB_ATTR_FETCH_AND_ADD):
        pytest.skip("the adapter has no atomic operations")
    pair.connect()
    client, word = pair.client, pair.server.lmr.view[:8].cast("Q")
    word[0] = 40
    client.ep.post_fetch_and_add(2, client.lmr[:8], pair.server.lmr.target(0, 8), cookie=7)
    event = client.done()
    assert event.ext_type is dat.IbExtType.FETCH_AND_ADD and event.user_cookie == 7
    assert (client.lmr.view[:8].cast("Q")[0], word[0]) == (40, 42)
    client.ep.post_cmp_and_swap(42, 2**64 - 1, client.lmr[:8], pair.server.lmr.target(0, 8))
    assert client.done().ext_type is dat.IbExtType.CMP_AND_SWAP
    assert (client.lmr.view[:8].cast("Q")[0], word[0]) == (42, 2**64 - 1)


def test_a_refused_atomic(ia):
    if not announced(ia, _dat.DAT_IB_ATTR_FETCH_AND_ADD):
        pytest.skip("the adapter has no atomic operations")
    pair = Pair(ia, privileges=dat.MemPrivFlags.ALL).connect()
    pair.client.ep.post_fetch_and_add(2, pair.client.lmr[:8], pair.server.lmr.target(0, 8))
    event = pair.client.requested.wait(TIMEOUT)
    assert isinstance(event, dat.IbDtoEvent) and not event.ok
    assert event.status is dat.DtoCompletionStatus.ERR_REMOTE_ACCESS
    assert event.ext_status is dat.IbStatus.OP_ERR


def test_counters(pair, capfd):
    for _ in range(3):
        pair.send(b"counted")
    client = pair.client.ep
    assert client.query_counters()["POST_SEND"] == client.query_counter("POST_SEND") == 3
    assert client.query_counter("POST_SEND_DATA", reset=True) == 21
    assert client.query_counter("POST_SEND_DATA") == 0
    assert pair.client.ia.query_counter("EP_CREATE") == 2
    assert pair.client.requested.query_counters()["WAIT"] >= 3  # waits in slices
    evd = pair.client.ia.evd_create(4, dat.EvdFlags.SOFTWARE)
    for _ in range(3):
        evd.post_se()
        evd.wait(TIMEOUT)  # in one slice, because the event is available
    assert evd.query_counters()["WAIT"] == 3
    with pytest.raises(KeyError):
        client.query_counter("NO_SUCH_COUNTER")
    with fails(dat.ReturnType.INVALID_HANDLE):
        _dat.dat_ib_query_counters(pair.client.pz.handle, 0, False)
    client.print_counters("POST_SEND")
    ctypes.CDLL(None).fflush(None)
    assert "DCNT_EP_POST_SEND = 3" in capfd.readouterr().out


def test_counters_of_ports_are_not_there(ia):
    for call in (ia.start_counter, ia.stop_counter):
        with fails(dat.ReturnType.NOT_IMPLEMENTED):
            call(dat.IaCounterType.LNK)


def test_any_operation_of_an_extension(pair):
    with fails(dat.ReturnType.NOT_IMPLEMENTED):
        pair.client.ep.extension_op(0x777)
    with fails(dat.ReturnType.NOT_IMPLEMENTED):
        pair.client.ep.extension_op(dat.IbOp.UD_SEND_OP, 1, 2, 3)
    counters = array.array("Q", [0] * 200)
    address = counters.buffer_info()[0]
    pair.client.ep.extension_op(dat.IbOp.QUERY_COUNTERS_OP, _dat.DCNT_EP_CONNECT, address, 0)
    assert counters[_dat.DCNT_EP_CONNECT] == 1
    with pytest.raises(ValueError):
        pair.client.ep.extension_op(0, *range(9))


def test_every_call_was_made(uncalled):
    assert not [call for call in uncalled("dat") if of_extension(call)]
