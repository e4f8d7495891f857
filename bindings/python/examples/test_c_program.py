# SPDX-License-Identifier: BSD-3-Clause
"""Tests a C program from Python: the VIPL program of the README, with viaduct.core as its peer.

    HELLO=./hello python3 -m pytest -p viaduct.pytest_plugin test_c_program.py

`hello TEXT` connects to the discriminator "hello" and sends the text; `hello` waits for a text and prints it. The
program uses Reliable Reception and messages of at most 64 bytes, so its peer must do the same, whatever its API. It
uses the first device of the backend, as the fixture `device` does.
"""
from __future__ import annotations

import contextlib
import os
import subprocess
import time
import typing

import pytest
from viaduct import core

HELLO = os.environ.get("HELLO", "./hello")
SERVICE = b"hello"
TIMEOUT = 20.0

pytestmark = pytest.mark.skipif(not os.access(HELLO, os.X_OK), reason="the variable HELLO does not name the program")


@contextlib.contextmanager
def hello(*arguments: str) -> typing.Iterator[subprocess.Popen[str]]:
    """Runs the program and makes sure that it ends."""
    with subprocess.Popen([HELLO, *arguments], stdout=subprocess.PIPE, text=True) as program:
        try:
            yield program
        finally:
            program.kill()


@pytest.fixture
def endpoint(device: core.Device) -> core.Endpoint:
    """Returns an endpoint with the attributes of the program's VI."""
    return device.endpoint(reliability=core.Reliability.RELIABLE_RECEPTION, max_transfer_bytes=64, breaks_unready=True)


def connect(device: core.Device, endpoint: core.Endpoint) -> None:
    """Retries until the program listens, because it prints nothing when it starts to listen."""
    end = time.monotonic() + TIMEOUT
    while True:
        try:
            endpoint.connect(device.host, SERVICE, timeout=TIMEOUT)
            return
        except core.Error as error:
            if error.code != core.Code.NO_LISTENER or time.monotonic() > end:
                raise
        time.sleep(0.01)


def test_server_prints_the_message(device: core.Device, endpoint: core.Endpoint) -> None:
    message = device.register(b"hello, receiver\0")
    with hello() as program:
        connect(device, endpoint)
        endpoint.post_send(message[:])
        endpoint.wait_send(TIMEOUT)
        assert program.communicate(timeout=TIMEOUT)[0] == "hello, receiver\n"
        assert program.returncode == 0


def test_server_fails_without_a_message(device: core.Device, endpoint: core.Endpoint) -> None:
    with hello() as program:
        connect(device, endpoint)
        endpoint.disconnect()
        assert program.communicate(timeout=TIMEOUT)[0].startswith("VipRecvWait")
        assert program.returncode == 1


def test_client_sends_its_argument(device: core.Device, endpoint: core.Endpoint) -> None:
    memory = device.register(64)
    endpoint.post_receive(memory[:])
    with device.listen(SERVICE) as listener, hello("and back again") as program:
        listener.accept(endpoint, timeout=TIMEOUT)
        assert endpoint.wait_receive(TIMEOUT).nbytes == 64
        assert bytes(memory.view).rstrip(b"\0") == b"and back again"
        assert program.wait(TIMEOUT) == 0


def test_client_is_refused(device: core.Device) -> None:
    with device.listen(SERVICE) as listener, hello("anybody?") as program:
        listener.next_request(TIMEOUT).reject()
        assert program.communicate(timeout=TIMEOUT)[0].startswith("VipConnectRequest")
        assert program.returncode == 1
