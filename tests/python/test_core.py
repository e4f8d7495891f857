# SPDX-License-Identifier: BSD-3-Clause
"""viaduct.core: the model, between two ends in one process."""
import array
import asyncio
import gc
import mmap
import os
import pickle
import select
import signal
import sys
import threading
import time
import weakref

import numpy
import pytest
import viaduct
from background import Background, join, lets_others_run, runs, threads_that_call
from checks import fails, leak_nothing
from programs import python
from viaduct import _core, _waiting, core
from viaduct._lifetime import Resource
from viaduct.core.errors import error_of
from viaduct.core.objects import next_of, repeat
from viaduct.pytest_plugin import PATIENCE, connected

TIMEOUT = PATIENCE  # reached only if a call hangs


def needs(device, ability):
    if not device.capabilities[ability]:
        pytest.skip(f"the device has not the ability {ability}")


def test_devices_have_names_and_limits(device):
    assert device.name in core.devices()
    assert core.backend() in ("loopback", "verbs")
    assert device.limits["max_queue_depth"] > 0
    assert len(device.host) in (4, 16)
    with core.Device(device.name) as same:
        assert same.host == device.host


def test_unknown_device_is_refused():
    with fails(core.Code.INVALID_PARAMETER) as raised:
        core.Device("no such device")
    assert raised.value.call == "Device"
    assert raised.value.name == "INVALID_PARAMETER"


def test_errors_are_of_one_family_and_can_be_pickled():
    error = error_of("Endpoint.connect", core.Code.TIMED_OUT)
    for kind in (core.TimeoutError, core.Error, viaduct.TimeoutError, viaduct.Error, TimeoutError):
        assert isinstance(error, kind)
    copy = pickle.loads(pickle.dumps(error))
    assert (copy.call, copy.code, str(copy)) == (error.call, error.code, str(error))


def test_counters(device, pair):
    client, server = pair
    region = device.register(64)
    server.post_receive(region[32:])
    client.post_send(region[:8])
    client.wait_send(TIMEOUT)
    server.wait_receive(TIMEOUT)
    sent, received = client.counters(), server.counters()
    assert sent.of("send") == core.Traffic(1, 8)
    assert sent.of("receive") == core.Traffic(0, 0)
    assert received.of("receive") == core.Traffic(1, 8)
    assert received.posted_receives == core.Traffic(1, 32)
    [(operation, way)] = sent.traffic
    assert operation == "send" and sent.of(way) == core.Traffic(1, 8)
    whole = device.counters()
    assert whole.endpoints.of("send").messages >= 1
    assert whole.connections >= 2 and whole.endpoints_created >= 2 and whole.lost_connections == 0


def test_messages_arrive_in_order(device, pair):
    client, server = pair
    inbox = device.register(256)
    for index in range(4):
        server.post_receive(inbox[64 * index:64 * (index + 1)], context=index)
    with device.register(b"zero one two three") as words:
        for first, last in ((0, 4), (5, 8), (9, 12), (13, 18)):
            client.post_send(words[first:last])
        for _ in range(4):
            client.wait_send(TIMEOUT)
    got = [server.wait_receive(TIMEOUT) for _ in range(4)]
    assert [completion.context for completion in got] == [0, 1, 2, 3]
    assert [bytes(inbox.view[64 * c.context:][:c.nbytes]) for c in got] == [b"zero", b"one", b"two", b"three"]


@pytest.mark.parametrize("make", [
    lambda: bytearray(4096), lambda: memoryview(bytearray(4096)), lambda: mmap.mmap(-1, 4096),
    lambda: array.array("d", bytes(4096)), lambda: numpy.zeros((8, 64)), lambda: numpy.zeros(256, dtype="complex128"),
    lambda: viaduct.alloc(4096)])
def test_any_buffer_is_registered_without_a_copy(device, pair, make):
    buffer = make()
    client, server = pair
    with device.register(buffer) as target, device.register(b"12345678") as source:
        client.post_write(source[:], target.remote + 8)
        client.wait_send(TIMEOUT)
        assert bytes(memoryview(buffer).cast("B")[8:16] if not isinstance(buffer, numpy.ndarray)
                     else buffer.tobytes()[8:16]) == b"12345678"


def test_registered_memory_is_pinned(device):
    memory = bytearray(64)
    region = device.register(memory)
    with pytest.raises(BufferError):
        memory.append(0)
    region.close()
    memory.append(0)


def test_parts_of_a_view_outlive_the_region(device):
    memory = bytearray(b"whole")
    region = device.register(memory)
    part = region.view[1:3]
    region.close()
    assert bytes(part) == b"ho"
    with pytest.raises(BufferError):
        memory.clear()


def test_a_view_may_be_registered_again_and_outlive_its_region(device):
    memory = bytearray(b"twice")
    region = device.register(memory)
    again = device.register(region.view)
    region.close()
    assert bytes(again.view) == b"twice"
    with pytest.raises(BufferError):
        memory.clear()
    again.close()
    del region, again
    memory.clear()


def test_numbers_of_any_type_are_sizes(device):
    assert len(device.register(numpy.int64(64))) == 64


def test_what_cannot_be_registered(device):
    for wrong, kind in (("text", TypeError), (object(), TypeError),
                        (numpy.zeros((8, 8))[:, 1], BufferError), (memoryview(bytes(8))[::2], BufferError),
                        (bytearray(), core.Error), (0, ValueError)):
        with pytest.raises(kind):
            device.register(wrong)
    with pytest.raises(ValueError):
        device.register(bytearray(8))[::2]


def test_rdma_moves_what_it_is_told(device, pair):
    client, _ = pair
    table = device.register(bytearray(range(64)))
    local = device.register(64)
    client.post_read(local[8:16], table.remote + 16, context=7)
    completion = client.wait_send(TIMEOUT)
    assert (completion.context, completion.operation) == (7, core.Operation.RDMA_READ)
    assert bytes(local.view[8:16]) == bytes(range(16, 24))
    client.post_write([local[8:12], local[12:16]], table.remote)
    client.wait_send(TIMEOUT)
    assert bytes(table.view[:8]) == bytes(range(16, 24))
    client.post_flush(table.remote, 8)
    assert client.wait_send(TIMEOUT).operation == core.Operation.FLUSH
    client.post_atomic_write(local[8:16], table.remote + 8)
    client.wait_send(TIMEOUT)
    assert bytes(table.view[8:16]) == bytes(range(16, 24))


def test_immediate_data_come_along(device, pair):
    client, server = pair
    inbox = device.register(64)
    server.post_receive(inbox[:])
    server.post_receive(inbox[:])
    client.post_send(immediate=0xfeedf00d, solicited=True)
    assert server.wait_receive(TIMEOUT).immediate == 0xfeedf00d
    client.post_write((), inbox.remote, immediate=5)
    assert server.wait_receive(TIMEOUT).operation == core.Operation.RECEIVE_RDMA_WRITE


def test_atomics(device, pair):
    needs(device, "atomics")
    client, _ = pair
    word, old = device.register(8), device.register(8)
    client.post_fetch_add(old[:], word.remote, 40)
    client.wait_send(TIMEOUT)
    client.post_compare_swap(old[:], word.remote, 40, 42)
    client.wait_send(TIMEOUT)
    assert [int.from_bytes(region.view, "little") for region in (old, word)] == [40, 42]


def test_windows_show_parts(device, pair):
    needs(device, "memory_windows")
    client, server = pair
    region = device.register(bytearray(b"shown and hidden"))
    with device.window() as window:
        shown = server.bind(window, region, slice(0, 5), core.Access.REMOTE_READ)
        server.wait_send(TIMEOUT)
        into = device.register(5)
        client.post_read(into[:], core.Remote(shown.address, window.key))
        client.wait_send(TIMEOUT)
        assert bytes(into.view) == b"shown"
        server.bind(window)
        server.wait_send(TIMEOUT)


def test_a_window_is_closed_before_its_region(device, pair):
    needs(device, "memory_windows")
    client, server = pair
    regions = [device.register(8) for _ in range(2)]
    window = device.window()
    for region in regions:
        shown = server.bind(window, region)
        server.wait_send(TIMEOUT)
    regions[0].close()
    assert not window.closed
    regions[1].close()
    assert window.closed
    client.post_write(device.register(8)[:], shown)
    with pytest.raises(core.RequestError):
        client.wait_send(TIMEOUT)


def test_shared_receives_and_async_events(device):
    needs(device, "shared_receive_queues")
    shared = device.shared_receive_queue(8, context=11)
    inbox = device.register(64)
    client, server = connected(device, server=device.endpoint(shared_receives=shared))
    shared.post_receive(inbox[:32])
    shared.arm_limit(1)
    client.post_send(inbox[32:40])
    assert server.wait_receive(TIMEOUT).nbytes == 8
    event = device.next_async_event(TIMEOUT)
    assert event.kind == core.AsyncEventKind.SHARED_RECEIVE_QUEUE_LIMIT
    assert event.shared_receive_queue_context == 11
    assert shared.outstanding == 0
    with pytest.raises(core.Error):
        shared.resize(0)
    with pytest.raises(core.Error):
        server.post_receive(inbox[:])


def test_refused_and_unheard_requests(device, free_service):
    service = free_service()
    endpoint = device.endpoint()
    with fails(core.Code.NO_LISTENER) as raised:
        endpoint.connect(device.host, service, timeout=TIMEOUT)
    assert "no listener" in str(raised.value)
    with device.listen(service) as listener:
        endpoint.start_connect(device.host, service, private_data=b"please", timeout=TIMEOUT)
        with listener.next_request(TIMEOUT) as request:
            assert request.private_data[:6] == b"please"
            request.reject(b"no")
        event = endpoint.next_event(TIMEOUT)
        assert (event.kind, event.private_data[:2]) == (core.ConnectionEventKind.REJECTED, b"no")
        assert endpoint.state == core.State.UNCONNECTED
        with pytest.raises(TimeoutError):
            listener.next_request(0)
    with pytest.raises(core.Error):
        core.resolve("no.such.host.invalid")
    with pytest.raises(ValueError):
        endpoint.connect(device.host, b"x" * 100)
    with pytest.raises(OverflowError):
        endpoint.connect(device.host, 1 << 16)


def test_ends_of_connections_are_told(device, pair):
    client, server = pair
    client.drain_and_disconnect()
    assert server.next_event(TIMEOUT).kind == core.ConnectionEventKind.DISCONNECTED
    assert client.next_event(TIMEOUT).kind == core.ConnectionEventKind.DISCONNECTED
    for endpoint in pair:
        endpoint.disconnect()
    again = connected(device, client, server)
    again[0].fail()
    kind = again[1].next_event(TIMEOUT).kind
    assert kind == (core.ConnectionEventKind.LOST if device.capabilities["tells_loss"] else kind)


def test_events_say_why(pair):
    assert pair.server.next_event() is None
    pair.client.fail()
    event = pair.server.next_event(TIMEOUT)
    if event.kind == core.ConnectionEventKind.LOST:
        assert event.reason == core.Code.UNREACHABLE
    assert event.why and event.why in repr(event)


def test_peers_are_told_of_the_end_while_a_thread_waits(pair):
    held = pair.client._raw.next_event  # like a thread that waits
    pair.client.close()
    assert pair.server.next_event(TIMEOUT).kind == core.ConnectionEventKind.DISCONNECTED
    assert held() is None


def test_failed_requests_raise(device, pair):
    client, _ = pair
    region = device.register(8)
    client.post_write(region[:], core.Remote(region.remote.address, region.key ^ 0x5a5a))
    with pytest.raises(core.RequestError) as raised:
        client.wait_send(TIMEOUT)
    assert raised.value.code == core.CompletionCode.REMOTE_PROTECTION
    assert not raised.value.completion.ok


def test_queues_say_when_they_are_full(device):
    endpoint = device.endpoint(receive_depth=2)
    region = device.register(8)
    endpoint.post_receive(region[:])
    endpoint.post_receive(region[:])
    with fails(core.Code.QUEUE_FULL):
        endpoint.post_receive(region[:])
    assert endpoint.outstanding(receives=True) == 2


def test_unreliable_messages_may_arrive(device):
    needs(device, "unreliable")
    client, server = (device.endpoint(reliability=core.Reliability.UNRELIABLE) for _ in range(2))
    connected(device, client, server)
    region = device.register(16)
    server.post_receive(region[:8])
    client.post_send(region[8:])
    assert server.wait_receive(TIMEOUT).nbytes == 8


@pytest.mark.parametrize("any_reliable", [True, False])
def test_endpoints_of_any_reliable_level_join_the_other(device, any_reliable):
    ends = [device.endpoint(any_reliable=any_reliable),
            device.endpoint(reliability=core.Reliability.RELIABLE_RECEPTION)]
    for end in ends:  # only peer-to-peer connections compare the levels
        end.start_connect(device.host, b"levels", timeout=TIMEOUT, peer_to_peer=True)
    expected = core.ConnectionEventKind.ESTABLISHED if any_reliable else core.ConnectionEventKind.CONFLICT
    assert [end.next_event(TIMEOUT).kind for end in ends] == [expected, expected]


@pytest.mark.parametrize("options", [{"reliability": core.Reliability.UNRELIABLE}, {"silent_refusals": True}])
def test_endpoints_of_any_reliable_level_must_be_reliable(device, options):
    with fails(core.Code.INVALID_RELIABILITY):
        device.endpoint(any_reliable=True, **options)


def test_regions_change_their_rights(device, pair):
    needs(device, "keeps_keys")
    client, _ = pair
    region, local = device.register(8), device.register(8)
    region.modify(core.Access.REMOTE_WRITE)
    client.post_read(local[:], region.remote)
    with pytest.raises(core.RequestError):
        client.wait_send(TIMEOUT)


def test_peers_never_write_to_read_only_memory(device, pair):
    constant = bytes(8)
    region = device.register(constant)
    region.modify(core.Access.ALL)
    assert region.access == core.Access.REMOTE_READ
    pair.client.post_write(device.register(b"new data")[:], region.remote)
    with pytest.raises(core.RequestError):
        pair.client.wait_send(TIMEOUT)
    assert constant == bytes(8)


def test_regions_change_their_domain(device):
    domain = core.ProtectionDomain(device)
    region = device.register(8)
    region.modify(core.Access.ALL, domain)
    device.domain.close()
    assert not region.closed
    domain.close()
    assert region.closed


def test_descriptors_become_readable(device, pair):
    client, server = pair
    region = device.register(16)
    server.post_receive(region[:8])
    server.receive_queue.arm()
    assert not select.select([server.receive_queue], [], [], 0)[0]
    client.post_send(region[8:])
    assert select.select([server.receive_queue], [], [], TIMEOUT)[0]
    assert server.receive_queue.take_event()
    assert len(server.receive_queue.poll()) == 1
    server.receive_queue.resize(16)


def test_time_outs_are_time_outs(device):
    queue = device.completion_queue()
    with pytest.raises(TimeoutError):
        queue.wait(timeout=0.01)
    assert device.endpoint().next_event(timeout=0.01) is None
    assert device.next_async_event() is None


def test_a_time_out_that_is_not_a_number_is_a_value_error(device):
    for wait in (device.completion_queue().wait, device.endpoint().next_event, device.next_async_event):
        with pytest.raises(ValueError):
            wait(timeout=float("nan"))


@pytest.fixture
def begun(monkeypatch):
    """Set when a wait has started."""
    event = threading.Event()

    def noting(attempt, timeout):
        def noted(seconds):
            event.set()
            return attempt(seconds)
        return repeat(noted, timeout)
    for module in ("objects", "queues"):
        monkeypatch.setattr(f"viaduct.core.{module}.repeat", noting)
    return event


@pytest.mark.parametrize("call", [core.Endpoint.next_event, core.Endpoint.wait_receive, core.CompletionQueue.wait,
                                  core.Listener.next_request, core.Device.next_async_event])
def test_closing_ends_waits(begun, call):
    with core.Device() as device:
        thing = {"Endpoint": device.endpoint, "CompletionQueue": device.completion_queue, "Device": lambda: device,
                 "Listener": lambda: device.listen(b"nobody asks")}[call.__qualname__.split(".")[0]]()
        waiting = Background(call, thing, timeout=None)
        assert begun.wait(TIMEOUT)
        thing.close()
        with pytest.raises(ValueError, match="is closed"):
            waiting.result()


def test_closing_ends_waits_for_a_queue_of_the_program(begun, device):
    queue = device.completion_queue()
    endpoint = device.endpoint(send_queue=queue, receive_queue=queue)
    waiting = Background(endpoint.wait_receive, timeout=None)
    assert begun.wait(TIMEOUT)
    endpoint.close()
    for wait in (waiting.result, endpoint.wait_send, lambda: asyncio.run(endpoint.wait_send_async(TIMEOUT)),
                 lambda: asyncio.run(endpoint.wait_receive_async(TIMEOUT))):
        with pytest.raises(ValueError, match="the Endpoint is closed"):
            wait()


def test_descriptors_may_be_readable_for_nothing():
    results = iter([None, None, "something"])
    reader, writer = os.pipe()
    try:
        os.write(writer, b"x")
        assert next_of(lambda: next(results), reader, TIMEOUT) == "something"
        assert next_of(lambda: None, reader, 0.01) is None
    finally:
        os.close(reader)
        os.close(writer)


@runs
async def test_asyncio(device, free_service):
    async def serve(listener, endpoint, inbox):
        await listener.accept_async(endpoint, timeout=TIMEOUT)
        completion = await endpoint.wait_receive_async(TIMEOUT)
        endpoint.post_send(inbox[:completion.nbytes])
        await endpoint.wait_send_async(TIMEOUT)

    async def ask(service, endpoint, answer):
        await endpoint.connect_async(device.host, service, timeout=TIMEOUT)
        endpoint.post_receive(answer[:16])
        endpoint.post_send(answer[16:21])
        return (await endpoint.wait_receive_async(TIMEOUT)).nbytes

    service = free_service()
    inbox, answer = device.register(16), device.register(bytearray(16) + b"hello")
    server = device.endpoint()
    server.post_receive(inbox[:])
    with device.listen(service) as listener:
        results = await asyncio.gather(serve(listener, server, inbox), ask(service, device.endpoint(), answer))
    with pytest.raises(TimeoutError):
        await server.wait_receive_async(0.01)
    assert (results[1], bytes(answer.view[:5])) == (5, b"hello")


@runs
async def test_names_are_looked_up_beside_the_loop(device, monkeypatch):
    threads = threads_that_call(monkeypatch, _core, "resolve_host")
    with fails(core.Code.UNREACHABLE):
        await device.endpoint().connect_async("no.such.host.invalid", 1)
    assert threads and threading.get_ident() not in threads


@runs
async def test_who_waits_for_a_closed_descriptor_is_in_nobodys_way():
    closed = os.pipe()
    stuck = asyncio.create_task(_waiting.readable(closed[0]))
    await asyncio.sleep(0)
    for fd in closed:
        os.close(fd)
    reading, writing = os.pipe()
    assert reading == closed[0]
    os.write(writing, b"news")
    await _waiting.readable(reading)
    await stuck
    os.close(reading)
    os.close(writing)


@runs
async def test_what_a_task_has_taken_is_its_result_at_once():
    reader, writer = os.pipe()
    taken = []

    def take():
        if select.select([reader], [], [], 0)[0]:
            taken.append(os.read(reader, 1))
        return taken or None
    task = asyncio.create_task(_waiting.until(reader, take, TIMEOUT))
    await asyncio.sleep(0)
    os.write(writer, b"x")
    while not taken:
        await asyncio.sleep(0)
    assert not task.cancel()  # else it would have to be cancelled, and lose what it has taken
    assert await task == [b"x"]
    os.close(reader)
    os.close(writer)


def test_other_threads_run_while_much_is_posted(device, pair):
    source, target = device.register(1 << 20), device.register(1 << 20)

    def write():
        pair.client.post_write(source[:], target.remote)
        while not pair.client.send_queue.poll():
            pass
    assert lets_others_run(write)


def test_other_threads_run_while_a_device_is_closed():
    devices = [core.Device() for _ in range(100)]
    assert lets_others_run(lambda: devices and devices.pop().close())


def test_a_signal_that_is_handled_does_not_shorten_a_wait(device):
    former = signal.signal(signal.SIGALRM, lambda number, frame: None)
    try:
        start = time.monotonic()
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        assert device.next_async_event(timeout=0.08) is None
        assert time.monotonic() - start >= 0.08
    finally:
        signal.signal(signal.SIGALRM, former)


def test_a_signal_ends_a_wait(device):
    queue = device.completion_queue()
    timer = threading.Timer(0.2, lambda: signal.pthread_kill(threading.main_thread().ident, signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        timer.start()
        queue.wait(timeout=TIMEOUT)
    timer.join()


def test_parents_close_their_children_first(device):
    order = []

    class Noting(core.MemoryRegion):
        def _release(self):
            super()._release()
            order.append(len(order))
            assert not self.domain.closed

    domain = core.ProtectionDomain(device)
    regions = [Noting(domain, 8) for _ in range(3)]
    domain.close()
    assert len(order) == 3 and all(region.closed for region in regions)
    with pytest.raises(ValueError):
        regions[0].key
    with pytest.raises(ValueError):
        core.MemoryRegion(domain, 8)
    domain.close()


def test_what_is_made_while_the_parent_closes_is_closed_too(device):
    made = []

    class Prolific(core.MemoryRegion):
        def _release(self):
            made.append(core.MemoryRegion(self.domain, 8))
            super()._release()

    domain = core.ProtectionDomain(device)
    Prolific(domain, 8).close()
    region = Prolific(domain, 8)
    domain.close()
    assert region.closed and len(made) == 2 and all(each.closed for each in made)


def test_the_end_of_the_program_closes_all_although_some_fail():
    program = """
import atexit
tried = set()
atexit.register(lambda: print("tried", len(tried)))  # after those that are registered later
from viaduct._lifetime import Resource
class Failing(Resource):
    def _release(self):
        tried.add(id(self))
        raise ValueError
left = [Failing(), Failing()]
"""
    assert "tried 2" in python("-c", program)


class Stubborn(Resource):
    """Can be released once `fails` is False."""
    fails = True

    def _release(self):
        if self.fails:
            raise ValueError


def test_what_could_not_be_closed_stays_open():
    parent = Resource()
    thing = Stubborn(parent)
    for closing in thing, parent:
        with pytest.raises(ValueError):
            closing.close()
    assert not thing.closed and not parent.closed
    thing.fails = False
    parent.close()
    assert thing.closed


def test_what_could_not_be_closed_stays_alive(monkeypatch):
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)
    thing = Stubborn()
    reference = weakref.ref(thing)
    del thing
    gc.collect()
    reference().fails = False
    reference().close()


def test_garbage_is_closed(device):
    memory = bytearray(8)
    region = device.register(memory)
    del region
    gc.collect()
    memory.append(0)


CYCLES = 20 if os.environ.get("VIADUCT_BACKEND") == "verbs" else 10000


def test_cycles_leak_nothing(device, free_service):
    server = device.endpoint()
    service = free_service()

    def cycle():
        client = device.endpoint()
        region = device.register(64)
        client.start_connect(device.host, service, timeout=TIMEOUT)
        listener.accept(server, timeout=TIMEOUT).close()
        client.next_event(TIMEOUT)
        client.close()
        region.close()
        server.disconnect()

    with device.listen(service) as listener:
        children = len(device.domain._place.children())
        leak_nothing(cycle, CYCLES)
        assert len(device.domain._place.children()) == children


def test_eight_threads(device):
    def work(number):
        for _ in range(2 if CYCLES < 1000 else 40):
            client, server = connected(device)
            region = device.register(bytearray(16))
            region.view[8:] = number.to_bytes(8, "little")
            server.post_receive(region[:8])
            client.post_send(region[8:])
            assert server.wait_receive(TIMEOUT).nbytes == 8
            assert bytes(region.view[:8]) == number.to_bytes(8, "little")
            client.close()
            server.close()
            region.close()
    join([Background(work, number) for number in range(8)])
