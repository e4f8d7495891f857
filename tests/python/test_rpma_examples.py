# SPDX-License-Identifier: BSD-3-Clause
"""The librpma examples, each end in its own process."""
import os
import pathlib
import signal
import subprocess
import sys

import pytest

from rpma_pair import ADDRESS, TIMEOUT, free_port

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "bindings" / "python" / "examples"


class Example:
    def __init__(self, name):
        self.name = name
        self.always = [sys.executable, EXAMPLES / name, f"--host={ADDRESS}", f"--service={free_port()}"]

    def run(self, *arguments):
        done = subprocess.run([*self.always, *arguments], timeout=10 * TIMEOUT, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False)
        return done.returncode, done.stdout

    def start(self, *arguments):
        process = subprocess.Popen([*self.always, *arguments], text=True, stdout=subprocess.PIPE)
        assert process.stdout.readline() == "listening\n"
        return process


def test_ping():
    ping = Example("ping_rpma.py")
    with ping.start("--listen", "--size=3000") as server:
        assert ping.run("--count=20", "--size=3000")[1].startswith("20 round trips of 3000 bytes: median ")
        assert server.communicate(timeout=TIMEOUT)[0] == "done\n"


@pytest.fixture
def store():
    store = Example("kv_store.py")
    with store.start("serve") as server:
        yield store
        server.send_signal(signal.SIGINT)
        assert server.wait(TIMEOUT) == 0


def test_kv_store_by_its_command_line(store):
    assert store.run("put", "key", "value") == (0, "")
    assert store.run("get", "key") == (0, "value\n")
    assert store.run("get", "none") == (1, "no such key\n")


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


def test_kv_store_is_read_whole_while_it_is_written(store):
    sys.path.insert(0, str(EXAMPLES))
    import kv_store
    port = store.always[-1].split("=")[1]
    with subprocess.Popen([sys.executable, "-c", READER, EXAMPLES, ADDRESS, port]) as reader:
        client = kv_store.Client(ADDRESS, int(port))
        for round in range(20 if os.environ.get("VIADUCT_BACKEND") == "verbs" else 500):
            client.put(b"key", bytes([97 + round % 26]) * 180)
        client.put(b"key", b"the last")
        assert reader.wait(TIMEOUT) == 0
        client.close()
