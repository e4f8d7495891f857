# SPDX-License-Identifier: BSD-3-Clause
"""viaduct.pytest_plugin: the fixtures for users' tests, and the report of a failure in the other process."""
import os

import pytest
from programs import EXAMPLE_FOR_PYTEST
from viaduct import core

pytest_plugins = ["pytester"]

same_everywhere = pytest.mark.skipif(os.environ.get("VIADUCT_BACKEND") == "verbs",
                                     reason="does not depend on the backend")

PEERS = """
    import json, signal, os
    import pytest
    from viaduct import core
    from viaduct.pytest_plugin import PeerFailed, Report

    def double(link):
        link.send(2 * link.recv())
        return "done"

    def fail(link):
        raise LookupError("what the peer has to say")

    def wait_for_ever(link):
        link.send("here")
        link.recv()

    def die(link):
        os.kill(os.getpid(), signal.SIGKILL)

    def die_without_reading(link):
        link.poll(None)
        os.kill(os.getpid(), signal.SIGKILL)

    def report_at_the_end(link, file):
        link.recv()
        file.write_text(json.dumps(dict.fromkeys(Report._fields, "late")))

    def return_early(link):
        return os.environ.get("VIADUCT_BACKEND")

    def send(device, endpoint):
        endpoint.post_send(device.register(8)[:])
        try:
            endpoint.wait_send(60)
        except core.RequestError as error:
            return error.name

    def name_of(device, endpoint):
        return device.name

    def fail_connected(device, endpoint):
        raise LookupError("what the connected peer has to say")
"""


@pytest.fixture
def run(pytester, backend):
    """Runs a user's test file with these peers, like a user does."""
    def run_tests(tests, *options):
        pytester.makepyfile(peers=PEERS)
        pytester.makepyfile(test_user="from peers import *\n" + tests)
        return pytester.runpytest_subprocess("-p", "viaduct.pytest_plugin", "-p", "no:cacheprovider", *options)
    return run_tests


def test_pair_is_connected(pair):
    assert pair.client.state == pair.server.state == core.State.CONNECTED


def test_services_are_different(free_service):
    assert len({free_service() for _ in range(10)}) == 10


def test_users_tests_pass(run):
    done = run(EXAMPLE_FOR_PYTEST + """
def test_peer(peer_process):
    peer = peer_process(double)
    peer.send(21)
    assert peer.receive() == 42
    assert peer.result() == "done"

def test_result(device, remote_pair):
    endpoint, peer = remote_pair(name_of)
    endpoint.disconnect()
    assert peer.result() == device.name

def test_killed_peer(peer_process):
    peer = peer_process(wait_for_ever)
    peer.kill()
    with pytest.raises(ProcessLookupError):
        os.kill(peer.pid, 0)

def test_dead_peer(peer_process):
    peer = peer_process(die_without_reading)
    peer.send("something")
    with pytest.raises(PeerFailed, match="SIGKILL"):
        peer.receive()
""")
    done.assert_outcomes(passed=6)


@same_everywhere
def test_failures_of_peers_are_shown(run):
    done = run("""
def test_waits_in_vain(peer_process):
    peer = peer_process(fail)
    peer.receive()

def test_does_not_look(peer_process):
    peer_process(fail)

def test_fails_first(peer_process):
    peer_process(wait_for_ever).receive()
    assert 1 + 1 == 3

def test_dead(peer_process):
    peer_process(die).result()

def test_early(peer_process):
    peer_process(return_early).receive()

def test_connected(device, remote_pair):
    endpoint, peer = remote_pair(fail_connected)
    endpoint.post_receive(device.register(8)[:])
    endpoint.wait_receive(60)

def test_nobody_is_left():
    import multiprocessing
    assert not multiprocessing.active_children()
""")
    done.assert_outcomes(passed=2, failed=5, errors=1)
    done.stdout.re_match_lines_random([
        r"E .*PeerFailed: Traceback.*", r".*LookupError: what the peer has to say", r".*KeyboardInterrupt",
        r".*ERROR at teardown of test_does_not_look.*", r"E .*the process ended with SIGKILL",
        r".*has returned instead.*", r"E .*FLUSHED.*", r".*LookupError: what the connected peer has to say",
        r"-+ peer process \d+ -+"])


@same_everywhere
def test_processes_that_have_ended_leave_no_descriptors(run):
    done = run("""
descriptors = set()

@pytest.mark.parametrize("_", range(3))
def test_peer(peer_process, _):
    descriptors.add(len(os.listdir("/proc/self/fd")))
    peer_process(return_early).result()

def test_descriptors():
    descriptors.add(len(os.listdir("/proc/self/fd")))
    assert len(descriptors) == 2  # before and after multiprocessing has started its tracker
""")
    done.assert_outcomes(passed=4)


@same_everywhere
@pytest.mark.parametrize("order", ["viaduct_check, start", "start, viaduct_check"])
def test_the_checker_hears_of_the_end_of_processes(run, order):
    done = run(f"""
@pytest.fixture
def start(peer_process):
    peers = []
    yield lambda *arguments: peers.append(peer_process(*arguments))
    peers[0].send("end")

def test_reports({order}):
    start(report_at_the_end, viaduct_check._file)
""")
    done.assert_outcomes(passed=1, errors=1)
    done.stdout.re_match_lines_random(["late: check late: late.*"])


@same_everywhere
def test_faults(run):
    run("""
import subprocess, sys

LOSE = '''
from viaduct import core
with core.Device() as device:
    pass
'''

def opens():
    done = subprocess.run([sys.executable, "-c", LOSE], capture_output=True, text=True)
    return done.returncode == 0, done.stderr

def test_programs(viaduct_faults):
    assert opens()[0]
    viaduct_faults("alloc=1")
    opened, log = opens()
    assert not opened
    assert "fault injected: alloc, call 1, which creates a device" in log
    viaduct_faults("")
    assert opens()[0]

def test_ends_with_the_test():
    assert "VIADUCT_FAULTS" not in os.environ and opens()[0]

def test_second_process(device, remote_pair, viaduct_faults):
    viaduct_faults("drop=100%")
    endpoint, peer = remote_pair(send)
    memory = device.register(8)
    endpoint.post_receive(memory[:])
    with pytest.raises(core.RequestError):
        endpoint.wait_receive(60)
    assert peer.result() == "TRANSPORT"

def test_own_process(device, pair, viaduct_faults):
    viaduct_faults("drop=100%")
    memory = device.register(16)
    pair.server.post_receive(memory[:8])
    pair.client.post_send(memory[8:])
    assert pair.server.wait_receive(60).nbytes == 8
""").assert_outcomes(passed=4)


@same_everywhere
def test_a_test_module_may_name_the_plugin(pytester):
    pytester.makepyfile("""
        pytest_plugins = ["viaduct.pytest_plugin"]
        def test_pair(pair):
            pair.client.disconnect()
    """)
    pytester.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(passed=1)


@same_everywhere
def test_backend_is_chosen(run, backend, pytester):
    tests = """
def test_backend(backend, peer_process):
    assert backend == os.environ["VIADUCT_BACKEND"] == peer_process(return_early).result()
"""
    run(tests, f"--viaduct-backend={backend}").assert_outcomes(passed=1)
    pytester.makeini(f"[pytest]\nviaduct_backend = {backend}")
    run(tests).assert_outcomes(passed=1)


@same_everywhere
def test_without_devices_tests_are_skipped(run, backend, pytester):
    pytester.makeconftest("from viaduct import core\ncore.devices = lambda: []")
    done = run("def test_any(pair): pass", "-rs")
    done.assert_outcomes(skipped=1)
    done.stdout.fnmatch_lines([f"*the backend {backend} finds no device*"])
