# SPDX-License-Identifier: BSD-3-Clause
"""viaduct.rpma in programs: lifetimes, threads, signals, asyncio."""
import asyncio
import gc
import os
import signal
import threading

import pytest
from viaduct import _rpma, rpma

from background import (TIMEOUT, Background, all_of, end_in_use, join, runs, threads_that_call,
                        until_it_waits_for_a_child)
from checks import fails, leak_nothing
from programs import TESTS, python
from rpma_pair import ADDRESS, Pair, free_port, new_peer, pair, peer

EMULATED = os.environ.get("VIADUCT_BACKEND") == "verbs"


# ---- Lifetimes ----

def test_a_peer_closes_what_was_made_with_it(peer, pair):
    ep = peer.ep_listen(ADDRESS, free_port())
    request = peer.conn_req_new(ADDRESS, free_port())
    peer.close()
    for child in (pair.client, pair.server, pair.client_memory, ep, request):
        assert child.closed
        child.close()
    assert not pair.at_server.closed  # a description has no owner
    with fails(rpma.ErrorCode.INVAL):
        peer.mr_reg(8)


def test_children_keep_what_they_were_made_from():
    conn = Pair(new_peer()).client  # drops peer, memory and the other end
    gc.collect()
    assert conn.next_event(TIMEOUT) == rpma.ConnEvent.CLOSED
    cq = conn.cq
    del conn
    gc.collect()
    assert cq.get_wc() == []


def test_the_end_of_the_process_closes_everything():
    # Python itself aborts if a daemon thread uses a buffered stream when the interpreter exits.
    program = """
from rpma_pair import *
import os, threading
rpma.log_set_threshold(rpma.LogThreshold.THRESHOLD, rpma.LogLevel.DEBUG)
rpma.log_set_function(lambda level, text, *place: os.write(1, text.encode()))
threading.excepthook = lambda what: os.write(1, str(what.exc_value).encode())
pair = Pair(new_peer())
threading.Thread(target=pair.client.next_event, daemon=True).start()
print("the end")
"""
    # The thread may or may not be told that its connection was closed.
    assert "the end" in python("-c", program, cwd=TESTS)


@pytest.mark.skipif(EMULATED, reason="the server's system rejects for it")
def test_a_server_that_closes_without_an_answer_is_unreachable():
    program = """
from rpma_pair import *
from viaduct import _vipl, vipl
port = free_port()
asked = new_peer().conn_req_new(ADDRESS, port).connect()
nic = vipl.open_nic()
request = nic.connect_wait(port.to_bytes(2, "big"), TIMEOUT)
_vipl.VipCloseNic(nic.handle)  # Nic.close() would reject the request
assert asked.next_event(TIMEOUT) == rpma.ConnEvent.UNREACHABLE  # if the server is not back in time
request._released()
nic._released()
"""
    python("-c", program, cwd=TESTS, env=os.environ | {"VIADUCT_CONNECT_RETRY_MS": "1000"})


def test_cycles_leak_nothing(peer):
    def cycle():
        pair = Pair(peer, server_cfg=rpma.ConnCfg(rcq_size=4))
        pair.server.recv(pair.server_memory[:8])
        pair.send(b"word")
        assert pair.server.rcq.next_wc(TIMEOUT).ok
        for closing in (pair.client, pair.server, pair.client_memory, pair.server_memory):
            closing.close()
    leak_nothing(cycle, 10 if EMULATED else 1000)


# ---- Threads and signals ----

def test_eight_threads(peer):
    def work():
        for _ in range(2 if EMULATED else 30):
            pair = Pair(peer)
            pair.server.recv(pair.server_memory[:8])
            pair.send(b"word")
            assert pair.server.cq.next_wc(TIMEOUT).check().byte_len == 4
            pair.client.close()
            assert pair.server.next_event(TIMEOUT) == rpma.ConnEvent.CLOSED
    all_of([work] * 8)


def test_closing_under_calls_of_other_threads(peer):
    """Calls in other threads return either an error or a result."""
    large = peer.mr_reg(1 << 20)
    remote = rpma.MrRemote.from_descriptor(large.descriptor)

    def use(pair, begun):
        with pytest.raises(rpma.Error) as raised:
            while True:
                pair.client.write(remote, 0, large[:], flags=rpma.Flags.COMPLETION_ON_ERROR)
                pair.client.recv(pair.client_memory[:8])
                pair.client.flush(remote, 0, 8)
                pair.client.cq.next_wc(TIMEOUT)
                pair.client.cq.get_wc(8)
                begun.set()
        assert raised.value.code in (rpma.ErrorCode.INVAL, rpma.ErrorCode.PROVIDER)

    for _ in range(1 if EMULATED else 20):
        pair = Pair(peer)
        begun = threading.Event()
        users = [Background(use, pair, begun) for _ in range(4)]
        begun.wait(TIMEOUT)
        pair.client.close()
        join(users)


ENDS = {
    "rpma_conn_delete": lambda peer: Pair(peer).client.delete,
    "rpma_conn_req_connect": lambda peer: peer.conn_req_new(ADDRESS, free_port()).connect,
}


@pytest.mark.parametrize("name, make", ENDS.items(), ids=ENDS)
def test_a_peer_is_closed_after_what_another_thread_ends(peer, monkeypatch, name, make):
    end, call, closing = make(peer), getattr(_rpma, name), []

    def end_while_the_peer_closes(*arguments):
        closing.append(until_it_waits_for_a_child(monkeypatch, peer.close))
        return call(*arguments)
    monkeypatch.setattr(_rpma, name, end_while_the_peer_closes)
    end()
    closing[0].result()
    assert peer.closed


RAW = {
    "conn_req": (lambda peer: peer.conn_req_new(ADDRESS, 1), [_rpma.rpma_conn_req_get_private_data]),
    "mr": (lambda peer: peer.mr_reg(64), [_rpma.rpma_mr_get_size, _rpma.rpma_mr_get_descriptor]),
    "srq": (lambda peer: peer.srq_new(), [_rpma.rpma_srq_get_rcq]),
}


@pytest.mark.parametrize("make, uses", RAW.values(), ids=RAW)
def test_raw_calls_on_what_another_thread_deletes(peer, make, uses, eager_threads):
    """A handle that a thread got from an object may outlive the object. Using it must raise an error."""
    def use(handle):
        for call in uses:
            try:
                call(handle)
            except rpma.Error as error:
                assert error.code is rpma.ErrorCode.INVAL, error

    end_in_use(lambda: make(peer), lambda thing: thing.close(), use, users=3, rounds=20 if EMULATED else 200,
               shown=lambda thing: thing._handle)


def test_closing_ends_waits(peer, pair):
    ep = peer.ep_listen(ADDRESS, free_port())
    waits = [pair.client.next_event, pair.client.cq.next_wc, pair.server.cq.wait, ep.next_conn_req]

    def wait(call):
        with pytest.raises(rpma.Error):
            call(timeout=TIMEOUT)
    waiting = [Background(wait, call) for call in waits]
    pair.client.close()
    pair.server.close()
    ep.close()
    join(waiting)


@pytest.mark.parametrize("name", ["next_event", "next_wc", "next_conn_req", "wait"])
def test_a_signal_ends_a_wait(peer, name):
    pair = Pair(peer, client_cfg=rpma.ConnCfg(compl_channel=True))
    ep = peer.ep_listen(ADDRESS, free_port())
    call = {"next_event": pair.client.next_event, "next_wc": pair.server.cq.next_wc, "wait": pair.client.wait,
            "next_conn_req": ep.next_conn_req}[name]
    main = threading.main_thread().ident
    timer = threading.Timer(0.2, lambda: signal.pthread_kill(main, signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        timer.start()
        call()
    timer.join()


def test_other_threads_run_during_a_wait(pair):
    pair.server.recv(pair.server_memory[:8])
    received = Background(pair.server.cq.next_wc, TIMEOUT)
    pair.send(b"word")
    received.result().check()


# ---- asyncio ----

@runs
async def test_asyncio(peer):
    async def serve(ep, memory):
        conn = await ep.accept_async(private_data=b"welcome", timeout=TIMEOUT)
        conn.recv(memory[:64])
        received = await conn.cq.next_wc_async(TIMEOUT)
        conn.send(memory[:received.byte_len])
        return await conn.next_event_async(TIMEOUT)

    async def ask(port, word):
        conn = await peer.connect_async(ADDRESS, port, timeout=TIMEOUT)
        assert conn.private_data.startswith(b"welcome")
        memory = peer.mr_reg(bytearray(word + bytes(64)))
        conn.recv(memory[len(word):], context=1)
        conn.send(memory[:len(word)], flags=rpma.Flags.COMPLETION_ON_ERROR)
        with pytest.raises(TimeoutError):
            await conn.next_event_async(0.01)
        await conn.cq.wait_async(TIMEOUT)
        [completion] = conn.cq.get_wc()
        conn.disconnect()
        assert await conn.next_event_async(TIMEOUT) == rpma.ConnEvent.CLOSED
        return bytes(memory.view[len(word):][:completion.byte_len])

    port = free_port()
    words = [b"zero", b"one", b"two"]
    with peer.ep_listen(ADDRESS, port) as ep:
        servers = [serve(ep, peer.mr_reg(64)) for _ in words]
        results = await asyncio.gather(*servers, *(ask(port, word) for word in words))
        with pytest.raises(TimeoutError):
            await ep.next_conn_req_async(timeout=0.01)
    assert results == [rpma.ConnEvent.CLOSED] * 3 + words


@runs
async def test_asyncio_with_a_shared_channel(peer):
    pair = Pair(peer, server_cfg=rpma.ConnCfg(rcq_size=4, compl_channel=True))
    pair.server.recv(pair.server_memory[:8], context=6)
    waiting = asyncio.create_task(pair.server.wait_async(TIMEOUT))
    await asyncio.sleep(0)
    pair.send(b"word")
    queue, is_rcq = await waiting
    assert is_rcq and queue.get_wc()[0].wr_id == 6


@runs
async def test_asyncio_tells_why_there_is_no_connection(peer):
    with pytest.raises(rpma.ConnectError) as raised:
        await peer.connect_async(ADDRESS, free_port(), timeout=TIMEOUT)
    assert raised.value.code == rpma.ConnEvent.REJECTED
    port = free_port()
    with peer.ep_listen(ADDRESS, port), pytest.raises(TimeoutError):
        await peer.connect_async(ADDRESS, port, timeout=0.01)


@runs
async def test_names_are_looked_up_beside_the_loop(peer, monkeypatch):
    threads = threads_that_call(monkeypatch, _rpma, "rpma_conn_req_new")
    with fails(rpma.ErrorCode.PROVIDER):
        await peer.connect_async("no.such.host.invalid", 1)
    assert threads and threading.get_ident() not in threads
