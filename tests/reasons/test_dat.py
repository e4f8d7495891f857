# SPDX-License-Identifier: BSD-3-Clause
"""Why calls and connections of DAT 2.0 and 1.2 fail, as both ends log it. On loopback."""
import concurrent.futures
import contextlib
import ctypes
import os
import pathlib
import resource
import signal
import socket
import time

import pytest

from two_ends import NobodyListens, die, run, run_alone, said_once

TIMEOUT_S = 15


class End:
    """An adapter with an endpoint."""

    def __init__(self, adapter="viaduct-lo", evd_length=16):
        from viaduct import dat  # not earlier: see two_ends.py
        self.ia = dat.ia_open(adapter)
        self.evd = self.ia.evd_create(evd_length)
        self.pz = self.ia.pz_create()
        self.ep = self.make_ep()

    def make_ep(self, **attributes):
        from viaduct import dat
        return self.ia.ep_create(self.pz, self.evd, self.evd, self.evd, dat.EpAttr(**attributes))

    def wait(self):
        return self.evd.wait(TIMEOUT_S)

    def connect(self, service, timeout=TIMEOUT_S, host="127.0.0.1"):
        """Returns the name of the event that tells the outcome."""
        self.ep.connect(host, service, timeout)
        return self.wait().event_number.name

    def take(self, service, wire):
        """Returns the request of the other end."""
        psp = self.ia.psp_create(service, self.evd)
        wire.tell()
        request = self.wait().cr
        psp.close()
        return request

    def accept(self, service, wire):
        """Returns the name of the event that tells the outcome."""
        self.take(service, wire).accept(self.ep)
        return self.wait().event_number.name


def client_of(service, event, **options):
    """An end that connects to another one that listens, and expects the event."""
    def client(wire):
        wire.hear()
        assert End().connect(service, **options) == "CONNECTION_EVENT_" + event
        wire.tell()
    return client


def listener_at(service, adapter="viaduct-lo", prepare=lambda: None):
    """An end that only listens."""
    def server(wire):
        end = End(adapter)
        prepare()
        with end.ia.psp_create(service, end.evd):
            wire.tell()
            wire.hear()
    return server


@contextlib.contextmanager
def stopped(pid):
    os.kill(pid, signal.SIGSTOP)
    while any(stat.read_text(encoding="ascii").rpartition(") ")[2][0] != "T"
              for stat in pathlib.Path(f"/proc/{pid}/task").glob("*/stat")):
        time.sleep(0.001)  # nothing notifies those that are not the parent
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


# ---- Connections -----------------------------------------------------------------------------------------------------

class TestNobodyListens(NobodyListens):
    client_of = staticmethod(client_of)
    listener_at = staticmethod(listener_at)
    event = "NON_PEER_REJECTED"
    words = "endpoint 0x", "DAT_CONNECTION_EVENT_NON_PEER_REJECTED"
    another_device = "viaduct-lo1"


def test_full_backlog_of_the_listener(service):
    def server(wire):
        end = End()
        with end.ia.psp_create(service, end.evd):
            wire.tell(str(os.getpid()))
            wire.hear()

    def client(wire):
        pid = int(wire.hear())
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
        with open("/proc/net/unix", encoding="ascii") as sockets:
            [name] = {line.split("@")[1].strip() for line in sockets if f"/7f000001/{service:04x}/0" in line}
        with stopped(pid), contextlib.ExitStack() as waiting:
            with pytest.raises(BlockingIOError):
                while True:
                    one = waiting.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
                    one.setblocking(False)
                    one.connect("\0" + name)
            assert End().connect(service) == "CONNECTION_EVENT_NON_PEER_REJECTED"
        wire.tell()
    _, log = run(server, client)
    said_once(log, f"port {service} of 127.0.0.1", "its queue of requests is full")


def test_full_and_freed_evd_of_the_listener(service):
    def server(wire):
        end = End()
        evd = end.ia.evd_create(1)
        psp = end.ia.psp_create(service, evd)
        wire.tell()
        wire.hear()
        psp.close()
        evd.close()
        wire.hear()

    def client(wire):
        wire.hear()
        end = End()
        for ep in (end.ep, end.make_ep()):
            ep.connect("127.0.0.1", service, TIMEOUT_S)
        for _ in range(2):
            assert end.wait().event_number.name == "CONNECTION_EVENT_NON_PEER_REJECTED"
            wire.tell()
    server_log, client_log = run(server, client)
    said_once(server_log, "refused the request of 127.0.0.1", "the EVD is full, its length is 1")
    said_once(server_log, "refused the request of 127.0.0.1", "its EVD was freed")
    assert client_log.count("closed the listener or refused the request") == 2, client_log


def test_rejected_by_the_program(service):
    def server(wire):
        end = End()
        end.take(service, wire).reject()
        wire.hear()
    server_log, client_log = run(server, client_of(service, "PEER_REJECTED"))
    said_once(server_log, "refused the request of 127.0.0.1, port ", "rejected by the program")
    said_once(client_log, "DAT_CONNECTION_EVENT_PEER_REJECTED: process ", "rejected the request")


def test_given_up(service):
    def server(wire):
        end = End()
        request = end.take(service, wire)
        wire.hear()
        request.accept(end.ep)
        assert end.wait().event_number.name == "CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR"
    server_log, client_log = run(server, client_of(service, "TIMED_OUT", timeout=1))
    said_once(client_log, f"DAT_CONNECTION_EVENT_TIMED_OUT: the listener on port {service} of 127.0.0.1",
              "did not answer", "given up after 1 s")
    said_once(server_log, "DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR: ")


def test_a_server_that_dies_before_it_answers(service):
    def server(wire):
        end = End()
        request = end.take(service, wire)
        assert request
        die()
    _, log = run(server, client_of(service, "NON_PEER_REJECTED"))
    said_once(log, "DAT_CONNECTION_EVENT_NON_PEER_REJECTED: ", "ended without an answer")


@pytest.mark.parametrize("server_dies", (True, False))
def test_a_peer_that_dies(service, server_dies):
    def live(end, wire, dies):
        wire.tell()
        assert wire.hear() == "go on"
        if dies:
            die()
        assert end.wait().event_number.name == "CONNECTION_EVENT_BROKEN"

    def server(wire):
        end = End()
        assert end.accept(service, wire) == "CONNECTION_EVENT_ESTABLISHED"
        live(end, wire, server_dies)

    def client(wire):
        wire.hear()
        end = End()
        assert end.connect(service) == "CONNECTION_EVENT_ESTABLISHED"
        live(end, wire, not server_dies)
    logs = run(server, client)
    said_once(logs[server_dies], "DAT_CONNECTION_EVENT_BROKEN: the peer's process ended")


def test_an_orderly_life_says_nothing(service):
    def server(wire):
        end = End()
        assert end.accept(service, wire) == "CONNECTION_EVENT_ESTABLISHED"
        assert end.wait().event_number.name == "CONNECTION_EVENT_DISCONNECTED"

    def client(wire):
        wire.hear()
        end = End()
        assert end.connect(service) == "CONNECTION_EVENT_ESTABLISHED"
        end.ep.disconnect()
        assert end.wait().event_number.name == "CONNECTION_EVENT_DISCONNECTED"
    for log in run(server, client):
        assert "DAT_" not in log and "dat_" not in log


# ---- Calls -----------------------------------------------------------------------------------------------------------

def failure(call, *arguments, **options):
    """Returns what dat_strerror() says about the failure of a call."""
    from viaduct import dat
    with pytest.raises(dat.Error) as raised:
        call(*arguments, **options)
    return raised.value.text


def test_more_requests_than_the_adapter_has():
    text = "max_request_dtos: 100000 requests asked for, max_dto_per_ep is 65535"

    def program(_):
        assert failure(End().make_ep, max_request_dtos=100000) == f"DAT_INVALID_ARG6: {text}"
    said_once(run_alone(program, "debug"), "debug: dat_ep_create(0x1): DAT_INVALID_PARAMETER DAT_INVALID_ARG6: " + text)


def test_an_adapter_that_does_not_exist():
    def program(_):
        from viaduct import dat
        assert "no adapter swallow, there are " in failure(dat.ia_open, "swallow")
    said_once(run_alone(program), "info: dat_ia_openv: DAT_PROVIDER_NOT_FOUND DAT_NAME_NOT_REGISTERED: "
              "no adapter swallow, there are ", "viaduct-lo")


def test_a_device_that_cannot_be_opened():
    def program(_):
        from viaduct import dat
        os.environ["VIADUCT_BACKEND"] = "swallow"
        assert "VIADUCT_BACKEND=swallow: no such backend in this build" in failure(dat.ia_open, "viaduct-lo")
    said_once(run_alone(program),
              "info: dat_ia_openv: DAT_PROVIDER_NOT_FOUND DAT_NAME_NOT_REGISTERED: VIADUCT_BACKEND=")


def test_limits_have_names_and_values():
    def program(_):
        end = End()
        assert "1000000000 events asked for, max_evd_qlen is " in failure(end.ia.evd_create, 10**9)
        assert "100000 receives asked for, max_recv_per_srq is 65535" in failure(end.ia.srq_create, end.pz, 100000)
        assert "300 bytes of private data, max_private_data_size is " in failure(
            end.ep.connect, "127.0.0.1", 1, 1, bytes(300))
        lmr = end.ia.lmr_create(bytearray(64), end.pz)
        assert "5 segments asked for, max_request_iov is 4" in failure(end.ep.post_send, [lmr[:1]] * 5)
        small = end.make_ep(max_recv_dtos=1)
        small.post_recv(lmr[:])
        assert "the queue is full: max_recv_dtos of the endpoint is 1" in failure(small.post_recv, lmr[:])
        assert "the endpoint is DAT_EP_STATE_UNCONNECTED" in failure(end.ep.post_send, lmr[:])
    log = run_alone(program, "debug")
    said_once(log, "info: dat_evd_create(0x1): DAT_INSUFFICIENT_RESOURCES DAT_RESOURCE_TEVD: 1000000000 events")
    said_once(log, "info: dat_ep_post_recv(0x", "DAT_INSUFFICIENT_RESOURCES DAT_RESOURCE_MEMORY: the queue is full")
    said_once(log, "debug: dat_ep_post_send(0x", "DAT_INVALID_STATE DAT_INVALID_STATE_EP_UNCONNECTED: the endpoint is ")


def test_expected_results_are_no_failures():
    def program(_):
        end = End()
        assert end.evd.dequeue() is None
        assert failure(end.evd.wait, 0.001).startswith("no event ")
    log = run_alone(program, "debug")
    assert "DAT_QUEUE_EMPTY" not in log and "DAT_TIMEOUT_EXPIRED" not in log


def test_the_reason_is_that_of_the_last_failure_of_the_thread():
    def program(_):
        from viaduct import _dat, dat
        code = _dat.DAT_CLASS_ERROR | _dat.DAT_INVALID_PARAMETER | _dat.DAT_INVALID_ARG6
        end = End()
        failure(end.make_ep, max_request_dtos=100000)
        failure(end.make_ep, max_rdma_read_in=99)
        text = "DAT_INVALID_ARG6: max_rdma_read_in: 99 RDMA reads asked for, max_rdma_read_per_ep_in is 16"
        assert dat.strerror(code)[1] == text
        with concurrent.futures.ThreadPoolExecutor() as other:
            assert other.submit(dat.strerror, code).result()[1] == "DAT_INVALID_ARG6"
        failure(end.ep.connect, "127.0.0.1", 1, 1, bytes(300))
        assert dat.strerror(code)[1] == "DAT_INVALID_ARG6"
    run_alone(program)


# ---- DAT 1.2 ---------------------------------------------------------------------------------------------------------

def dat1():
    return ctypes.CDLL(os.environ["LIBDAT1"])


def test_calls_of_dat_1_2_have_their_own_names():
    def program(_):
        library = dat1()
        handle = ctypes.c_void_p(0x1234560)
        library.dat_lmr_free(handle)  # asks for its parameters first
        library.dat_rmr_bind(handle, None, 0, handle, ctypes.c_uint64(0), 0, None)
        library.dat_ep_query(handle, ctypes.c_uint64(1 << 60), None)
        library.dat_pz_free(handle)
        library.dat_ep_post_send(handle, 1, None, ctypes.c_uint64(0), 0)
    log = run_alone(program, "debug")
    said_once(log, "dat_lmr_free(0x1234560): DAT_INVALID_HANDLE DAT_INVALID_HANDLE_LMR: the handle is not valid")
    said_once(log, "dat_rmr_bind(0x1234560): DAT_INVALID_HANDLE DAT_INVALID_HANDLE_RMR: the handle is not valid")
    said_once(log, "dat_ep_query(0x1234560): DAT_INVALID_PARAMETER DAT_INVALID_ARG2: the mask has unknown bits")
    said_once(log, "dat_pz_free(0x1234560): DAT_INVALID_HANDLE DAT_INVALID_HANDLE_PZ: the handle is not valid")
    said_once(log, "dat_ep_post_send(0x1234560): DAT_INVALID_PARAMETER DAT_INVALID_ARG3: local_iov is null")
    assert len(log.splitlines()) == 5


def test_a_program_of_dat_1_2_that_is_linked_with_libdat2():
    def program(_):
        dat1()  # which needs the other one
        library = ctypes.CDLL("libdat2.so.2")
        evd, ia = ctypes.c_void_p(), ctypes.c_void_p()
        assert library.dat_ia_openv(b"viaduct-lo", 8, ctypes.byref(evd), ctypes.byref(ia), 1, 2, 0) != 0
    log = run_alone(program, "warning")
    said_once(log, "built with <dat/udat.h>, the headers of DAT 1.2, and linked with libdat2.so.2, the library of "
                   "DAT 2.0: link it with -ldat")


def test_strerror_of_dat_1_2_adds_the_reason():
    def program(_):
        library = dat1()
        library.dat_ia_openv.restype = ctypes.c_uint32
        code = library.dat_ia_openv(b"swallow", 1, None, ctypes.byref(ctypes.c_void_p()), 1, 2, 0)
        major, minor = ctypes.c_char_p(), ctypes.c_char_p()
        library.dat_strerror(ctypes.c_uint32(code), ctypes.byref(major), ctypes.byref(minor))
        assert minor.value.startswith(b"DAT_NAME_NOT_REGISTERED: no adapter swallow, there are ")
    said_once(run_alone(program), "dat_ia_openv: DAT_PROVIDER_NOT_FOUND DAT_NAME_NOT_REGISTERED: no adapter swallow")


# ---- Requests --------------------------------------------------------------------------------------------------------
# test_requests.py has the mistakes. These are the words of DAT for them.

@pytest.mark.parametrize("what, says, other_says", [
    ("too_long", "DAT_CONNECTION_EVENT_BROKEN: the peer refused a request: the message is longer than its receive",
     "info: dat_ep_post_recv(0x{}), cookie 0x9: DAT_DTO_ERR_LOCAL_LENGTH: the message has 64 bytes, and the receive "
     "has room for 8"),
    ("local", "info: dat_ep_post_send(0x{}), cookie 0x7: DAT_DTO_ERR_LOCAL_PROTECTION: triplet 0: there is no region "
     "0x", "DAT_CONNECTION_EVENT_BROKEN: the peer"),
    ("remote", "info: dat_ep_post_rdma_write(0x{}), cookie 0x7: DAT_DTO_ERR_REMOTE_ACCESS: the target has no region or "
     "window 0x7fffff00", "the peer's RDMA write was refused"),
])
def test_failed_request(service, what, says, other_says):
    def server(wire):
        end = End()
        end.ep.post_recv(end.ia.lmr_create(bytearray(64), end.pz)[:8], cookie=9)
        assert end.accept(service, wire) == "CONNECTION_EVENT_ESTABLISHED"
        while end.wait().event_number.name != "CONNECTION_EVENT_BROKEN":
            pass

    def client(wire):
        end = End()
        wire.hear()
        assert end.connect(service) == "CONNECTION_EVENT_ESTABLISHED"
        lmr = end.ia.lmr_create(bytearray(64), end.pz)
        piece = lmr[:]
        if what == "local":
            lmr.close()
        if what == "remote":
            end.ep.post_rdma_write(piece, (0x1000, 64, 0x7FFFFF00), cookie=7)
        else:
            end.ep.post_send(piece, cookie=7)
        while end.wait().event_number.name != "CONNECTION_EVENT_BROKEN":
            pass
    server_log, log = run(server, client)
    for text, parts in ((log, says), (server_log, other_says)):
        said_once(text, *parts.split("{}"))
