# SPDX-License-Identifier: BSD-3-Clause
"""Two connected ends of librpma in one process."""
import pytest
from background import TIMEOUT
from services import free_number as free_port
from viaduct import core, rpma

ADDRESS = "127.0.0.1" if core.backend() == "loopback" else "10.0.0.3"


def new_peer():
    return rpma.Peer(rpma.get_ibv_context(ADDRESS))


class Pair:
    """A client and a server, each with 4096 bytes of registered memory and a description of the other's."""

    def __init__(self, peer, client_cfg=None, server_cfg=None):
        self.peer = peer
        self.client_memory, self.server_memory = peer.mr_reg(4096), peer.mr_reg(4096)
        self.at_server = rpma.MrRemote.from_descriptor(self.server_memory.descriptor)
        self.at_client = rpma.MrRemote.from_descriptor(self.client_memory.descriptor)
        port = free_port()
        with peer.ep_listen(ADDRESS, port) as ep:
            self.client = peer.conn_req_new(ADDRESS, port, client_cfg).connect(b"hello")
            self.server = ep.accept(server_cfg, private_data=b"welcome", timeout=TIMEOUT)
        assert self.client.next_event(TIMEOUT) == rpma.ConnEvent.ESTABLISHED

    def send(self, data, context=0):
        """Sends from the client and waits for the completion."""
        self.client_memory.view[:len(data)] = data
        self.client.send(self.client_memory[:len(data)], context=context)
        assert self.client.cq.next_wc(TIMEOUT).check().wr_id == context


@pytest.fixture
def peer():
    with new_peer() as made:
        yield made


@pytest.fixture
def pair(peer):
    return Pair(peer)
