# SPDX-License-Identifier: BSD-3-Clause
"""viaduct.dat: successful and failing connection setup."""
import socket

import pytest
from checks import fails
from dat_pair import DISCONNECTED, ESTABLISHED, TIMEOUT, Pair, Side, free_qual, ia, pair
from viaduct import dat


def test_private_data_travel_both_ways(ia):
    pair = Pair(ia)
    event = pair.request(b"who is there")
    assert isinstance(event, dat.CrArrivalEvent)
    assert event.conn_qual == pair.qual and event.sp_handle == pair.psp.handle
    param = event.cr.query()
    assert param.private_data.startswith(b"who is there") and event.cr.private_data == param.private_data
    assert param.remote_ia_address_ptr[0] == ia.address
    event.cr.accept(pair.server.ep, b"it is me")
    event = pair.client.connections.wait(TIMEOUT)
    assert event.established and event.private_data.startswith(b"it is me") and event.ep is pair.client.ep
    too_much = bytes(ia.query_provider().max_private_data_size + 1)
    with fails(dat.ReturnType.INVALID_PARAMETER):
        pair.client.new_ep().connect(ia.address, pair.qual, private_data=too_much)


def test_requests_that_nobody_answers_are_rejected(ia):
    pair = Pair(ia)
    pair.request()
    assert pair.client.connection() == dat.EventNumber.CONNECTION_EVENT_PEER_REJECTED


def test_nobody_listens(ia):
    side = Side(ia)
    side.ep.connect(side.ia.address, free_qual(), TIMEOUT)
    assert side.connection() == dat.EventNumber.CONNECTION_EVENT_NON_PEER_REJECTED


def test_nobody_answers_in_time(ia):
    pair = Pair(ia)
    pair.client.ep.connect(ia.address, pair.qual, timeout=0.2)
    assert pair.client.connection() == dat.EventNumber.CONNECTION_EVENT_TIMED_OUT


def test_hosts_have_names(ia):
    with pytest.raises(socket.gaierror):
        Side(ia).ep.connect("no-such-host.invalid", 1)


def test_endpoints_connect_like_others(pair):
    client, server = pair.client.new_ep(), pair.server.new_ep()
    client.dup_connect(pair.client.ep, TIMEOUT, b"too")
    event = pair.server.requests_for_connection.wait(TIMEOUT)
    assert event.cr.private_data.startswith(b"too")
    event.cr.accept(server)
    assert pair.client.connection() == pair.server.connection() == ESTABLISHED
    with fails(dat.ReturnType.INVALID_STATE):
        client.dup_connect(pair.client.ep)


def test_endpoints_that_the_provider_makes(ia):
    pair = Pair(ia)
    psp = ia.psp_create_any(pair.server.requests_for_connection, dat.PspFlags.PROVIDER)
    request = pair.request(qual=psp.conn_qual).cr
    assert request.ep.state is dat.EpState.TENTATIVE_CONNECTION_PENDING
    request.ep.modify(pz_handle=pair.server.pz, recv_evd_handle=pair.server.received,
                      request_evd_handle=pair.server.requested, connect_evd_handle=pair.server.connections)
    request.accept()
    assert pair.client.connection() == pair.server.connection() == ESTABLISHED
    request.ep.post_recv(pair.server.lmr[:8])
    pair.client.ep.post_send(pair.client.lmr[:8])
    assert pair.server.got().ep is request.ep


def test_endpoint_can_be_connected_again(pair):
    pair.client.ep.disconnect(dat.CloseFlags.ABRUPT)
    assert pair.client.connection() == pair.server.connection() == DISCONNECTED
    assert pair.client.ep.state is dat.EpState.DISCONNECTED
    for ep in (pair.client.ep, pair.server.ep):
        ep.reset()
        assert ep.state is dat.EpState.UNCONNECTED
    pair.connect()
    pair.send(b"again")
