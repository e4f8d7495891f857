# SPDX-License-Identifier: BSD-3-Clause
"""Why an unreliable VI and an endpoint of DAT or librpma are not connected, as both ends log it. On loopback."""
import importlib
import os

import pytest

from two_ends import run, said_once

APIS = ("dat", "rpma")
CONFLICT = "VIP_INVALID_RELIABILITY_LEVEL"
HERE, THERE = "unreliable here, any reliable level at the peer", "any reliable level here, unreliable at the peer"


def end_of(api, **attributes):
    return importlib.import_module(f"{api}_end").End(**attributes)  # in the process of the end: see two_ends.py


@pytest.mark.parametrize("api", APIS)
def test_an_unreliable_client(service, api):
    def server(wire):
        end = end_of(api)
        end.listen(service)
        wire.tell()
        end.no_request(wire)

    def client(wire):
        wire.hear()
        assert end_of("vipl", level="UNRELIABLE").connect(service) == CONFLICT
        wire.tell()
    server_log, client_log = run(server, client)
    said_once(server_log, "refused the request of 127.0.0.1", f": the reliability levels differ: {THERE}")
    said_once(client_log, "VipConnectRequest(0x", f": {CONFLICT}: the reliability levels differ: {HERE}")


@pytest.mark.parametrize("api, event", (("dat", "DAT_CONNECTION_EVENT_NON_PEER_REJECTED"),
                                        ("rpma", "RPMA_CONN_REJECTED")))
def test_an_unreliable_server(service, api, event):
    """The client has ended, as if it had given up."""
    def server(wire):
        end = end_of("vipl", level="UNRELIABLE")
        end.listen(service)
        assert end.request() == "VIP_SUCCESS"
        assert end.accept() == CONFLICT
        wire.hear()
        other = end_of("vipl")
        other.asking = end.asking
        assert other.accept() == "VIP_TIMEOUT"

    def client(wire):
        os.environ["VIADUCT_CONNECT_RETRY_MS"] = "10000"  # the server may not listen yet
        assert end_of(api).connect(service) == event
        wire.tell()
    server_log, client_log = run(server, client)
    said_once(server_log, "VipConnectAccept(0x", f": {CONFLICT}: the reliability levels differ: {HERE}")
    said_once(client_log, f"the reliability levels differ: {THERE}")
