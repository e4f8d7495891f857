# SPDX-License-Identifier: BSD-3-Clause
"""Why requests fail over an RDMA device, as both ends log it: the device says less than other backends."""
import os
import pathlib
import re
import subprocess
import sys

import pytest

from test_requests import NO_SUCH_HANDLE, client_says, elsewhere, local, pair
from test_vipl import TIMEOUT_S
from two_ends import said_once

pytestmark = pytest.mark.skipif(os.environ.get("VIADUCT_BACKEND") != "verbs", reason="needs an RDMA device")


def fails(post):
    """The failure is found when the completion is taken."""
    def client(port, remote):
        post(port, remote)
        with pytest.raises(port.vipl.DescriptorError):
            port.vi.send_wait(TIMEOUT_S)
    return client


@pytest.mark.parametrize("post, result, words", [
    (lambda port, remote: port.send(local("Handle", NO_SUCH_HANDLE)), "PROTECTION", "local QP operation error"),
    (lambda port, remote: port.write(elsewhere(remote)), "RDMA_PROT", "remote access error"),
    (lambda port, remote: port.send(), "REMOTE_DESC", "RNR retry counter exceeded"),
], ids=["no_local_region", "no_remote_region", "no_receive"])
def test_a_request_that_fails(post, result, words):
    server_log, log = pair(fails(post), reliability_level=4)
    client_says(log, f"VIP_STATUS_{result}_ERROR", f"the device says: {words}")
    said_once(server_log, "info: VI 0x", ": the connection ended: ")


def test_devices_whose_library_cannot_be_loaded():
    library = next(pathlib.Path("/usr/lib").glob("*/libibverbs.so.1")).resolve()
    program = "from viaduct import vipl; print(vipl.open_nic('VINIC').attributes.name)"
    done = subprocess.run(["unshare", "--mount", "sh", "-c", 'mount --bind /dev/null "$0" && exec "$@"', library,
                           sys.executable, "-c", program], env={**os.environ, "VIADUCT_BACKEND": ""}, check=True,
                          capture_output=True, text=True)
    assert re.search(r"error: verbs: the RDMA devices cannot be used: .*libibverbs\.so\.1: ", done.stderr)
    assert done.stdout
