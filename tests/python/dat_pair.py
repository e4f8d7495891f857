# SPDX-License-Identifier: BSD-3-Clause
"""Two ends of a DAT connection in one process, for tests."""
import pytest
from background import TIMEOUT
from services import free_number
from viaduct import dat

free_qual = free_number
DEPTH = 16
AREA = 4096  # bytes of each side's memory


def of_extension(call):
    """Returns whether test_dat_extension.py tests the call, rather than test_dat.py."""
    return call == "dat_extension_op" or call.startswith("dat_ib_") and not call.endswith("_query")


class Side:
    """One end: a zone, memory, an EVD for each kind of event, and an endpoint."""

    def __init__(self, ia, attributes=None, privileges=None, srq=False):
        self.ia = ia
        self.pz = ia.pz_create()
        self.lmr = ia.lmr_create(bytearray(AREA), self.pz, privileges)
        self.requests_for_connection = ia.evd_create(DEPTH, dat.EvdFlags.CR)
        self.connections = ia.evd_create(DEPTH, dat.EvdFlags.CONNECTION)
        self.received = ia.evd_create(DEPTH, dat.EvdFlags.DTO)
        self.requested = ia.evd_create(DEPTH, dat.EvdFlags.DTO | dat.EvdFlags.RMR_BIND)
        self.srq = ia.srq_create(self.pz, DEPTH) if srq else None
        self.ep = self.new_ep(attributes)

    def new_ep(self, attributes=None):
        return self.ia.ep_create(self.pz, self.received, self.requested, self.connections,
                                 attributes or (dat.EpAttr() if self.srq else None), self.srq)

    def done(self):
        """Returns the next completion of a request, which must be successful."""
        return succeeded(self.requested.wait(TIMEOUT))

    def got(self):
        """Returns the next completion of a receive, which must be successful."""
        return succeeded(self.received.wait(TIMEOUT))

    def connection(self):
        """Returns the number of the next connection event."""
        return self.connections.wait(TIMEOUT).event_number


def succeeded(event):
    assert event.ok, event
    return event


ESTABLISHED = dat.EventNumber.CONNECTION_EVENT_ESTABLISHED
DISCONNECTED = dat.EventNumber.CONNECTION_EVENT_DISCONNECTED


class Pair:
    """A client and a server on the same adapter."""

    def __init__(self, ia, **options):
        self.client = Side(ia, **options)
        self.server = Side(ia, **options)
        self.psp = ia.psp_create_any(self.server.requests_for_connection)
        self.qual = self.psp.conn_qual

    def request(self, private_data=b"", ep=None, qual=None):
        """Sends a connection request and returns the server's view of it."""
        (ep or self.client.ep).connect(self.client.ia.address, qual or self.qual, TIMEOUT, private_data)
        return self.server.requests_for_connection.wait(TIMEOUT)

    def connect(self):
        self.request().cr.accept(self.server.ep)
        assert self.client.connection() == ESTABLISHED
        assert self.server.connection() == ESTABLISHED
        return self

    def send(self, data):
        """Sends a message to the server and waits for it."""
        self.server.ep.post_recv(self.server.lmr[:AREA // 2], cookie=1)
        self.client.lmr.view[:len(data)] = data
        self.client.ep.post_send(self.client.lmr[:len(data)], cookie=2)
        self.client.done()
        event = self.server.got()
        assert bytes(self.server.lmr.view[:event.transfered_length]) == data
        return event


@pytest.fixture
def ia():
    with dat.ia_open() as opened:
        yield opened


@pytest.fixture
def pair(ia):
    return Pair(ia).connect()
