# SPDX-License-Identifier: BSD-3-Clause
"""Connected VIs for the tests of viaduct.vipl."""
import queue

import pytest
from background import TIMEOUT, Background
from services import free_number as free_discriminator
from viaduct import vipl


def must_fail(code, call, *arguments, **options):
    """Expects a failure and returns it."""
    with pytest.raises(vipl.Error) as raised:
        call(*arguments, **options)
    assert raised.value.code == code, raised.value
    return raised.value


def repeated(call):
    """Repeats a connection request until a server waits for it, like VIPL programs do."""
    while True:
        try:
            return call()
        except vipl.Error as error:
            if error.code != vipl.ReturnCode.NO_MATCH:
                raise


def request(vi, remote, timeout=TIMEOUT):
    return repeated(lambda: vi.connect_request(remote, timeout))


def connect(client, server):
    """Connects two VIs of one process."""
    discriminator = free_discriminator()
    asked = Background(request, client, server.nic.net_address(discriminator))
    server.nic.connect_wait(discriminator, TIMEOUT).accept(server)
    asked.result()


RDMA = vipl.ViAttributes(enable_rdma_write=True, enable_rdma_read=True)


def connected(nic, attributes=RDMA, **queues):
    """Creates two connected VIs of the NIC; the queues are the server's."""
    client, server = nic.create_vi(attributes), nic.create_vi(attributes, **queues)
    connect(client, server)
    return client, server


def errors_of(nic):
    """Returns a queue of the asynchronous errors of a NIC."""
    errors = queue.Queue()
    nic.error_callback(errors.put)
    return errors


@pytest.fixture
def nic():
    with vipl.open_nic() as opened:
        yield opened


@pytest.fixture
def pair(nic):
    return connected(nic)


@pytest.fixture
def region(nic):
    """64 bytes of registered memory."""
    return nic.register_mem(64)
