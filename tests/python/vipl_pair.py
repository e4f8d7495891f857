# SPDX-License-Identifier: BSD-3-Clause
"""Connected VIs for the tests of viaduct.vipl."""
import itertools
import os
import threading

import pytest
from viaduct import vipl

TIMEOUT = 60  # seconds; only for what would hang

_discriminators = itertools.count()


def free_discriminator():
    """One that no other process of the tests uses, for a while."""
    return 1024 + (os.getpid() * 64 + next(_discriminators)) % 18976  # below those of the programs in C


class Background:
    """A call in another thread; result() waits for what it returns or raises."""

    def __init__(self, call, *arguments, **options):
        self._thread = threading.Thread(target=self._run, args=(call, arguments, options), daemon=True)
        self._thread.start()

    def _run(self, call, arguments, options):
        self._error = None
        try:
            self._result = call(*arguments, **options)
        except BaseException as error:
            self._error = error

    def result(self):
        self._thread.join(TIMEOUT)
        assert not self._thread.is_alive(), "a call hangs"
        if self._error is not None:
            raise self._error
        return self._result


def request(vi, remote, timeout=TIMEOUT):
    """Asks for a connection until somebody waits there, as programs of VIPL do."""
    while True:
        try:
            return vi.connect_request(remote, timeout)
        except vipl.Error as error:
            if error.code != vipl.ReturnCode.NO_MATCH:
                raise


def connect(client, server):
    """Connects two VIs of one process."""
    discriminator = free_discriminator()
    asked = Background(request, client, server.nic.net_address(discriminator))
    server.nic.connect_wait(discriminator, TIMEOUT).accept(server)
    asked.result()


RDMA = vipl.ViAttributes(enable_rdma_write=True, enable_rdma_read=True)


def connected(nic, attributes=RDMA, **queues):
    """Two VIs of the NIC, connected with each other; the queues are the server's."""
    client, server = nic.create_vi(attributes), nic.create_vi(attributes, **queues)
    connect(client, server)
    return client, server


@pytest.fixture
def nic():
    with vipl.open_nic() as opened:
        yield opened


@pytest.fixture
def pair(nic):
    return connected(nic)
