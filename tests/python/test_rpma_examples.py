# SPDX-License-Identifier: BSD-3-Clause
"""The librpma examples, each end in its own process."""
import os
import subprocess
import sys

import pytest

from programs import EXAMPLES, python, serving
from rpma_pair import ADDRESS, TIMEOUT, free_port


def test_ping():
    options = f"--host={ADDRESS}", f"--service={free_port()}", "--size=3000"
    with serving("ping_rpma.py", *options, "--listen") as server:
        output = python(EXAMPLES / "ping_rpma.py", *options, "--count=20")
        assert output.startswith("20 round trips of 3000 bytes: median ")
        assert server.communicate(timeout=TIMEOUT)[0] == "done\n"


@pytest.fixture
def port():
    """The port of a running store."""
    port = free_port()
    with serving("kv_store.py", f"--host={ADDRESS}", f"--service={port}", "serve") as server:
        yield port
    assert server.returncode == 0


def test_kv_store_by_its_command_line(port):
    client = EXAMPLES / "kv_store.py", f"--host={ADDRESS}", f"--service={port}"
    assert python(*client, "put", "key", "value") == ""
    assert python(*client, "get", "key") == "value\n"
    assert python(*client, "get", "none", status=1) == "no such key\n"


READER = """
import sys
sys.path.insert(0, sys.argv[1])
import kv_store
client = kv_store.Client(sys.argv[2], int(sys.argv[3]))
seen = set()
while b"the last" not in seen:
    value = client.get(b"key")
    assert value is None or value == b"the last" or value == value[:1] * 180, value
    seen.add(value)
"""


def test_kv_store_is_read_whole_while_it_is_written(port):
    sys.path.insert(0, str(EXAMPLES))
    import kv_store
    with subprocess.Popen([sys.executable, "-c", READER, EXAMPLES, ADDRESS, str(port)]) as reader:
        client = kv_store.Client(ADDRESS, port)
        for round in range(20 if os.environ.get("VIADUCT_BACKEND") == "verbs" else 500):
            client.put(b"key", bytes([97 + round % 26]) * 180)
        client.put(b"key", b"the last")
        assert reader.wait(TIMEOUT) == 0
        client.close()
