# SPDX-License-Identifier: BSD-3-Clause
"""The log of a process whose standard error takes no more lines."""
import os
import select
import subprocess
import sys

import pytest

ESTABLISHED, DISCONNECTED = "CONNECTION_EVENT_ESTABLISHED", "CONNECTION_EVENT_DISCONNECTED"
PATIENCE_S = 20  # reached only if something hangs

# Connects two endpoints once for each line of standard input. The agent logs the events of both.
PROGRAM = """
import sys
from viaduct import dat

ia = dat.ia_open("viaduct-lo")
pz = ia.pz_create()
for service in sys.stdin:
    requests, events = ia.evd_create(8, dat.EvdFlags.CR), ia.evd_create(8, dat.EvdFlags.CONNECTION)
    client, server = (ia.ep_create(pz, ia.evd_create(8, dat.EvdFlags.DTO), ia.evd_create(8, dat.EvdFlags.DTO), events)
                      for _ in range(2))
    psp = ia.psp_create(int(service), requests)
    client.connect(ia.address, int(service), 10)
    requests.wait(10).cr.accept(server)
    names = [events.wait(10).event_number.name for _ in range(2)]
    client.disconnect()
    names += [events.wait(10).event_number.name for _ in range(2)]
    psp.close()
    print(*names, flush=True)
"""


@pytest.fixture
def pipe():
    """The ends of a pipe. The second one has no room."""
    ends = os.pipe()
    os.set_blocking(ends[1], False)
    for size in 4096, 1:
        try:
            while True:
                os.write(ends[1], bytes(size))
        except BlockingIOError:
            pass
    os.set_blocking(ends[1], True)
    yield ends
    for end in ends:
        os.close(end)


def connect(program, service):
    program.stdin.write(f"{service}\n")
    assert select.select([program.stdout], [], [], PATIENCE_S)[0], "the program hangs"
    assert program.stdout.readline().split() == 2 * [ESTABLISHED] + 2 * [DISCONNECTED]


def all_of(descriptor):
    text = b""
    while select.select([descriptor], [], [], 0)[0]:
        text += os.read(descriptor, 65536)
    return text.strip(b"\0").decode()


def test_a_full_pipe_delays_no_connection(pipe):
    environment = dict(os.environ, VIADUCT_LOG="debug", VIADUCT_BACKEND="loopback")
    service = 27000 + os.getpid() % 500 * 2
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=pipe[1], bufsize=1, text=True, env=environment) as program:
        try:
            connect(program, service)
            assert all_of(pipe[0]) == ""
            connect(program, service + 1)
            text = all_of(pipe[0])
            assert "lines were dropped because standard error took no more" in text.splitlines()[0]
            assert "DAT_CONNECTION_EVENT_ESTABLISHED" in text
        finally:
            program.kill()
