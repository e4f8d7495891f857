# SPDX-License-Identifier: BSD-3-Clause
"""A process with a connection forks. However its child ends, the connection goes on, and the child ends well."""
import contextlib
import gc
import os
import signal
import subprocess
import sys
import threading

import pytest
from vipl_pair import free_discriminator, must_fail, nic, request
from viaduct import core, vipl
from viaduct.pytest_plugin import PATIENCE

TESTS = os.path.dirname(os.path.abspath(__file__))

# What the child does with what it inherits, before sys.exit().
ENDS = ("nothing", "closing", "collecting")


TIMEOUT = PATIENCE / 3  # seconds; reached only if a call hangs


@contextlib.contextmanager
def process(function, *arguments):
    """Runs a function of this file in a new process meanwhile. It must succeed, and it and its child be silent."""
    program = f"import test_fork; test_fork.{function}{arguments!r}"
    with subprocess.Popen([sys.executable, "-c", program], cwd=TESTS, text=True, stderr=subprocess.PIPE,
                          start_new_session=True) as running:
        try:
            yield
            _, errors = running.communicate(timeout=TIMEOUT)
        except BaseException:
            os.killpg(running.pid, signal.SIGKILL)
            print(running.communicate()[1])
            raise
    assert running.returncode == 0, errors
    assert "Traceback" not in errors and "Fatal" not in errors, errors


# ---- viaduct.core ----

def fork_with_core(service, end):
    device, closed = core.Device(), core.Device()
    closed.close()
    endpoint, region, listener = device.endpoint(), device.register(64), device.listen(service + 1)
    endpoint.post_receive(region[32:])
    endpoint.connect(device.host, service, timeout=TIMEOUT)
    request = listener.next_request(TIMEOUT)
    child = os.fork()
    if child == 0:
        for use in (lambda: device.domain, lambda: device.register(8), device.endpoint, lambda: endpoint.state,
                    lambda: device.listen(service + 1), lambda: core.MemoryRegion(region.domain, 8)):
            with pytest.raises(ValueError, match="made by the parent process"):
                use()
        with pytest.raises(ValueError, match="is closed"):
            closed.domain
        if end == "closing":
            for thing in (endpoint, region, request, listener, device):
                thing.close()
        if end == "collecting":
            del endpoint, region, request, listener, device
            gc.collect()
        sys.exit()
    assert os.waitpid(child, 0) == (child, 0)
    request.accept(device.endpoint())
    region.view[:5] = b"alive"
    endpoint.post_send(region[:5])
    endpoint.wait_send(TIMEOUT)
    assert endpoint.wait_receive(TIMEOUT).nbytes == 6
    assert bytes(region.view[32:38]) == b"answer"
    device.close()


@pytest.mark.parametrize("end", ENDS)
def test_core(device, free_service, end):
    service = free_service()
    endpoint, region = device.endpoint(), device.register(64)
    endpoint.post_receive(region[:8])
    region.view[8:14] = b"answer"
    with device.listen(service) as listener, process("fork_with_core", service, end):
        listener.accept(endpoint, timeout=TIMEOUT)
        device.endpoint().connect(device.host, service + 1, timeout=TIMEOUT)
        assert endpoint.wait_receive(TIMEOUT).nbytes == 5
        assert bytes(region.view[:5]) == b"alive"
        endpoint.post_send(region[8:14])
        endpoint.wait_send(TIMEOUT)
        assert endpoint.next_event(TIMEOUT).kind == core.ConnectionEventKind.DISCONNECTED


# ---- viaduct.vipl ----

def fork_with_vipl(discriminator, end):
    nic = vipl.open_nic()
    cq = nic.create_cq()
    vi, region = nic.create_vi(), nic.register_mem(64)
    nic.error_callback(lambda error: None)
    cq.notify(print)  # with a thread, which the child does not have
    vi.post_recv(region[32:])
    request(vi, nic.net_address(discriminator), TIMEOUT)
    child = os.fork()
    if child == 0:
        must_fail(vipl.ReturnCode.INVALID_PARAMETER, vi.recv_wait)
        if end == "closing":
            for thing in (vi, cq, region, nic):
                thing.close()
        if end == "collecting":
            del vi, cq, region, nic
            gc.collect()
        sys.exit()
    assert os.waitpid(child, 0) == (child, 0)
    region.view[:5] = b"alive"
    vi.post_send(region[:5])
    vi.send_wait(TIMEOUT)
    assert vi.recv_wait(TIMEOUT).length == 6
    assert bytes(region.view[32:38]) == b"answer"
    nic.close()


@pytest.mark.parametrize("end", ENDS)
def test_vipl(nic, end):
    discriminator = free_discriminator()
    vi, region = nic.create_vi(), nic.register_mem(64)
    vi.post_recv(region[:8])
    region.view[8:14] = b"answer"
    with process("fork_with_vipl", discriminator, end):
        nic.connect_wait(discriminator, TIMEOUT).accept(vi)
        assert vi.recv_wait(TIMEOUT).length == 5
        assert bytes(region.view[:5]) == b"alive"
        vi.post_send(region[8:14])
        vi.send_wait(TIMEOUT)


def fork_beside_a_handler():
    inside, leave = threading.Event(), threading.Event()
    nic = vipl.open_nic()
    vi = nic.create_vi()
    vi.post_send()
    vi.send_notify(lambda *_: (inside.set(), leave.wait(TIMEOUT)))
    assert inside.wait(TIMEOUT)
    child = os.fork()
    if child == 0:
        sys.exit()
    assert os.waitpid(child, 0) == (child, 0)
    leave.set()
    nic.close()


def test_a_handler_that_only_the_parent_runs():
    with process("fork_beside_a_handler"):
        pass
