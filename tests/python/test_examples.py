# SPDX-License-Identifier: BSD-3-Clause
"""The scripts in bindings/python/examples, run like users run them."""
import os
import pathlib
import struct

import pytest
import viaduct
from programs import EXAMPLES, TESTS, python, serving

BUILD = pathlib.Path(os.environ.get("BUILD", pathlib.Path(viaduct.__file__).parents[3]))
SLOW = os.environ.get("VIADUCT_BACKEND") == "verbs"


def test_every_example_is_run():
    tested = "".join(path.read_text(encoding="utf-8") for path in TESTS.glob("test_*examples.py"))
    assert [path.name for path in EXAMPLES.glob("*.py") if f'"{path.name}"' not in tested] == []


def test_echo_server(backend, free_service):
    clients, messages = (4, 5) if SLOW else (32, 20)
    output = python(EXAMPLES / "echo_server.py", "--service", free_service(), "--clients", clients,
                    "--messages", messages)
    assert output.startswith(f"{clients} clients sent {messages} messages each, and all came back")


def test_echo_server_in_two_processes(device, free_service):
    service = free_service()
    with serving("echo_server.py", "--service", service, "--listen") as server:
        host = ".".join(map(str, device.host))
        output = python(EXAMPLES / "echo_server.py", "--service", service, "--host", host, "--clients", 2)
        assert output.startswith("2 clients sent 100 messages each, and all came back")
    assert server.returncode == 0


@pytest.mark.parametrize("script", ["ping_vipl.py", "ping_dat.py"])
def test_ping(backend, free_service, script):
    service = free_service()
    with serving(script, "--service", service, "--listen") as server:
        output = python(EXAMPLES / script, "--service", service, "--count", 50)
        assert output.startswith("50 round trips of 64 bytes: median ")
        assert server.communicate(timeout=240)[0] == "done\n"
    assert server.returncode == 0


def test_kill_peer(backend, free_service):
    output = python(EXAMPLES / "kill_peer.py", "--service", free_service(), "--rounds", 2, "--messages", 20,
                    "--bound", 20)
    assert output.splitlines()[-1].startswith("nothing is left behind")


def test_latency_plot(backend, tmp_path):
    pytest.importorskip("matplotlib")
    png = tmp_path / "latency.png"
    output = python(EXAMPLES / "latency_plot.py", png, "--vi-perf", BUILD / "tools/vi-perf", "--sizes",
                    "8" if SLOW else "8,4K", "--duration", 0.02, "--backends", backend)
    shown = [line.split()[:2] for line in output.splitlines()]
    assert shown == [[api, backend] for api in ("core", "vipl", "dat", "rpma")]
    header = png.read_bytes()[:24]
    assert header[:8] == b"\x89PNG\r\n\x1a\n" and struct.unpack(">II", header[16:]) == (1200, 750)


def test_test_of_a_c_program(backend):
    output = python("-m", "pytest", "-p", "viaduct.pytest_plugin", "-p", "no:cacheprovider",
                    EXAMPLES / "test_c_program.py",
                    env={**os.environ, "HELLO": str(BUILD / "tests/readme/readme_hello")})
    assert " 4 passed in " in output
