# SPDX-License-Identifier: BSD-3-Clause
"""Why calls and connections of VIPL fail, as both ends log it. On loopback."""
import os
import pathlib
import time

import pytest

from two_ends import PATIENCE_S, NobodyListens, die, run, run_alone, said_once

TIMEOUT_S = 15


class End:
    """A NIC with a VI."""

    def __init__(self, name="VINIC", **attributes):
        from viaduct import vipl  # not earlier: see two_ends.py
        self.nic = vipl.open_nic(name)
        self.vi = self.nic.create_vi(vipl.ViAttributes(**attributes))

    def connect(self, service, timeout=TIMEOUT_S):
        """Returns the name of the result."""
        from viaduct import vipl
        try:
            self.vi.connect_request(self.nic.net_address(service, "127.0.0.1"), timeout)
            return "VIP_SUCCESS"
        except vipl.Error as error:
            return error.name

    def wait(self, service, wire, timeout=TIMEOUT_S):
        """Returns the request of the other end."""
        wire.tell(os.getpid())
        return self.nic.connect_wait(service, timeout)


def hear_of_listener(wire, service):
    """Waits until the other end, which has told its number, waits for requests: VIPL listens only in that call."""
    pid = wire.hear()
    if not pid:
        return
    deadline = time.monotonic() + PATIENCE_S
    while f"/{service:04x}/" not in pathlib.Path(f"/proc/{pid}/net/unix").read_text(encoding="ascii"):
        assert time.monotonic() < deadline, "the other end does not listen"


def client_of(service, result, **options):
    """An end that connects to another one and expects the result."""
    def client(wire):
        end = End(**options)
        hear_of_listener(wire, service)
        assert end.connect(service) == result
        wire.tell()
    return client


def listener_at(service, name="VINIC", prepare=lambda: None):
    """An end that waits for requests that never come."""
    def server(wire):
        from viaduct import vipl
        end = End(name)
        prepare()
        wire.tell(os.getpid())
        with pytest.raises(vipl.TimeoutError):
            end.nic.connect_wait(service, 2)
    return server


# ---- Connections -----------------------------------------------------------------------------------------------------

class TestNobodyListens(NobodyListens):
    client_of = staticmethod(client_of)
    listener_at = staticmethod(listener_at)
    event = "VIP_NO_MATCH"
    words = "info: VipConnectRequest(0x", "VIP_NO_MATCH"
    another_device = "VINIC1"


@pytest.mark.parametrize("attributes, result, reason", [
    ({"reliability_level": 4}, "VIP_INVALID_RELIABILITY_LEVEL", "the reliability levels differ"),
    ({"max_transfer_size": 4096}, "VIP_INVALID_MTU", "the maximum transfer sizes differ")])
def test_attributes_that_differ(service, attributes, result, reason):
    """The server finds the conflict. Its program rejects the request, and so the client learns only that."""
    values = (("reliable delivery", "reliable reception") if "reliability_level" in attributes
              else ("8192 bytes", "4096"))
    here = {} if "reliability_level" in attributes else {"max_transfer_size": 8192}

    def server(wire):
        from viaduct import vipl
        end = End(**here)
        request = end.wait(service, wire)
        with pytest.raises(vipl.Error):
            request.accept(end.vi)
        request.reject()

    server_log, log = run(server, client_of(service, "VIP_REJECT", **attributes))
    said_once(server_log, "info: VipConnectAccept(0x",
              f": {result}: {reason}: {values[0]} here, {values[1]} at the peer")
    said_once(log, "VIP_REJECT: process ", "rejected the request")


def test_peers_whose_attributes_differ(service):
    def peer(level, there):
        def end(wire):
            from viaduct import vipl
            one = End("VINIC0", reliability_level=vipl.ReliabilityLevel(level))
            with pytest.raises(vipl.Error) as raised:
                one.vi.connect_peer_request(one.nic.net_address(service, "127.0.0.1"), TIMEOUT_S)
                one.vi.connect_peer_wait()
            assert raised.value.name == "VIP_INVALID_RELIABILITY_LEVEL"
        return end
    logs = run(peer(2, 4), peer(4, 2))
    for log, here, there in zip(logs, ("delivery", "reception"), ("reception", "delivery")):
        said_once(log, "info: VipConnectPeerWait(0x", "VIP_INVALID_RELIABILITY_LEVEL: the reliability levels differ: "
                  f"reliable {here} here, reliable {there} at the peer")


def test_rejected_by_the_program(service):
    def server(wire):
        End().wait(service, wire).reject()
        wire.hear()
    server_log, log = run(server, client_of(service, "VIP_REJECT"))
    said_once(server_log, "info: VipConnectReject(0x", "the program rejected the request of 127.0.0.1")
    said_once(log, "info: VipConnectRequest(0x", ": VIP_REJECT: process ", " rejected the request")


def test_given_up(service):
    def server(wire):
        from viaduct import vipl
        end = End()
        request = end.wait(service, wire)
        wire.hear()
        with pytest.raises(vipl.TimeoutError):
            request.accept(end.vi)

    def client(wire):
        end = End()
        hear_of_listener(wire, service)
        assert end.connect(service, 0.2) == "VIP_TIMEOUT"
        wire.tell()
    server_log, log = run(server, client)
    said_once(log, f": VIP_TIMEOUT: the listener on port {service} of 127.0.0.1 took the request and did not answer")
    said_once(server_log, "VipConnectAccept(0x", ": VIP_TIMEOUT: the requester has given up")


def test_a_peer_that_dies(service):
    def server(wire):
        end = End()
        end.wait(service, wire).accept(end.vi)
        wire.hear()
        die()

    def client(wire):
        import queue
        end = End()
        errors = queue.Queue()
        end.nic.error_callback(errors.put)
        hear_of_listener(wire, service)
        assert end.connect(service) == "VIP_SUCCESS"
        wire.tell()
        assert errors.get(timeout=TIMEOUT_S).error_code.name == "CONN_LOST"
    _, log = run(server, client)
    said_once(log, "info: VI 0x", ": the connection ended: the peer's process ended")


def test_a_host_that_no_backend_reaches():
    def program(_):
        from viaduct import vipl
        end = End()
        with pytest.raises(vipl.Error) as raised:
            end.vi.connect_request(end.nic.net_address(1, "192.0.2.1"), 1)
        assert raised.value.name == "VIP_NOT_REACHABLE"
    said_once(run_alone(program), "info: VipConnectRequest(0x", ": VIP_NOT_REACHABLE: 192.0.2.1 is not an address of "
              "this host, and the loopback backend reaches no other")


# ---- Calls -----------------------------------------------------------------------------------------------------------

def test_arguments_have_reasons_at_debug():
    def program(_):
        from viaduct import _vipl, vipl
        end = End()
        for call in (lambda: vipl.open_nic("swallow"), lambda: end.nic.create_cq(0),
                     lambda: end.nic.create_vi(vipl.ViAttributes(qos=1)),
                     lambda: _vipl.VipConnectRequest(end.vi.handle, None, None, 1),
                     lambda: _vipl.VipSendDone(0x1234), lambda: end.nic.ns_get_host_by_name("localhost")):
            with pytest.raises(vipl.Error):
                call()
    log = run_alone(program, "debug")
    said_once(log, "debug: VipOpenNic: VIP_INVALID_PARAMETER: no NIC with that name")
    said_once(log, "debug: VipCreateCQ(0x", "VIP_INVALID_PARAMETER: EntryCount is 0")
    said_once(log, "info: VipCreateVi(0x", "VIP_INVALID_QOS: QoS is not NULL")
    said_once(log, "debug: VipConnectRequest(0x", "VIP_INVALID_PARAMETER: LocalAddr is NULL")
    said_once(log, "debug: VipSendDone(0x1234): VIP_INVALID_PARAMETER: ViHandle is not a VI")
    said_once(log, "info: VipNSGetHostByName(0x", "VIP_ERROR_NAMESERVICE: VipNSInit was not called")
    assert "VipSendDone" not in run_alone(program, "info")


def test_limits_have_names_and_values():
    def program(_):
        from viaduct import vipl
        end = End()
        with pytest.raises(vipl.Error):
            end.nic.create_cq(10**9)
        with pytest.raises(vipl.Error):
            end.nic.create_vi(vipl.ViAttributes(max_transfer_size=10**10))
        with pytest.raises(vipl.Error):
            end.nic.create_vi(vipl.ViAttributes(vipl.ReliabilityLevel.UNRELIABLE, enable_rdma_read=True))
    log = run_alone(program)
    said_once(log, "VipCreateCQ(0x", "VIP_ERROR_RESOURCE: 1000000000 entries asked for, MaxCQEntries is ")
    said_once(log, "VipCreateVi(0x", "VIP_INVALID_MTU: MaxTransferSize is 10000000000, MaxTransferSize of the NIC is ")
    said_once(log, "VipCreateVi(0x", "VIP_INVALID_RDMAREAD: EnableRdmaRead is set, and an unreliable VI cannot serve")


def test_expected_results_are_no_failures():
    def program(_):
        from viaduct import vipl
        end = End()
        assert end.nic.create_cq(4).done() is None
        with pytest.raises(vipl.TimeoutError):
            end.nic.create_cq(4).wait(0.001)
        with pytest.raises(vipl.TimeoutError):
            end.nic.connect_wait(1, 0.001)
    assert "VIP_" not in run_alone(program, "debug")
