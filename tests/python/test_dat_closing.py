# SPDX-License-Identifier: BSD-3-Clause
"""viaduct.dat: calls of threads on objects that another thread ends."""
import threading

import pytest
from background import TIMEOUT, Background, all_of, end_in_use, join, use_until_gone
from checks import fails
from dat_pair import DEPTH, Pair, Side, free_qual, ia, pair
from viaduct import _dat, dat

ROUNDS = 60
USERS = 3


pytestmark = pytest.mark.usefixtures("eager_threads")


def says_gone(error):
    if isinstance(error, dat.Error):
        if error.code is dat.ReturnType.INVALID_STATE:  # the endpoint is not connected
            return False
        if error.code is dat.ReturnType.INVALID_HANDLE:
            return True
    elif isinstance(error, ValueError):
        assert "is closed" in str(error)  # raised when the object is constructed from the handle
        return True
    raise error


def user_of(thing, uses):
    """Starts a thread that uses the object until it no longer exists."""
    return Background(use_until_gone, thing, uses, says_gone)


def make_evd(side):
    return side.ia.evd_create(DEPTH, dat.EvdFlags.DTO | dat.EvdFlags.SOFTWARE)


RESERVED = free_qual()


def make_rsp(side):
    return side.ia.rsp_create(RESERVED, side.new_ep(), side.requests_for_connection)


# For each kind of object, a function that creates it, and calls that hold and that release the interpreter lock.
KINDS = {
    "evd": (make_evd, [dat.Evd.dequeue, dat.Evd.query, dat.Evd.post_se, lambda evd: evd.handle_type]),
    "ep": (Side.new_ep, [dat.Ep.get_status, dat.Ep.recv_query, dat.Ep.query, lambda ep: ep.post_send(()),
                         lambda ep: ep.modify(max_request_dtos=2), lambda ep: ep.query_counters()]),
    "lmr": (lambda side: side.ia.lmr_create(bytearray(64), side.pz), [dat.Lmr.query, lambda lmr: lmr.context]),
    "pz": (lambda side: side.ia.pz_create(), [dat.Pz.query, lambda pz: pz.context]),
    "srq": (lambda side: side.ia.srq_create(side.pz, 4), [dat.Srq.query, lambda srq: srq.set_lw(1)]),
    "psp": (lambda side: side.ia.psp_create_any(side.requests_for_connection), [dat.Psp.query]),
    "rsp": (make_rsp, [dat.Rsp.query]),
    "cno": (lambda side: side.ia.cno_create(), [dat.Cno.trigger, dat.Cno.query]),
}


@pytest.mark.parametrize("end", [dat.DatObject.close, dat.DatObject.free], ids=["close", "free"])
@pytest.mark.parametrize("make, uses", KINDS.values(), ids=KINDS)
def test_threads_may_use_what_another_one_ends(ia, make, uses, end):
    side = Side(ia)
    end_in_use(lambda: make(side), end, lambda thing: use_until_gone(thing, uses, says_gone), users=USERS, rounds=300)


def test_threads_may_use_an_adapter_that_another_one_closes():
    for _ in range(ROUNDS):
        ia = dat.ia_open()
        errors = ia.async_evd
        users = [user_of(ia, [dat.Ia.query, lambda ia: ia.context]), user_of(errors, [dat.Evd.dequeue, dat.Evd.query])]
        ia.close()
        join(users)


def test_threads_may_use_a_request_that_another_one_answers(ia):
    pair = Pair(ia)
    for answer in [dat.Cr.reject, dat.Cr.close] * 10:
        client = pair.client.new_ep()
        request = pair.request(ep=client).cr
        user = user_of(request, [dat.Cr.query])
        answer(request)
        user.result()
        assert pair.client.connection() == dat.EventNumber.CONNECTION_EVENT_PEER_REJECTED


def test_threads_may_use_the_endpoint_of_a_request_that_another_one_rejects(ia):
    pair = Pair(ia)
    psp = ia.psp_create_any(pair.server.requests_for_connection, dat.PspFlags.PROVIDER)
    for _ in range(20):
        client = pair.client.new_ep()
        request = pair.request(ep=client, qual=psp.conn_qual).cr
        user = user_of(request.ep, [dat.Ep.get_status, dat.Ep.recv_query])
        request.reject()
        user.result()
        assert pair.client.connection() == dat.EventNumber.CONNECTION_EVENT_PEER_REJECTED


def test_threads_may_end_the_same_object(ia):
    """Only one of them succeeds."""
    pz = ia.pz_create()
    for _ in range(ROUNDS):
        lmr = ia.lmr_create(bytearray(64), pz)

        def free():
            try:
                _dat.dat_lmr_free(lmr.handle)
            except dat.Error as error:
                assert error.code is dat.ReturnType.INVALID_HANDLE
                return 0
            return 1
        assert sum(all_of([free] * 4)) == 1


# ---- Ends that are refused -------------------------------------------------------------------------------------------

def test_who_polls_does_not_notice_an_end_that_is_refused(ia):
    side, done = Side(ia), threading.Event()

    def poll():
        while not done.is_set():
            assert side.received.dequeue() is None
            side.received.query()
    users = [Background(poll) for _ in range(USERS)]
    for _ in range(ROUNDS):
        with fails(dat.ReturnType.INVALID_STATE, dat.ReturnSubtype.INVALID_STATE_EVD_IN_USE):
            side.received.free()
    done.set()
    join(users)


def await_waiter(evd, waits=1):
    while evd.query_counter("WAIT") < waits:
        pass


def test_who_waits_does_not_notice_an_end_that_is_refused(pair):
    waiter = Background(pair.server.received.wait, TIMEOUT)
    await_waiter(pair.server.received)
    for _ in range(ROUNDS):
        with fails(dat.ReturnType.INVALID_STATE, dat.ReturnSubtype.INVALID_STATE_EVD_IN_USE):
            pair.server.received.free()
    assert pair.server.received.query().evd_state & dat.EvdState.WAITABLE
    pair.server.ep.post_recv(pair.server.lmr[:8])
    pair.client.ep.post_send(pair.client.lmr[:8])
    assert waiter.result().ok


# ---- Ends of what is waited for --------------------------------------------------------------------------------------

@pytest.mark.parametrize("end", [dat.Evd.close, dat.Evd.free], ids=["close", "free"])
def test_an_end_wakes_who_waits(ia, end):
    for _ in range(10):
        evd = ia.evd_create(4, dat.EvdFlags.SOFTWARE)
        waiter = Background(evd.wait)
        await_waiter(evd)
        end(evd)
        with fails(dat.ReturnType.ABORT):
            waiter.result()


def test_the_end_of_an_adapter_wakes_who_waits_for_its_errors():
    ia = dat.ia_open()
    waiter = Background(ia.async_evd.wait)
    await_waiter(ia.async_evd)
    ia.close()
    with fails(dat.ReturnType.ABORT):
        waiter.result()


def test_who_waits_for_a_cno_hears_of_its_end(ia):
    cno = ia.cno_create()
    started = threading.Event()

    def wait():
        started.set()
        return cno.wait()
    waiter = Background(wait)
    started.wait(TIMEOUT)
    cno.close()
    with fails(dat.ReturnType.INVALID_HANDLE):
        waiter.result()


def test_who_waits_for_evds_hears_of_the_end_of_their_cno(ia):
    cno = ia.cno_create()
    evd = ia.evd_create(4, dat.EvdFlags.SOFTWARE, cno)
    waiter = Background(cno.wait)
    cno.close()
    with fails(dat.ReturnType.INVALID_HANDLE):
        waiter.result()
    assert evd.query().cno_handle == 0


def test_an_agent_may_use_what_is_being_ended(ia):
    """Closing waits for the agent, so the agent must not wait for the close."""
    called, gone = threading.Event(), []

    def agent(evd):
        called.set()
        while not cno.closed:
            pass
        use_until_gone(cno, [dat.Cno.query, dat.Cno.trigger], says_gone)
        evd.post_se()
        gone.append(evd)
    cno = ia.cno_create(agent)
    evd = ia.evd_create(4, dat.EvdFlags.SOFTWARE, cno)
    evd.post_se()
    assert called.wait(TIMEOUT)
    cno.close()
    assert gone == [evd]


def test_raw_calls_find_no_object_either(ia):
    side = Side(ia)
    for _ in range(ROUNDS):
        handle = _dat.dat_ep_create(ia.handle, side.pz.handle, 0, 0, side.connections.handle, None)
        users = [user_of(handle, [_dat.dat_ep_get_status, _dat.dat_ep_reset]) for _ in range(USERS)]
        _dat.dat_ep_free(handle)
        join(users)
