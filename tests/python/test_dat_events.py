# SPDX-License-Identifier: BSD-3-Clause
"""viaduct.dat: waiting, with threads, signals, descriptors, agents and asyncio."""
import asyncio
import os
import select
import signal
import socket
import subprocess
import sys
import threading

import pytest
from background import Background, lets_others_run, runs, threads_that_call
from checks import fails
from dat_pair import DISCONNECTED, ESTABLISHED, TIMEOUT, Pair, Side, free_qual, ia, pair
from programs import python
from viaduct import dat


@pytest.fixture
def evd(ia):
    return ia.evd_create(16, dat.EvdFlags.SOFTWARE)


def test_an_evd_is_resized_while_connections_begin_and_end(ia):
    """Its events come from threads of the backend, which hold locks of their own."""
    events = ia.evd_create(64, dat.EvdFlags.DTO | dat.EvdFlags.RMR_BIND | dat.EvdFlags.CONNECTION)
    requests = ia.evd_create(16, dat.EvdFlags.CR)
    pz = ia.pz_create()
    client, server = (ia.ep_create(pz, events, events, events) for _ in range(2))
    psp = ia.psp_create_any(requests)

    def both_get(number):
        assert [events.wait(TIMEOUT).event_number for _ in (client, server)] == [number] * 2

    def connect_and_disconnect():
        for _ in range(200):
            client.connect(ia.address, psp.conn_qual, TIMEOUT)
            requests.wait(TIMEOUT).cr.accept(server)
            both_get(ESTABLISHED)
            client.disconnect()
            both_get(DISCONNECTED)
            client.reset()
            server.reset()
    connecting = Background(connect_and_disconnect)
    while connecting.runs():
        events.resize(64)
        events.resize(128)
    connecting.result()


# ---- Waiting in threads ----------------------------------------------------------------------------------------------

def test_time_outs_are_those_of_python(evd):
    for timeout in (0, 0.15):
        with pytest.raises(TimeoutError) as raised:
            evd.wait(timeout)
        assert isinstance(raised.value, dat.TimeoutError)
        assert raised.value.code is dat.ReturnType.TIMEOUT_EXPIRED and raised.value.call == "dat_evd_wait"


def test_an_event_of_another_thread_ends_a_wait(evd):
    waiter = Background(evd.wait, TIMEOUT)
    evd.post_se(7)
    assert waiter.result().pointer == 7


def test_a_wait_below_its_threshold_takes_nothing(evd):
    evd.post_se(1)
    with pytest.raises(TimeoutError):
        evd.wait(0.15, threshold=2)
    waiter = Background(evd.wait, TIMEOUT, 3)
    evd.post_se(2)
    evd.post_se(3)
    event = waiter.result()
    assert (event.pointer, event.n_more) == (1, 2)
    assert [evd.dequeue().pointer, evd.dequeue().pointer, evd.dequeue()] == [2, 3, None]
    for threshold in 17, 0, -1:
        with fails(dat.ReturnType.INVALID_PARAMETER, dat.ReturnSubtype.INVALID_ARG3):
            evd.wait(0, threshold)


def test_a_wait_ends_when_the_evd_does(ia):
    for end in (lambda evd: evd.free(), lambda evd: evd.set_unwaitable(), lambda evd: evd.close()):
        evd = ia.evd_create(4, dat.EvdFlags.SOFTWARE)
        waiter = Background(evd.wait)
        while evd.query_counter("WAIT") == 0:
            pass
        end(evd)
        with pytest.raises(dat.Error) as raised:
            waiter.result()
        assert raised.value.code in (dat.ReturnType.ABORT, dat.ReturnType.INVALID_STATE,
                                     dat.ReturnType.INVALID_HANDLE)  # freed between two slices of the wait


INTERRUPTED = """
import signal, threading
from viaduct import dat
ia = dat.ia_open()
evd = ia.evd_create(4, dat.EvdFlags.SOFTWARE)
cno = ia.cno_create()
for wait in (evd.wait, cno.wait):
    try:
        print("waiting", flush=True)
        wait()
    except KeyboardInterrupt:
        print("interrupted", flush=True)
"""


def test_ctrl_c_ends_a_wait():
    with subprocess.Popen([sys.executable, "-c", INTERRUPTED], stdout=subprocess.PIPE, text=True) as process:
        for _ in range(2):
            assert process.stdout.readline() == "waiting\n"
            process.send_signal(signal.SIGINT)
            assert process.stdout.readline() == "interrupted\n"
        assert process.wait(TIMEOUT) == 0


def test_other_threads_run_while_much_is_posted(ia, pair):
    source, target = (ia.lmr_create(bytearray(1 << 20), side.pz) for side in (pair.client, pair.server))

    def write():
        pair.client.ep.post_rdma_write(source[:], target.target())
        while pair.client.requested.dequeue() is None:
            pass
    assert lets_others_run(write)


# ---- Notification objects --------------------------------------------------------------------------------------------

def test_a_cno_waits_for_several_evds(ia):
    cno = ia.cno_create()
    evds = [ia.evd_create(4, dat.EvdFlags.SOFTWARE, cno) for _ in range(3)]
    with pytest.raises(TimeoutError) as raised:
        cno.wait(0.15)
    assert (raised.value.call, raised.value.code) == ("dat_cno_wait", dat.ReturnType.QUEUE_EMPTY)
    waiter = Background(cno.wait, TIMEOUT)
    evds[1].post_se()
    assert waiter.result() is evds[1]


def test_agents_are_called(ia):
    called, seen = threading.Event(), []

    def agent(evd):
        seen.append((evd, evd.dequeue().pointer))
        called.set()
    cno = ia.cno_create(agent)
    evd = ia.evd_create(4, dat.EvdFlags.SOFTWARE, cno)
    assert cno.query() == dat.CnoParam(ia.handle, dat.ProxyType.AGENT, agent)
    evd.post_se(5)
    assert called.wait(TIMEOUT) and seen == [(evd, 5)]
    again = threading.Event()
    cno.modify_agent(lambda evd: again.set())
    evd.post_se(6)
    assert again.wait(TIMEOUT)
    cno.modify_agent(None)
    evd.post_se(7)
    assert cno.wait(TIMEOUT) is evd
    cno.close()
    assert evd.query().cno_handle == 0


def test_what_agents_raise_is_reported(ia, monkeypatch):
    reported = threading.Event()
    monkeypatch.setattr(sys, "unraisablehook", lambda about: reported.set())

    def agent(evd):
        raise ValueError("of an agent")
    with ia.cno_create(agent) as cno:
        evd = ia.evd_create(4, dat.EvdFlags.SOFTWARE, cno)
        evd.post_se()
        assert reported.wait(TIMEOUT)


LEFT_BEHIND = """
import threading
from viaduct import dat
ia = dat.ia_open()
called = threading.Event()
cno = ia.cno_create(lambda evd: called.set())
evd = ia.evd_create(4, dat.EvdFlags.SOFTWARE, cno)
evd.post_se()
assert called.wait(60)
print("left")
"""


def test_agents_that_are_left_behind_end_with_the_program():
    assert python("-c", LEFT_BEHIND) == "left\n"


def test_raw_agents_that_are_left_behind_end_with_the_program():
    raw = LEFT_BEHIND.replace("from viaduct import dat", "from viaduct import _dat, dat")
    raw = raw.replace("ia.cno_create(lambda", "dat.Cno(ia, dat.Cno._make(_dat.dat_cno_create, ia.handle, lambda")
    raw = raw.replace("called.set())\n", "called.set()))\n")
    assert python("-c", raw) == "left\n"


def test_descriptors_can_be_polled(evd):
    poll = select.poll()
    poll.register(evd, select.POLLIN)
    assert poll.poll(0) == []
    for round_number in range(3):
        evd.post_se(round_number)
        assert poll.poll(TIMEOUT * 1000)
        assert evd.dequeue().pointer == round_number
        assert evd.dequeue() is None
        assert poll.poll(0) == []


def test_descriptors_of_completions_can_be_polled(pair):
    poll = select.poll()
    poll.register(pair.server.received, select.POLLIN)
    for _ in range(3):
        pair.server.ep.post_recv(pair.server.lmr[:8])
        pair.client.ep.post_send(pair.client.lmr[:8])
        assert poll.poll(TIMEOUT * 1000)
        while (event := pair.server.received.dequeue()) is None:
            assert poll.poll(TIMEOUT * 1000)
        assert event.ok and pair.server.received.dequeue() is None


def test_an_adapter_whose_errors_were_polled_closes_gracefully(ia):
    ia.async_evd.fileno()
    ia.free()


def test_who_has_a_cno_waits_for_that(ia):
    evd = ia.evd_create(4, dat.EvdFlags.SOFTWARE, ia.cno_create())
    with pytest.raises(ValueError):
        evd.fileno()
    with pytest.raises(ValueError):
        evd.cno.fileno()
    other = ia.evd_create(4, dat.EvdFlags.SOFTWARE)
    other.fileno()
    other.modify_cno(evd.cno)
    other.post_se()
    assert evd.cno.wait(TIMEOUT) is other


# ---- asyncio ---------------------------------------------------------------------------------------------------------

@runs
async def test_tasks_wait_for_events(evd):
    tasks = [asyncio.create_task(evd.wait_async(TIMEOUT)) for _ in range(3)]
    await asyncio.sleep(0)
    for number in range(3):
        evd.post_se(number)
    assert [event.pointer for event in await asyncio.gather(*tasks)] == [0, 1, 2]
    with pytest.raises(dat.TimeoutError):
        await evd.wait_async(0.01)


@runs
async def test_waits_count_what_tasks_have_set_aside(evd):
    task = asyncio.create_task(evd._await(lambda event: event.pointer == 2, TIMEOUT))
    await asyncio.sleep(0)
    for pointer in 1, 2:
        evd.post_se(pointer)
    assert (await task).pointer == 2
    for pointer in 3, 4, 5:
        evd.post_se(pointer)
    with fails(dat.ReturnType.INVALID_PARAMETER, dat.ReturnSubtype.INVALID_ARG3):
        evd.wait(0, threshold=17)
    for threshold, pointer in (1, 1), (3, 3), (1, 4):
        event = evd.wait(0, threshold)
        assert (event.pointer, event.n_more) == (pointer, 5 - pointer if pointer > 1 else 3)


@runs
async def test_tasks_wait_for_events_of_threads(evd):
    task = asyncio.create_task(evd.wait_async())
    await asyncio.sleep(0)
    await asyncio.to_thread(evd.post_se, 9)
    assert (await task).pointer == 9


@runs
async def test_a_cancelled_task_takes_no_event(evd):
    task = asyncio.create_task(evd.wait_async())
    await asyncio.sleep(0)
    evd.post_se(1)
    evd._distribute()  # the task has the event, but is cancelled before it runs
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert evd.wait(TIMEOUT).pointer == 1


@runs
async def test_what_came_for_a_cancelled_task_is_for_the_next_one(evd):
    first, second = (asyncio.create_task(evd.wait_async(TIMEOUT)) for _ in range(2))
    await asyncio.sleep(0)
    evd.post_se(1)
    evd._distribute()
    first.cancel()
    assert (await second).pointer == 1


@runs
async def test_a_task_whose_evd_is_closed_is_told(evd):
    task = asyncio.create_task(evd.wait_async())
    await asyncio.sleep(0)
    evd.close()
    with fails(dat.ReturnType.ABORT):
        await task


def test_an_evd_is_closed_although_the_loop_of_its_waiter_is_closed(evd):
    loop = asyncio.new_event_loop()
    task = loop.create_task(evd.wait_async())
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    evd.close()
    assert evd.closed
    task._log_destroy_pending = False


@runs
async def test_a_task_whose_adapter_is_closed_leaves_no_descriptor():
    ia = dat.ia_open()
    evd = ia.evd_create(4, dat.EvdFlags.SOFTWARE)
    lower = os.open(os.devnull, os.O_RDONLY)
    fd = evd.fileno()
    os.close(lower)  # a descriptor that is opened meanwhile has another number
    task = asyncio.create_task(evd.wait_async())
    await asyncio.sleep(0)
    ia.close()
    with fails(dat.ReturnType.ABORT):
        await task
    assert not asyncio.get_running_loop().remove_reader(fd)


@runs
async def test_cnos_can_be_awaited(ia):
    cno = ia.cno_fd_create()
    evd = ia.evd_create(4, dat.EvdFlags.SOFTWARE, cno)
    task = asyncio.create_task(cno.wait_async())
    await asyncio.sleep(0)
    evd.post_se()
    assert await task is evd
    with pytest.raises(dat.TimeoutError):
        await cno.wait_async(0.01)


async def serve(pair, count):
    for _ in range(count):
        event = await pair.server.requests_for_connection.wait_async()
        event_of_connection = await event.cr.accept_async(pair.server.new_ep(), b"welcome")
        assert event_of_connection.established


@runs
async def test_connections_are_awaited_side_by_side(ia):
    pair = Pair(ia)
    server = asyncio.create_task(serve(pair, 4))
    eps = [pair.client.new_ep() for _ in range(4)]
    events = await asyncio.gather(*(ep.connect_async(ia.address, pair.qual, TIMEOUT) for ep in eps))
    assert [event.ep for event in events] == eps  # each got its own, although they share an EVD
    assert all(event.private_data.startswith(b"welcome") for event in events)
    await server
    event = await eps[0].disconnect_async(timeout=TIMEOUT)
    assert event.event_number == DISCONNECTED and event.ep is eps[0]


@runs
async def test_all_events_of_one_evd(ia):
    """Tasks that wait for any event do not get events that other tasks wait for."""
    pz, evd = ia.pz_create(), ia.evd_create(64)
    client, server = (ia.ep_create(pz, evd, evd, evd) for _ in range(2))
    psp = ia.psp_create(free_qual(), evd)
    connecting = asyncio.create_task(client.connect_async(ia.address, psp.conn_qual, TIMEOUT))
    request = (await evd.wait_async()).cr
    accepted = await request.accept_async(server)
    assert accepted.ep is server and (await connecting).ep is client
    assert evd.dequeue() is None


@runs
async def test_failed_attempts_raise(ia):
    side = Side(ia)
    with pytest.raises(ConnectionError) as raised:
        await side.ep.connect_async(ia.address, free_qual(), TIMEOUT)
    assert isinstance(raised.value, dat.ConnectionFailed)
    assert raised.value.code is dat.EventNumber.CONNECTION_EVENT_NON_PEER_REJECTED
    assert raised.value.name == "DAT_CONNECTION_EVENT_NON_PEER_REJECTED"
    pair = Pair(ia)
    with pytest.raises(dat.TimeoutError):
        await pair.client.ep.connect_async(ia.address, pair.qual, timeout=0.1)


@runs
async def test_names_are_looked_up_beside_the_loop(ia, monkeypatch):
    threads = threads_that_call(monkeypatch, socket, "getaddrinfo")
    with pytest.raises(socket.gaierror):
        await Side(ia).ep.connect_async("no.such.host.invalid", 1)
    assert threads and threading.get_ident() not in threads


@runs
async def test_a_cancelled_attempt_is_given_up(ia):
    pair = Pair(ia)
    task = asyncio.create_task(pair.client.ep.connect_async(ia.address, pair.qual))
    request = (await pair.server.requests_for_connection.wait_async()).cr
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert pair.client.ep.state is dat.EpState.DISCONNECTED
    request.close()
    pair.client.ep.reset()
    server = asyncio.create_task(serve(pair, 1))
    event = await pair.client.ep.connect_async(ia.address, pair.qual)  # gets no event of the first attempt
    assert event.established
    await server
