# SPDX-License-Identifier: BSD-3-Clause
"""viaduct.vipl: the lifetime of objects, also with many threads, and leaks."""
import gc
import os
import queue
import threading
import weakref

import pytest
from background import TIMEOUT, Background, all_of, end_in_use, join, until_it_waits_for_a_child, use_until_gone
from checks import leak_nothing
from programs import TESTS, python
from vipl_pair import connected, free_discriminator, must_fail, nic, pair, region
from viaduct import _vipl, vipl


# ---- Objects and their parents ----

def test_close_ends_everything_in_any_state(nic, region):
    client, server = connected(nic)
    posted = server.post_recv(region[:])
    client.post_send(region[0:4])
    waiting = nic.create_vi()
    waiting.connect_peer_request(nic.net_address(free_discriminator()))
    for end in (client, server, waiting, region):
        end.close()
        end.close()
    assert not posted.posted


def test_parents_close_their_children_first():
    nic = vipl.open_nic()
    ptag, cq = nic.create_ptag(), nic.create_cq()
    attributes = vipl.ViAttributes(ptag=ptag)
    by_cq, by_ptag, by_nic = nic.create_vi(attributes, cq), nic.create_vi(attributes), nic.create_vi()
    cq.close()
    assert by_cq.closed and not by_ptag.closed
    ptag.close()
    assert by_ptag.closed and not by_nic.closed
    nic.close()
    assert by_nic.closed


def test_a_parent_that_another_thread_cannot_close_meanwhile(nic, monkeypatch):
    cq, destroyed = nic.create_cq(), []
    create, destroy = _vipl.VipCreateVi, _vipl.VipDestroyVi

    def create_and_close(*arguments):
        vi = create(*arguments)
        with pytest.raises(vipl.Error):  # the VI uses it
            cq.close()
        return vi
    monkeypatch.setattr(_vipl, "VipCreateVi", create_and_close)
    monkeypatch.setattr(_vipl, "VipDestroyVi", lambda vi: (destroyed.append(vi), destroy(vi)))
    vi = nic.create_vi(recv_cq=cq)
    assert not cq.closed
    cq.close()
    assert cq.closed and destroyed == [vi.handle]


def test_objects_that_nobody_knows_are_closed(monkeypatch):
    ended = []

    def noting(name):
        call = getattr(_vipl, name)
        monkeypatch.setattr(_vipl, name, lambda *arguments: (ended.append(name), call(*arguments)))
    for name in ("VipCloseNic", "VipDestroyVi", "VipDestroyCQ", "VipDestroyPtag"):
        noting(name)

    def make():
        nic = vipl.open_nic()
        cq = nic.create_cq()
        vi = nic.create_vi(recv_cq=cq)
        vi.post_recv(nic.register_mem(64)[:])
        ring = [nic, cq, vi]
        ring.append(ring)
        return weakref.ref(vi)
    vi = make()
    gc.collect()
    assert vi() is None
    assert ended[0] == "VipDestroyVi" and ended[-1] == "VipCloseNic" and len(ended) == 4


def test_posted_descriptors_live_on(nic):
    vi = nic.create_vi()
    descriptor = weakref.ref(vi.post_recv(nic.register_mem(64)[:]))
    gc.collect()
    assert descriptor() is not None
    vi.close()
    gc.collect()
    assert descriptor() is None


def test_memory_for_descriptors_is_used_again(nic, region):
    places = {nic.ptag.descriptor(region[:]).address for _ in range(100)}
    assert len(places) == 1
    kept = [nic.ptag.descriptor(region[:]) for _ in range(1000)]
    assert len({descriptor.address for descriptor in kept}) == 1000


# ---- Threads, cycles, the end ----

def test_eight_threads():
    def work():
        with vipl.open_nic() as nic:
            for _ in range(3):
                client, server = connected(nic)
                with nic.register_mem(4096) as region:
                    for index in range(50):
                        server.post_recv(region[64 * (index % 8):64 * (index % 8 + 1)])
                        client.post_send(region[2048:2048 + index], immediate=index)
                        client.send_wait(TIMEOUT)
                        received = server.recv_wait(TIMEOUT)
                        assert (received.length, received.immediate) == (index, index)
                client.close()
                server.close()
    all_of([work] * 8)


def test_eight_threads_share_a_vi(nic, pair):
    client, server = pair
    region = nic.register_mem(8 * 64)
    taken = queue.Queue()

    def work(index):
        for _ in range(50):
            server.post_recv(region[64 * index:64 * (index + 1)])
            client.post_send(region[0:8])
            client.send_wait(TIMEOUT)
            taken.put(server.recv_wait(TIMEOUT))
    join([Background(work, index) for index in range(8)])
    assert taken.qsize() == 400
    assert not client._posted and not server._posted


def test_threads_that_need_a_tag_get_the_same(eager_threads):
    for _ in range(50):
        with vipl.open_nic() as nic:
            start = threading.Barrier(4)

            def tag(nic=nic, start=start):
                start.wait(TIMEOUT)
                return nic.ptag
            assert len(set(all_of([tag] * 4))) == 1


def test_many_threads_close_what_belongs_together(nic):
    for _ in range(20):
        ptag, cq = nic.create_ptag(), nic.create_cq()
        client, server = connected(nic, vipl.ViAttributes(ptag=ptag), recv_cq=cq)
        region = nic.register_mem(64, vipl.MemAttributes(ptag))
        server.post_recv(region[:])
        start = threading.Barrier(6)

        def close(thing, start=start):
            start.wait(TIMEOUT)
            thing.close()
        join([Background(close, thing) for thing in (server, cq, ptag, region, server, client)])
        assert all(thing.closed for thing in (ptag, cq, client, server, region))


def test_a_handler_and_another_thread_close_the_same_vi(nic):
    for _ in range(20):
        client, server = connected(nic)
        region, told = nic.register_mem(64), threading.Event()
        server.post_recv(region[:])

        def handle(vi, descriptor, told=told):
            told.set()
            vi.close()
        server.recv_notify(handle)
        client.post_send(region[0:1])
        assert told.wait(TIMEOUT)
        server.close()
        client.close()


def test_a_nic_is_closed_after_a_vi_that_another_thread_destroys(nic, region, monkeypatch):
    vi = nic.create_vi()
    begun, destroyed, leave = threading.Event(), threading.Event(), threading.Event()

    def handle(vi, descriptor):
        begun.set()
        with pytest.raises(vipl.Error):
            while True:
                vi.query()  # until the other thread waits for this handler
        destroyed.set()
        leave.wait(TIMEOUT)
    vi.post_recv(region[:])
    vi.recv_notify(handle)
    vi.disconnect()  # flushes the descriptor
    assert begun.wait(TIMEOUT)
    destroying = Background(vi.destroy)
    assert destroyed.wait(TIMEOUT)
    closing = until_it_waits_for_a_child(monkeypatch, nic.close)
    leave.set()
    join([destroying, closing])
    assert nic.closed


def test_memory_of_other_nics_ends_beside_a_handler(pair, region):
    client, server = pair
    inside, leave = threading.Event(), threading.Event()

    def handle(vi, descriptor):
        inside.set()
        leave.wait(TIMEOUT)
    server.post_recv(region[:])
    server.recv_notify(handle)
    client.post_send(region[0:1])
    assert inside.wait(TIMEOUT)

    def work():
        with vipl.open_nic() as own:  # its memory has the same handles as that of the others
            vi = own.create_vi()
            for _ in range(200):
                with own.register_mem(64) as memory:
                    vi.post_recv(memory[:])
            vi.close()
    try:
        all_of([work] * 4)
    finally:
        leave.set()


@pytest.mark.skipif("COVERAGE_PROCESS_START" in os.environ, reason="coverage keeps objects of its own")
def test_a_thousand_cycles_leave_nothing_behind(nic):
    cycles = 1000 if nic.attributes.local_nic_address[0] == 127 else 100

    def cycle():
        client, server = connected(nic)
        with nic.register_mem(64) as region:
            server.post_recv(region[:])
            client.post_send(region[0:4])
            assert server.recv_wait(TIMEOUT).length == 4
        client.close()
        server.close()
    leak_nothing(cycle, cycles, more_objects=50)


ENDS = {
    "pending handlers": """
server.post_recv(region[:])
server.recv_notify(print)
cq = nic.create_cq(); cq.notify(print)
""",
    "handlers that run": """
import time
def again(vi, descriptor):
    if descriptor is not None:
        vi.post_recv(descriptor); vi.recv_notify(again)
    sum(range(1000))
for _ in range(8): server.post_recv(region[:])
server.recv_notify(again)
def send():
    while True:
        try: client.post_send(region[0:8]); client.send_wait(1)
        except (vipl.Error, ValueError): pass
threading.Thread(target=send, daemon=True).start()
time.sleep(0.1)
""",
    "handlers of the raw module": """
from viaduct import _vipl
raw = _vipl.VipOpenNic("VINIC")
_vipl.VipErrorCallback(raw, None, print)
queue = _vipl.VipCreateCQ(raw, 4)
_vipl.VipCQNotify(queue, None, print)
""",
    "an error on its way": """
nic.error_callback(lambda error: sum(range(100000)))
client.post_send(region[0:8])
""",
    "daemons that wait": """
import time
server.post_recv(region[:])
for wait in (lambda: nic.connect_wait(99), server.recv_wait, nic.create_cq().wait):
    threading.Thread(target=wait, daemon=True).start()
time.sleep(0.05)
""",
}

START = """
import threading
from vipl_pair import connected
from viaduct import vipl
nic = vipl.open_nic()
client, server = connected(nic)
region = nic.register_mem(64)
"""


@pytest.mark.parametrize("program", ENDS.values(), ids=ENDS)
def test_the_interpreter_ends_well(program):
    output = python("-c", START + program, cwd=TESTS)
    assert "Traceback" not in output and "Fatal" not in output


# ---- Threads that use what another one closes ----

HARMLESS = (vipl.ReturnCode.DESCRIPTOR_ERROR, vipl.ReturnCode.ERROR_NAMESERVICE)  # an empty queue, no name service


def says_gone(error):
    if isinstance(error, vipl.Error):
        if error.code in HARMLESS:
            return False
        if error.code == vipl.ReturnCode.INVALID_PARAMETER:
            return True
    raise error


KINDS = {
    "vi": (vipl.Nic.create_vi, [vipl.Vi.query, vipl.Vi.send_done, vipl.Vi.disconnect,
                                lambda vi: vi.set_attributes(vipl.ViAttributes())]),
    "cq": (vipl.Nic.create_cq, [vipl.CompletionQueue.done, lambda cq: cq.resize(8)]),
    "region": (lambda nic: nic.register_mem(64), [lambda region: region.query(),
                                                  lambda region: region.set_attributes(vipl.MemAttributes())]),
}


@pytest.mark.parametrize("make, uses", KINDS.values(), ids=KINDS)
def test_threads_may_use_what_another_one_closes(nic, eager_threads, make, uses):
    end_in_use(lambda: make(nic), lambda thing: thing.close(),
               lambda thing: use_until_gone(thing, uses, says_gone), users=2, rounds=300)


def test_a_vi_to_which_another_thread_posts_is_closed(nic, monkeypatch):
    vi, late, destroy = nic.create_vi(), nic.ptag.descriptor(), _vipl.VipDestroyVi

    def post_and_destroy(handle):
        monkeypatch.setattr(_vipl, "VipDestroyVi", destroy)
        _vipl.VipPostRecv(handle, late.address, late.memory_handle)
        destroy(handle)
    monkeypatch.setattr(_vipl, "VipDestroyVi", post_and_destroy)
    vi.close()
    must_fail(vipl.ReturnCode.INVALID_PARAMETER, _vipl.VipQueryVi, vi.handle)
    must_fail(vipl.ReturnCode.INVALID_PARAMETER, vi.post_recv, late)


def test_threads_may_use_a_nic_that_another_one_closes(eager_threads):
    for _ in range(50):
        nic = vipl.open_nic()
        user = Background(use_until_gone, nic, [vipl.Nic.query, vipl.Nic.ns_shutdown], says_gone)
        nic.close()
        user.result()


def test_threads_may_post_what_lies_in_memory_that_another_one_deregisters(nic, eager_threads):
    """The library refuses it without accessing it."""
    vi = nic.create_vi()
    for _ in range(100):
        region = nic.register_mem(4096)
        descriptor, memory = region.descriptor(0), region.handle

        def post():
            while not region.closed:
                _vipl.VipPostRecv(vi.handle, descriptor.address, memory)
                vi.disconnect()  # flushes the descriptor
                _vipl.VipRecvDone(vi.handle)
        user = Background(post)
        region.close()
        user.result()
