# SPDX-License-Identifier: BSD-3-Clause
"""viaduct.vipl: waits and their interruption, handlers, asyncio."""
import asyncio
import queue
import signal
import subprocess
import sys
import threading

import pytest
from background import TIMEOUT, Background, lets_others_run, runs
from vipl_pair import RDMA, connected, errors_of, free_discriminator, must_fail, nic, pair, region, request
from viaduct import _vipl, vipl
from viaduct.vipl import ReturnCode
from viaduct.vipl.waiting import Arrivals, result_in_time_async


# ---- Interruption ----

class Alarm(Exception):
    pass


@pytest.fixture
def alarm():
    """Raises Alarm on the signal, which is sent shortly afterwards."""
    def ring(number, frame):
        raise Alarm
    before = signal.signal(signal.SIGALRM, ring)
    yield lambda: signal.setitimer(signal.ITIMER_REAL, 0.05)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


async def give_up(vi):
    """Leaves a notify handler pending."""
    with pytest.raises(vipl.TimeoutError):
        await vi.recv_wait_async(0.001)


@pytest.mark.parametrize("kind", ["connect_wait", "recv_wait", "recv_wait behind a task", "cq.wait"])
def test_a_signal_ends_a_wait(nic, pair, alarm, kind):
    vi, cq = pair[0], nic.create_cq()
    vi.post_recv(nic.register_mem(64)[:])
    if kind == "recv_wait behind a task":
        asyncio.run(give_up(vi))
    with pytest.raises(Alarm):
        alarm()
        if kind == "connect_wait":
            nic.connect_wait(free_discriminator())
        elif kind == "cq.wait":
            cq.wait()
        else:
            vi.recv_wait()


def test_a_signal_ends_a_request(nic, alarm):
    vi, service = nic.create_vi(), free_discriminator()

    def take_and_ring():
        asking = nic.connect_wait(service, TIMEOUT)
        alarm()
        return asking
    with pytest.raises(Alarm):
        taken = Background(take_and_ring)
        request(vi, nic.net_address(service), None)
    assert vi.state == vipl.State.IDLE
    with pytest.raises(vipl.TimeoutError):
        taken.result().accept(nic.create_vi())


def test_a_signal_ends_the_wait_for_a_peer_but_not_the_request(nic, alarm):
    vi, other = nic.create_vi(), nic.create_vi()
    meeting = nic.net_address(free_discriminator())
    vi.connect_peer_request(meeting)
    with pytest.raises(Alarm):
        alarm()
        vi.connect_peer_wait()
    assert vi.connect_peer_done() is None
    other.connect_peer_request(meeting)
    other.connect_peer_wait()
    vi.connect_peer_wait()
    assert vi.state == vipl.State.CONNECTED


def test_a_server_is_not_deaf_while_it_looks_for_signals(nic):
    vi, service = nic.create_vi(), free_discriminator()

    class Look:
        """Called like an event during the wait; sends a connection request."""

        def is_set(self):
            with pytest.raises(vipl.TimeoutError):  # rather than NO_MATCH
                vi.connect_request(nic.net_address(service), 0.05)
            return True
    address = _vipl.VIP_NET_ADDRESS(*nic.net_address(service))
    must_fail(ReturnCode.NOT_DONE, _vipl.VipConnectWait, nic.handle, address, TIMEOUT, Look())


def test_stop_ends_a_wait_of_any_thread(nic):
    stop = threading.Event()
    address = _vipl.VIP_NET_ADDRESS(*nic.net_address(free_discriminator()))
    waiting = Background(_vipl.VipConnectWait, nic.handle, address, None, stop)
    stop.set()
    must_fail(ReturnCode.NOT_DONE, waiting.result)


def test_other_threads_run_while_one_waits(pair, region):
    client, server = pair
    server.post_recv(region[:])
    received = Background(server.recv_wait, TIMEOUT)
    client.post_send(region[0:4])
    assert received.result().length == 4


def test_other_threads_run_while_much_is_posted(nic, pair):
    client, _ = pair
    source, target = nic.register_mem(1 << 20), nic.register_mem(1 << 20, vipl.MemAttributes(enable_rdma_write=True))

    def write():
        client.post_send(source[:], vipl.Operation.RDMAWRITE, target.remote)
        while client.send_done() is None:
            pass
    assert lets_others_run(write)


def test_control_c_ends_a_server():
    program = "from viaduct import vipl\nnic = vipl.open_nic()\nprint('waits', flush=True)\nnic.connect_wait(98)"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as server:
        assert server.stdout.readline() == "waits\n"
        server.send_signal(signal.SIGINT)
        _, errors = server.communicate(timeout=TIMEOUT)
    assert "KeyboardInterrupt" in errors
    assert server.returncode == -signal.SIGINT


# ---- The end of what is waited for ----

def test_a_nic_that_closes_ends_waits(nic):
    waiting = [Background(nic.connect_wait, free_discriminator()) for _ in range(3)]
    cq = nic.create_cq()
    waiting.append(Background(cq.wait))
    nic.close()
    for wait in waiting:
        must_fail(ReturnCode.INVALID_PARAMETER, wait.result)


def test_a_vi_that_closes_ends_waits(pair, region):
    client, server = pair
    for end in pair:
        end.post_recv(region[:])
    waiting = [Background(end.recv_wait) for end in pair for _ in range(3)]
    for end in pair:
        end.close()
    for wait in waiting:
        with pytest.raises(vipl.Error):  # the receive was flushed, or there is none any more
            wait.result()


def test_a_vi_that_cannot_be_destroyed_disturbs_nobody(pair, region):
    client, server = pair
    server.post_recv(region[:])
    waiting = Background(server.recv_wait)
    with pytest.raises(vipl.Error):
        server.destroy()
    client.post_send(region[0:4])
    assert waiting.result().length == 4


def test_a_signal_handler_cannot_close_what_is_waited_for(nic, alarm):
    """The handler gets an error, which ends the wait. The NIC can be closed afterwards."""
    signal.signal(signal.SIGALRM, lambda *_: nic.close())
    with pytest.raises(RuntimeError):
        alarm()
        nic.connect_wait(free_discriminator())
    assert not nic.closed
    nic.query()
    nic.close()
    must_fail(ReturnCode.INVALID_PARAMETER, nic.query)


# ---- Handlers ----

def test_what_a_handler_raises_goes_to_the_hook(nic, pair, region, monkeypatch):
    client, server = pair
    raised = queue.Queue()
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: raised.put(unraisable.exc_type))

    def fail(*_):
        raise KeyError("from a handler")
    server.post_recv(region[:])
    server.recv_notify(fail)
    client.post_send(region[0:4])
    assert raised.get(timeout=TIMEOUT) is KeyError
    nic.error_callback(fail)
    client.disconnect()  # the other end gets an error
    assert raised.get(timeout=TIMEOUT) is KeyError


def test_handlers_are_let_go(nic, region):
    """Handlers that were called, that will never be called, and that were replaced."""
    class Handler:
        living = 0

        def __init__(self):
            Handler.living += 1

        def __del__(self):
            Handler.living -= 1

        def __call__(self, *_):
            pass
    client, server = connected(nic)
    cq = nic.create_cq()
    cq.notify(Handler())
    for _ in range(3):
        server.post_recv(region[:])
        server.recv_notify(Handler())
        nic.error_callback(Handler())
    client.post_send(region[0:1])
    assert Handler.living >= 4
    nic.close()
    assert Handler.living == 0


def test_a_handler_may_ask_again_and_close_its_vi(nic):
    client, server = connected(nic)
    region, closed = nic.register_mem(64), threading.Event()
    left = [3]

    def handle(vi, descriptor):
        left[0] -= 1
        if left[0] != 0:
            vi.recv_notify(handle)
            return
        vi.close()
        closed.set()
    for _ in range(4):
        server.post_recv(region[:])
    server.recv_notify(handle)
    for _ in range(3):
        client.post_send(region[0:1])
        client.send_wait(TIMEOUT)
    assert closed.wait(TIMEOUT) and server.closed


def test_asynchronous_errors_name_what_they_concern(nic, pair):
    client, server = pair
    errors = errors_of(nic)
    descriptor = nic.ptag.descriptor(())
    place = descriptor.memory_handle
    descriptor.memory_handle = 0  # not registered, so the descriptor is refused
    client.post_send(descriptor)
    descriptor.memory_handle = place
    while (error := errors.get(timeout=TIMEOUT)).error_code != vipl.ErrorCode.POST_DESC:
        assert error.error_code == vipl.ErrorCode.CONN_LOST  # both ends get this error, too
    assert error.resource_code == vipl.ResourceCode.DESCRIPTOR
    assert error.vi is client and error.descriptor is descriptor


# ---- asyncio ----

@runs
async def test_connections_and_messages_in_tasks(nic):
    client, server = nic.create_vi(), nic.create_vi()
    inbox, outbox = nic.register_mem(64), nic.register_mem(bytearray(b"question"))

    async def serve(service):
        (await nic.connect_wait_async(service, TIMEOUT)).accept(server)
        server.post_recv(inbox[:])
        return bytes((await server.recv_wait_async(TIMEOUT)).data)

    async def ask(service):
        while True:
            try:
                await client.connect_request_async(nic.net_address(service), TIMEOUT)
                break
            except vipl.Error as error:
                assert error.code == ReturnCode.NO_MATCH
        while server.query().recv_queue_empty:
            await asyncio.sleep(0)
        client.post_send(outbox[:])
        return await client.send_wait_async(TIMEOUT)

    service = free_discriminator()
    received, sent = await asyncio.gather(serve(service), ask(service))
    assert received == b"question" and sent.length == 8


@runs
async def test_peers_in_tasks(nic):
    async def meet(vi, meeting):
        vi.connect_peer_request(meeting, TIMEOUT)
        return await vi.connect_peer_wait_async()

    meeting = nic.net_address(free_discriminator())
    vis = await asyncio.gather(meet(nic.create_vi(), meeting), meet(nic.create_vi(), meeting))
    assert all(isinstance(attributes, vipl.ViAttributes) for attributes in vis)


def test_completion_queues_in_tasks(nic, region):
    cq = nic.create_cq()
    client, server = connected(nic, RDMA, recv_cq=cq)

    async def wait():
        with pytest.raises(vipl.TimeoutError):
            await cq.wait_async(0.01)
        server.post_recv(region[:])
        client.post_send(region[0:5])
        entry = await cq.wait_async(TIMEOUT)
        return entry.done().length
    assert asyncio.run(wait()) == 5
    server.post_recv(region[:])
    client.post_send(region[0:6])
    assert cq.wait(TIMEOUT).done().length == 6


@runs
async def test_several_tasks_wait_for_one_queue(pair, region):
    client, server = pair
    posted = [server.post_recv(region[8 * index:8 * (index + 1)]) for index in range(8)]
    tasks = [asyncio.ensure_future(server.recv_wait_async(TIMEOUT)) for _ in posted]
    await asyncio.sleep(0)
    for length in range(8):
        client.post_send(region[0:length])
        await client.send_wait_async(TIMEOUT)
    assert [descriptor.length for descriptor in await asyncio.gather(*tasks)] == list(range(8))


def test_nothing_is_lost_where_a_task_is_cancelled(pair, region):
    client, server = pair

    async def run():
        posted = [server.post_recv(region[0:8]) for _ in range(4)]
        with pytest.raises(vipl.TimeoutError):
            await server.recv_wait_async(0.01)
        client.post_send(region[0:1])
        assert await server.recv_wait_async(TIMEOUT) is posted[0]
        with pytest.raises(vipl.TimeoutError):
            await server.recv_wait_async(0.01)
        client.post_send(region[0:2])
        return posted
    posted = asyncio.run(run())
    assert server.recv_wait(TIMEOUT) is posted[1]
    client.post_send(region[0:3])
    assert server.recv_wait(TIMEOUT) is posted[2]
    with pytest.raises(vipl.TimeoutError):
        server.recv_wait(0.01)


@pytest.mark.parametrize("timeout", [None, TIMEOUT])
@runs
async def test_what_came_for_a_task_that_is_cancelled_meanwhile_is_for_the_next_one(timeout):
    arrivals = Arrivals()
    waiting = arrivals.future(lambda: None)  # belongs to another thread
    task = asyncio.create_task(result_in_time_async("VipRecvWait", arrivals, lambda: None, timeout))
    await asyncio.sleep(0)
    arrivals.put(1)
    arrivals.put(2)  # the task has it, but is cancelled before it runs
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert waiting.result() == 1
    assert arrivals.take() == 2
    assert arrivals.take() is None


@runs
async def test_a_handler_that_finds_nothing_disturbs_nobody(pair, region):
    client, server = pair
    posted = server.post_recv(region[:])
    task = asyncio.ensure_future(server.recv_wait_async(TIMEOUT))
    await asyncio.sleep(0)
    await give_up(server)
    client.post_send(region[0:1])
    assert await task is posted
    while server._recvs._asked != 0:  # the second handler is called with NULL
        await asyncio.sleep(0)
    server.post_recv(posted)
    assert server.recv_done() is None
    with pytest.raises(vipl.TimeoutError):
        server.recv_wait(0.01)


@runs
async def test_who_waits_asks_again_after_a_handler_that_found_nothing():
    arrivals, asked = Arrivals(), []
    task = asyncio.create_task(result_in_time_async("VipRecvWait", arrivals, lambda: asked.append(1), TIMEOUT))
    await asyncio.sleep(0)
    arrivals.put(0)
    while len(asked) < 2:
        await asyncio.sleep(0)
    arrivals.put(7)
    assert await task == 7


def test_who_comes_while_a_result_is_passed_on_asks_for_another():
    asked, late = [], []

    class Interrupted(Arrivals):
        def _pass_on(self, news):
            late.append(self.future(lambda: asked.append(2)))
            super()._pass_on(news)
    arrivals = Interrupted()
    first = arrivals.future(lambda: asked.append(1))
    arrivals.put(7)
    assert first.result(TIMEOUT) == 7
    assert asked == [1, 2] and not late[0].done()


def test_cancelled_waits_for_connections_are_over(nic):
    service = free_discriminator()

    async def run():
        vi = nic.create_vi()
        for wait in (lambda: nic.connect_wait_async(service), lambda: vi.connect_peer_wait_async()):
            vi.disconnect()
            vi.connect_peer_request(nic.net_address(free_discriminator()))
            task = asyncio.ensure_future(wait())
            await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        return vi
    vi = asyncio.run(run())
    for thread in threading.enumerate():
        if thread.name == "viaduct.vipl":  # it has reported its end and is about to exit
            thread.join(TIMEOUT)
            assert not thread.is_alive()
    vi.disconnect()
    must_fail(ReturnCode.NO_MATCH, vi.connect_request, nic.net_address(service), TIMEOUT)


@runs
async def test_tasks_learn_that_a_vi_is_closed(nic, pair):
    _, server = pair
    server.post_recv(nic.register_mem(64)[:])
    task = asyncio.ensure_future(server.recv_wait_async(TIMEOUT))
    await asyncio.sleep(0)
    server.close()
    with pytest.raises(vipl.Error):
        await task
    with pytest.raises(vipl.Error):
        await server.recv_wait_async(TIMEOUT)


@runs
async def test_a_task_that_waits_for_an_empty_queue_is_told(pair):
    with pytest.raises(vipl.DescriptorError) as raised:
        await pair[0].send_wait_async(TIMEOUT)
    assert raised.value.descriptor is None
