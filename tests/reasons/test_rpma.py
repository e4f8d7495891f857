# SPDX-License-Identifier: BSD-3-Clause
"""Why calls and connections of librpma fail, as both ends log it. On loopback."""
import os

import pytest

from two_ends import NobodyListens, die, run, run_alone, said_once

TIMEOUT_S = 15


def make_peer(host="127.0.0.1"):
    from viaduct import rpma  # not earlier: see two_ends.py
    return rpma.Peer(rpma.get_ibv_context(host))


def connect(peer, service, timeout=TIMEOUT_S):
    """Returns the connection and the name of the event that tells the outcome."""
    from viaduct import rpma
    cfg = rpma.ConnCfg(timeout_ms=int(1000 * timeout))
    conn = peer.conn_req_new("127.0.0.1", service, cfg).connect()
    return conn, conn.next_event(TIMEOUT_S).name


def client_of(service, event, **options):
    """An end that connects to another one that listens, and expects the event."""
    def client(wire):
        peer = make_peer()
        wire.hear()
        conn, outcome = connect(peer, service, **options)
        assert outcome == event
        wire.tell()
        assert conn
    return client


def listener_at(service, host="127.0.0.1", prepare=lambda: None):
    """An end that only listens."""
    def server(wire):
        peer = make_peer(host)
        prepare()
        with peer.ep_listen(host, service):
            wire.tell()
            wire.hear()
    return server


# ---- Connections -----------------------------------------------------------------------------------------------------

class TestNobodyListens(NobodyListens):
    client_of = staticmethod(client_of)
    listener_at = staticmethod(listener_at)
    event = "REJECTED"
    words = "info: connection 0x", "Connection rejected"
    another_device = "127.0.0.2"


def test_rejected_by_the_program(service):
    def server(wire):
        with make_peer().ep_listen("127.0.0.1", service) as ep:
            wire.tell()
            ep.next_conn_req(timeout=TIMEOUT_S).delete()
            wire.hear()
    server_log, log = run(server, client_of(service, "REJECTED"))
    said_once(server_log, "info: rpma_conn_req_delete: the program rejected the request of 127.0.0.1")
    said_once(log, "Connection rejected: process ", " rejected the request")


def test_given_up(service):
    def server(wire):
        from viaduct import rpma
        with make_peer().ep_listen("127.0.0.1", service) as ep:
            wire.tell()
            request = ep.next_conn_req(timeout=TIMEOUT_S)
            wire.hear()
            with pytest.raises(rpma.Error):
                request.connect()
    server_log, log = run(server, client_of(service, "UNREACHABLE", timeout=1))
    said_once(log, f"Connection unreachable: the listener on port {service} of 127.0.0.1 took the request and did not "
              "answer")
    said_once(server_log, "info: rpma_conn_req_connect(0x", "RPMA_E_PROVIDER: the requester has given up")


def test_a_peer_that_dies(service):
    def server(wire):
        with make_peer().ep_listen("127.0.0.1", service) as ep:
            wire.tell()
            conn = ep.next_conn_req(timeout=TIMEOUT_S).connect()
            assert conn.next_event(TIMEOUT_S).name == "ESTABLISHED"
            wire.hear()
            die()

    def client(wire):
        peer = make_peer()
        wire.hear()
        conn, outcome = connect(peer, service)
        assert outcome == "ESTABLISHED"
        wire.tell()
        assert conn.next_event(TIMEOUT_S).name == "CLOSED"
    _, log = run(server, client)
    said_once(log, "info: connection 0x", "Connection closed: the peer's process ended")


# ---- Calls -----------------------------------------------------------------------------------------------------------

def failure(call, *arguments, **options):
    """Returns what rpma_err_2str() says about the failure of a call."""
    from viaduct import _rpma, rpma
    with pytest.raises(rpma.Error) as raised:
        call(*arguments, **options)
    return _rpma.rpma_err_2str(int(raised.value.code))


def test_the_reason_is_in_the_text_and_in_the_log():
    def program(_):
        peer = make_peer()
        assert failure(peer.ep_listen, "127.0.0.1", "swallow") == \
            'Provider error occurred: the port "swallow" is neither a number from 0 to 65535 nor the name of a service'
        assert failure(peer.ep_listen, "192.0.2.1", 1).endswith(": 192.0.2.1 is not an address of this host")
    log = run_alone(program)
    said_once(log, "info: rpma_ep_listen(0x", 'RPMA_E_PROVIDER: the port "swallow" is neither')


def test_a_host_that_no_backend_reaches():
    def program(_):
        os.environ["VIADUCT_BACKEND"] = "loopback"
        from viaduct import rpma
        for host in ("192.0.2.1", "198.51.100.1"):
            assert failure(rpma.get_ibv_context, host, rpma.IbvContextType.REMOTE).startswith(
                f"Provider error occurred: no backend reaches {host}: loopback: {host} is not an address of this host")
    run_alone(program)


def test_limits_have_names_and_values(service):
    def program(_):
        from viaduct import rpma
        peer = make_peer()
        assert "sq_size is 100000, the limit of " in failure(peer.conn_req_new, "127.0.0.1", service,
                                                             rpma.ConnCfg(sq_size=100000))
    said_once(run_alone(program), "info: rpma_conn_req_new(0x", "RPMA_E_PROVIDER: sq_size is 100000, the limit of ")


def test_arguments_have_reasons_at_debug():
    def program(_):
        from viaduct import _rpma, rpma
        for call in (lambda: _rpma.rpma_peer_new(0), lambda: _rpma.rpma_cq_get_fd(0x1234)):
            with pytest.raises(rpma.Error):
                call()
    log = run_alone(program, "debug")
    said_once(log, "debug: rpma_cq_get_fd(0x1234): RPMA_E_INVAL: cq is not a completion queue")
    said_once(log, "debug: rpma_peer_new", "RPMA_E_INVAL: ibv_ctx is not a context of this library")
    assert "rpma_cq_get_fd" not in run_alone(program, "info")


def test_the_log_function_gets_the_reason():
    def program(_):
        from viaduct import rpma
        lines = []
        rpma.log_set_function(lambda level, message, file, line, function: lines.append((function, message)))
        failure(make_peer().ep_listen, "127.0.0.1", "swallow")
        assert [line for line in lines if line[0] == "rpma_ep_listen" and "RPMA_E_PROVIDER: the port" in line[1]]
    run_alone(program)


# ---- Requests --------------------------------------------------------------------------------------------------------
# test_requests.py has the mistakes. These are the words of librpma for them.

@pytest.mark.parametrize("what, says, other_says", [
    ("too_long", "rpma_send(0x{}), op_context 0x0: IBV_WC_REM_INV_REQ_ERR: the peer refused a request: the message is "
     "longer than its receive",
     "info: rpma_recv(0x{}), op_context 0x{}: IBV_WC_LOC_LEN_ERR: the message has 64 bytes, and the receive has room "
     "for 8"),
    ("remote", "info: rpma_write(0x{}), op_context 0x{}: IBV_WC_REM_ACCESS_ERR: 64 bytes at 0x{} reach 32 bytes beyond "
     "region 0x{}, which has 64 bytes at 0x", "the peer's RDMA write was refused: "),
])
def test_failed_request(service, what, says, other_says):
    def server(wire):
        peer = make_peer()
        memory = peer.mr_reg(bytearray(64))
        with peer.ep_listen("127.0.0.1", service) as ep:
            wire.tell()
            req = ep.next_conn_req(timeout=TIMEOUT_S)
            if what == "too_long":
                req.recv(memory[:8])
            conn = req.connect(memory.descriptor)
            assert conn.next_event(TIMEOUT_S).name == "ESTABLISHED"
            assert conn.next_event(TIMEOUT_S).name in ("CLOSED", "LOST")

    def client(wire):
        from viaduct import rpma
        peer = make_peer()
        wire.hear()
        conn, outcome = connect(peer, service)
        assert outcome == "ESTABLISHED"
        memory = peer.mr_reg(bytearray(64))
        if what == "too_long":
            conn.send(memory[:])
        else:
            conn.write(rpma.MrRemote.from_descriptor(conn.private_data), 32, memory[:])
        assert conn.next_event(TIMEOUT_S).name in ("CLOSED", "LOST")
    server_log, log = run(server, client)
    for text, parts in ((log, says), (server_log, other_says)):
        said_once(text, *parts.split("{}"))
