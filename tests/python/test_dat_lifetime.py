# SPDX-License-Identifier: BSD-3-Clause
"""viaduct.dat: closing in any order and state, leaks, threads, and two processes."""
import copy
import dataclasses
import gc
import os
import pickle
import textwrap
import threading
import weakref

import pytest
from background import all_of
from checks import fails, leak_nothing
from dat_pair import AREA, DISCONNECTED, ESTABLISHED, TIMEOUT, Pair, Side, free_qual, ia, pair
from viaduct import dat

CYCLES = 100 if os.environ.get("VIADUCT_BACKEND") == "verbs" else 1000
THREADS = 8
MESSAGES = 50


# ---- Closing ---------------------------------------------------------------------------------------------------------

def test_closing_the_adapter_closes_all(ia):
    pair = Pair(ia, srq=True).connect()
    pair.server.srq.post_recv(pair.server.lmr[:8])
    pair.client.ep.post_send(pair.client.lmr[:8])
    cno = ia.cno_create(print)
    things = [pair.psp, cno, *(thing for side in (pair.client, pair.server) for thing in
                               (side.pz, side.lmr, side.ep, side.srq, side.received, side.connections))]
    ia.close()
    assert all(thing.closed for thing in things)
    for thing in things:
        thing.close()
        with fails(dat.ReturnType.INVALID_HANDLE):
            thing.free()


@pytest.mark.parametrize("part", ["pz", "received", "requested", "connections"])
def test_closing_what_a_connected_endpoint_is_made_of(pair, part):
    pair.client.ep.post_recv(pair.client.lmr[:8])
    with fails(dat.ReturnType.INVALID_STATE):
        getattr(pair.client, part).free()
    getattr(pair.client, part).close()
    assert pair.client.ep.closed
    assert pair.server.connection() == DISCONNECTED


def test_closing_what_an_endpoint_is_not_made_of_any_more(ia):
    side = Side(ia)
    side.ep.modify(recv_evd_handle=side.requested)
    side.received.free()
    assert not side.ep.closed
    side.ep.modify(recv_evd_handle=0, request_evd_handle=0)
    side.requested.free()
    side.connections.close()
    assert side.ep.closed


def test_closing_endpoints_in_each_state(ia):
    pair = Pair(ia)
    asking = pair.client.new_ep()
    request = pair.request(ep=asking).cr
    asking.close()
    request.close()
    reserved = pair.server.new_ep()
    rsp = ia.rsp_create(free_qual(), reserved, pair.server.requests_for_connection)
    reserved.close()
    assert rsp.closed
    asked = pair.server.new_ep()
    rsp = ia.rsp_create(free_qual(), asked, pair.server.requests_for_connection)
    request = pair.request(qual=rsp.conn_qual).cr
    asked.close()
    assert request.closed
    assert pair.client.connection() == dat.EventNumber.CONNECTION_EVENT_PEER_REJECTED


def test_closing_an_endpoint_that_the_provider_made(ia):
    pair = Pair(ia)
    psp = ia.psp_create_any(pair.server.requests_for_connection, dat.PspFlags.PROVIDER)
    request = pair.request(qual=psp.conn_qual).cr
    request.ep.close()
    assert request.closed
    assert pair.client.connection() == dat.EventNumber.CONNECTION_EVENT_PEER_REJECTED


def test_closing_the_adapter_whose_evd_another_one_uses(ia):
    other = dat.ia_open(async_evd=ia.async_evd)
    assert other.async_evd is ia.async_evd
    ia.close()
    assert other.closed


def test_parents_live_as_long_as_their_children():
    ep = Pair(dat.ia_open()).connect().client.ep
    gc.collect()
    assert ep.state in (dat.EpState.CONNECTED, dat.EpState.DISCONNECTED)  # the other end may be gone
    ia = weakref.ref(ep.ia)
    assert not ia().closed
    del ep
    gc.collect()
    assert ia() is None


def test_a_notification_object_is_collected_with_its_evd(monkeypatch):
    problems = []
    monkeypatch.setattr("sys.unraisablehook", problems.append)
    ia = dat.ia_open()
    ring = [ia.cno_create()]
    ring += [ia.evd_create(4, dat.EvdFlags.SOFTWARE, ring[0]), ring]
    del ring
    gc.collect()
    assert not problems
    ia.free()


def test_events_do_not_name_what_is_closed(pair):
    event = pair.send(b"last")
    assert event.ep is pair.server.ep
    pair.server.ep.close()
    assert event.ep is None


def test_copies_of_events_have_the_same_objects(ia):
    evd = ia.evd_create(4, dat.EvdFlags.SOFTWARE)
    evd.post_se(1)
    event = evd.wait(TIMEOUT)
    for evd_of_copy in (dataclasses.asdict(event)["evd"], copy.copy(event).evd, copy.deepcopy(event).evd,
                        copy.copy(evd)):
        assert evd_of_copy is evd
    with pytest.raises(TypeError, match="cannot pickle 'Evd' object"):
        pickle.dumps(event)


def test_buffers_live_as_long_as_their_regions(ia):
    class Buffer(bytearray):
        pass
    buffer = Buffer(64)
    known = weakref.ref(buffer)
    lmr = ia.lmr_create(buffer, ia.pz_create())
    del buffer
    assert known() is not None
    lmr.close()
    del lmr
    gc.collect()
    assert known() is None


def test_pieces_keep_their_region_open(ia):
    piece = ia.lmr_create(bytearray(64), ia.pz_create())[:]
    gc.collect()
    assert not piece.lmr.closed
    assert piece.lmr.query().length == 64


# ---- Leaks -----------------------------------------------------------------------------------------------------------

def test_cycles_leak_nothing(ia):
    def cycle():
        pair = Pair(ia).connect()
        pair.send(b"once")
        pair.client.connections.fileno()
        for thing in (pair.client.pz, pair.server.pz, pair.psp):
            thing.close()
        for side in (pair.client, pair.server):
            for evd in (side.requests_for_connection, side.connections, side.received, side.requested):
                evd.close()
    leak_nothing(cycle, CYCLES, more_mappings=CYCLES // 20, more_objects=CYCLES // 20)


# ---- Threads ---------------------------------------------------------------------------------------------------------

def test_threads_with_pairs_of_their_own(ia):
    def work():
        pair = Pair(ia).connect()
        for number in range(MESSAGES):
            pair.send(b"message %d" % number)
        pair.client.pz.close()
        assert pair.server.connection() == DISCONNECTED
    all_of([work] * THREADS)


def test_threads_that_share_an_endpoint(ia):
    pair = Pair(ia, attributes=dat.EpAttr(max_recv_dtos=THREADS, max_request_dtos=THREADS)).connect()
    client, server = pair.client, pair.server
    free = threading.Semaphore(THREADS)
    for _ in range(THREADS):
        server.ep.post_recv(server.lmr[:8])

    def send():
        for number in range(MESSAGES):
            free.acquire()
            client.ep.post_send(client.lmr[:8], cookie=number)

    def receive():
        for _ in range(THREADS * MESSAGES):
            server.got()
            server.ep.post_recv(server.lmr[:8])

    def complete():
        for _ in range(THREADS * MESSAGES):
            client.done()
            free.release()
    all_of([send] * THREADS + [receive, complete])


def test_threads_that_close_the_same_things(ia):
    for _ in range(20):
        pair = Pair(ia).connect()
        things = [pair.client.ep, pair.client.received, pair.client.pz, pair.server.ep, pair.server.lmr, pair.psp]
        all_of([lambda start=start: [thing.close() for thing in things[start:] + things[:start]]
                for start in range(len(things))])
        assert all(thing.closed for thing in things)


def test_the_example_of_the_help(ia, capsys):
    qual, listening = free_qual(), threading.Event()
    text = dat.__doc__.replace("7204", str(qual)).replace("127.0.0.1", ia.address)
    server, client = (textwrap.dedent("    with" + part.split("\n\n")[0]) for part in text.split("    with")[1:])
    server = server.replace("    evd.wait", "    listening.set()\n    evd.wait", 1)

    def connect():
        assert listening.wait(TIMEOUT)
        exec(client, {"dat": dat})
    all_of([lambda: exec(server, {"dat": dat, "listening": listening}), connect])
    assert capsys.readouterr().out == "b'hello, receiver'\n"


# ---- Two processes ---------------------------------------------------------------------------------------------------

def serve(link, count):
    """Sends the location of its memory, accepts a connection, and sends `count` messages back. Returns what the peer
    has written."""
    with dat.ia_open() as ia:
        side = Side(ia)
        psp = ia.psp_create_any(side.requests_for_connection)
        side.ep.post_recv(side.lmr[:64])
        link.send((ia.address, psp.conn_qual, tuple(side.lmr.target(AREA // 2, AREA))))
        side.requests_for_connection.wait(TIMEOUT).cr.accept(side.ep)
        assert side.connection() == ESTABLISHED
        for _ in range(count):
            length = side.got().transfered_length
            side.lmr.view[64:64 + length] = side.lmr.view[:length]
            side.ep.post_recv(side.lmr[:64])
            side.ep.post_send(side.lmr[64:64 + length])
            side.done()
        assert link.recv() == "enough"
        return bytes(side.lmr.view[AREA // 2:AREA // 2 + 5])


def connect(ia, server):
    address, conn_qual, target = server.receive()
    side = Side(ia)
    side.ep.connect(address, conn_qual, TIMEOUT)
    assert side.connection() == ESTABLISHED
    return side, dat.RmrTriplet(*target)


def test_between_processes(ia, peer_process):
    server = peer_process(serve, 3)
    side, target = connect(ia, server)
    for number in range(3):
        side.lmr.view[:9] = b"message %d" % number
        side.ep.post_recv(side.lmr[64:128])
        side.ep.post_send(side.lmr[:9])
        side.done()
        length = side.got().transfered_length
        assert bytes(side.lmr.view[64:64 + length]) == b"message %d" % number
    side.ep.post_rdma_write(side.lmr[:5], target)
    side.done()
    server.send("enough")
    assert server.result() == b"messa"


def test_a_peer_that_is_killed(ia, peer_process):
    server = peer_process(serve, 3)
    side, _ = connect(ia, server)
    side.ep.post_recv(side.lmr[64:128])
    server.kill()
    assert side.connection() in (DISCONNECTED, dat.EventNumber.CONNECTION_EVENT_BROKEN)
    assert side.received.wait(TIMEOUT).status is dat.DtoCompletionStatus.ERR_FLUSHED
    side.ep.reset()
    assert side.ep.state is dat.EpState.UNCONNECTED
