# SPDX-License-Identifier: BSD-3-Clause
"""viaduct.vipl: connection setup that fails."""
import asyncio
from functools import partial

import pytest
from background import TIMEOUT, Background
from vipl_pair import free_discriminator, must_fail, nic, repeated, request
from viaduct import _vipl, vipl
from viaduct.vipl import ReturnCode


def test_attributes_have_to_agree(nic):
    client = nic.create_vi(vipl.ViAttributes(max_transfer_size=4096))
    discriminator = free_discriminator()
    asked = Background(request, client, nic.net_address(discriminator))
    asking = nic.connect_wait(discriminator, TIMEOUT)
    must_fail(ReturnCode.INVALID_MTU, asking.accept, nic.create_vi(vipl.ViAttributes(max_transfer_size=8192)))
    asking.accept(nic.create_vi(vipl.ViAttributes(max_transfer_size=4096)))
    asked.result()


def test_a_number_is_a_discriminator_of_the_same_nic(nic):
    discriminator = free_discriminator()
    for connect in vipl.Vi.connect_request, lambda vi, remote, timeout: asyncio.run(
            vi.connect_request_async(remote, timeout)):
        client, server = nic.create_vi(), nic.create_vi()
        asked = Background(repeated, partial(connect, client, discriminator, TIMEOUT))
        nic.connect_wait(discriminator, TIMEOUT).accept(server)
        asked.result()
        assert client.state == server.state == vipl.State.CONNECTED


def test_peers_that_connect_by_number(nic):
    ends = nic.create_vi(), nic.create_vi()
    discriminator = free_discriminator()
    for end in ends:
        end.connect_peer_request(discriminator, TIMEOUT, local=discriminator)
    for end in ends:
        end.connect_peer_wait()
        assert end.state == vipl.State.CONNECTED


def test_request_that_was_given_up_cannot_be_accepted(nic):
    client, server = nic.create_vi(), nic.create_vi()
    discriminator = free_discriminator()
    asked = Background(request, client, nic.net_address(discriminator), 5)
    asking = nic.connect_wait(discriminator, TIMEOUT)
    with pytest.raises(vipl.TimeoutError):
        asked.result()
    must_fail(ReturnCode.TIMEOUT, asking.accept, server)
    assert asking.closed


def test_peer_that_does_not_come(nic):
    vi = nic.create_vi()
    vi.connect_peer_request(nic.net_address(free_discriminator()), 0.05)
    assert "did not connect" in must_fail(ReturnCode.TIMEOUT, vi.connect_peer_wait).text
    vi.post_recv(())
    assert must_fail(ReturnCode.TIMEOUT, _vipl.VipRecvWait, vi.handle, 0).text == "the timeout has passed"


def test_disconnect_ends_a_request(nic):
    vi = nic.create_vi()
    vi.connect_peer_request(nic.net_address(free_discriminator()))
    waiting = Background(vi.connect_peer_wait)
    vi.disconnect()
    must_fail(ReturnCode.INVALID_STATE, waiting.result)
    assert vi.state == vipl.State.IDLE
