# SPDX-License-Identifier: BSD-3-Clause
"""The checker: programs with one mistake each, and correct ones, for each API, with the fixture of the plugin."""
import ctypes
import faulthandler
import mmap
import os
import pathlib
import re
import socket
import subprocess

import pytest
from viaduct import core
from viaduct.pytest_plugin import PeerFailed, connected

BUILD = pathlib.Path(os.environ.get("BUILD", "build/release"))
HOST = os.environ.get("TEST_HOST", "127.0.0.1")
PATIENCE_S = 60
APIS = "vipl", "dat", "rpma"
CALLS = {"vipl": "VipPost(Send|Recv)", "dat": "dat_ep_post_", "rpma": "rpma_(send|write|recv)"}
OBJECTS = {"vipl": "VI 0x", "dat": "endpoint 0x", "rpma": "connection 0x"}

# Of each mistake the check that finds it and what it says, and the APIs where it can be made. VIPL has no mistake that
# is late: a message without a receive breaks the connection; nor has it depths that a program could choose.
# In DAT, dat_evd_wait takes all completions that it counts.
MISTAKES = {
    "sends": ("sends", "64 bytes at 0x.* have changed between its post and its completion", APIS),
    "receives": ("receives", "4096 bytes at 0x.* have changed between its post and its completion", APIS),
    "reads": ("reads", "its 64 bytes at 0x.* are the target of .*, whose completion was not taken", APIS),
    "deregistered": ("memory", "128 bytes at 0x.* were deregistered before its completion", APIS),
    "freed": ("memory", "65536 bytes at 0x.* were freed before its completion", APIS),
    "order": ("order", r"64 bytes at 0x.* of the peer's region 0x.* \(RDMA read\), which has not completed", APIS),
    "completions": ("completions", "nobody has taken its completion", ("vipl", "rpma")),
    "objects": ("objects", "the process ends with .*, then 1 .*, which should have been closed in this order", APIS),
    "pages": ("pages", "its buffer was read at 0x.* before its completion", APIS),
    "late": ("late", r"2 messages had to wait .*; the longest took \d+\.\d+ ms", ("dat", "rpma")),
    "queues": ("queues", r"the receive queue is full with \d+ requests", ("dat", "rpma")),
    "threads": ("threads", "another thread posts to the same queue at the same time", ("dat",)),
    "unflushed": ("flushes", "a message follows a write of 64 bytes to 0x.*, which was not flushed", ("rpma",)),
    "visible": ("flushes", "which was flushed for visibility and not to persistence", ("rpma",)),
}
if os.environ.get("VIADUCT_BACKEND") == "verbs":
    del MISTAKES["late"]  # devices do not tell
# What else is true of these programs.
ALSO = {"threads": {"queues"}}
WITH_CALL = {"sends", "receives", "reads", "memory", "order", "pages", "flushes"}


@pytest.fixture
def run():
    """Runs a server and a client, and returns what the client has written."""
    def both(program, argument, client_argument, status=0):
        with socket.socket() as holder:
            holder.bind((HOST, 0))
            port = str(holder.getsockname()[1])
        server = subprocess.Popen([program, "server", HOST, port, *argument], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True)
        with server:
            try:
                client = subprocess.run([program, "client", HOST, port, client_argument], timeout=PATIENCE_S,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
                assert client.returncode == status, client.stdout
                server.wait(PATIENCE_S)
            finally:
                server.kill()
        return client.stdout
    return both


@pytest.mark.parametrize("program", ["none", "forks"])
@pytest.mark.parametrize("api", APIS)
def test_a_correct_program(viaduct_check, run, api, program):
    viaduct_check("1,pages")
    run(BUILD / f"tests/check/mistakes_{api}", ["none"], program)


@pytest.mark.parametrize("api, mistake", [(api, name) for name, (_, _, apis) in MISTAKES.items() for api in apis])
def test_a_mistake(viaduct_check, run, api, mistake):
    check, text, _ = MISTAKES[mistake]
    viaduct_check("1,pages" if mistake == "pages" else "1")
    said = run(BUILD / f"tests/check/mistakes_{api}", [mistake], mistake)
    reports = viaduct_check.reports()
    found = [report for report in reports if report.check == check and re.search(text, report.text)]
    assert len(found) == 1, reports
    assert {report.check for report in reports} <= {check} | ALSO.get(mistake, set())
    report = found[0]
    assert report.program == f"mistakes_{api}" and report.text in said
    if check != "objects":
        assert report.object.startswith(OBJECTS[api]), report
    if check in WITH_CALL:
        assert re.match(CALLS[api], report.text), report
        assert report.posted.startswith(f"mistakes_{api}+0x"), report


@pytest.mark.parametrize("api", APIS)
def test_examples(viaduct_check, run, api):
    viaduct_check()
    assert "over the valley" in run(BUILD / f"tests/tools/viaduct_faults_{api}", [], "over the valley")


@pytest.mark.parametrize("api", ["rpma", "vipl"])
def test_the_log(viaduct_check, run, tmp_path, api):
    viaduct_check()
    run(BUILD / f"tests/python/log_{api}", [tmp_path / "log"], "a line")


def test_a_missing_flush(viaduct_check, run, tmp_path):
    viaduct_check("flushes")
    run(BUILD / "tests/python/log_rpma_wrong", [tmp_path / "log"], "a line")
    assert [report.check for report in viaduct_check.reports()] == ["flushes"]


def send_and_change(_link):
    with core.Device() as device:
        pair = connected(device)
        memory = device.register(16)
        pair.server.post_receive(memory[:8])
        pair.client.post_send(memory[8:])
        memory.view[8] = 1
        pair.client.wait_send(PATIENCE_S)
        pair.server.wait_receive(PATIENCE_S)


def test_second_processes_are_checked(viaduct_check, peer_process):
    viaduct_check("sends")
    peer_process(send_and_change).result()
    report, = viaduct_check.reports()
    assert report.check == "sends" and report.text.startswith("post_send(0x"), report


def release_an_atomic_source(device, pair):
    source, target = device.register(8), device.register(8)
    pair.client.post_atomic_write(source[:], target.remote)
    source.close()
    pair.client.wait_send(PATIENCE_S)


def write(pair, memory, remote):
    pair.client.post_write(memory[64:128], remote)
    pair.client.wait_send(PATIENCE_S)


def flush(pair, remote, nbytes):
    pair.client.post_flush(remote, nbytes, persistent=True)
    pair.client.wait_send(PATIENCE_S)


def announce(pair, memory):
    pair.server.post_receive(memory[:64])
    pair.client.post_send()
    pair.client.wait_send(PATIENCE_S)
    pair.server.wait_receive(PATIENCE_S)


def flush_in_parts(device, pair):
    memory, target = device.register(128), device.register(64)
    write(pair, memory, target.remote)
    for offset in 16, 0, 32:
        flush(pair, target.remote + offset, 32)
    announce(pair, memory)


def announce_with_a_write(device, pair):
    memory, target = device.register(128), device.register(64)
    write(pair, memory, target.remote)
    flush(pair, target.remote, 64)
    pair.server.post_receive(memory[:64])
    pair.client.post_write((), target.remote, immediate=5)
    pair.client.wait_send(PATIENCE_S)
    pair.server.wait_receive(PATIENCE_S)


def write_to_a_receive(device, pair):
    memory = device.register(128)
    pair.server.post_receive(memory[:64])
    pair.client.post_write(memory[64:], memory.remote, immediate=5)
    pair.client.wait_send(PATIENCE_S)
    pair.server.wait_receive(PATIENCE_S)


def connect_again(device, pair):
    memory, target = device.register(128), device.register(128)
    write(pair, memory, target.remote)
    pair.client.disconnect()
    pair.server.next_event(PATIENCE_S)
    pair.server.disconnect()
    connected(device, *pair)
    write(pair, memory, target.remote + 64)
    flush(pair, target.remote + 64, 64)
    announce(pair, memory)


def run_connected(_link, program):
    with core.Device() as device:
        program(device, connected(device))


@pytest.mark.parametrize("program", [release_an_atomic_source, flush_in_parts, announce_with_a_write,
                                     write_to_a_receive, connect_again])
def test_correct_requests(viaduct_check, peer_process, program):
    viaduct_check()
    peer_process(run_connected, program).result()


def fork_and_unmap(_link):
    with core.Device() as device:
        shared = device.shared_receive_queue()
        endpoint = device.endpoint(shared_receives=shared)
        region = device.register(4096)
        shared.post_receive(region[:])
        memory = ctypes.c_void_p(region.remote.address)
        if (child := os.fork()) == 0:
            ctypes.CDLL(None).munmap(memory, ctypes.c_size_t(4096))
            os._exit(0)
        assert os.waitpid(child, 0) == (child, 0)
        endpoint.close()
        shared.close()


def test_a_child_has_requests_of_its_parent(viaduct_check, peer_process):
    viaduct_check()
    peer_process(fork_and_unmap).result()


def deregister_shared_receives(_link):
    with core.Device() as device:
        for endpoints in 0, 2:
            shared = device.shared_receive_queue()
            sharing = [device.endpoint(shared_receives=shared) for _ in range(endpoints)]
            region = device.register(4096)
            for _ in range(3):
                shared.post_receive(region[:])
            region.close()
            for endpoint in sharing:
                endpoint.close()
            shared.close()


def test_shared_receives_are_reported_once(viaduct_check, peer_process):
    viaduct_check("memory")
    peer_process(deregister_shared_receives).result()
    reports = viaduct_check.reports()
    assert len(reports) == 1, reports  # without endpoints, nothing can arrive
    assert reports[0].text.startswith("a shared receive: 4096 bytes at 0x"), reports
    assert "were deregistered before its completion" in reports[0].text


def fault_with_two_devices(_link):
    faulthandler.enable()
    with core.Device() as device:
        endpoint, region = device.endpoint(), device.register(3 * 4096)
        endpoint.post_receive(region[:])
        with core.Device():
            ctypes.string_at(0)


def test_the_program_gets_its_faults(viaduct_check, peer_process, capfd):
    viaduct_check("pages")
    with pytest.raises(PeerFailed, match="SIGSEGV"):
        peer_process(fault_with_two_devices).result()
    assert "Fatal Python error: Segmentation fault" in capfd.readouterr().err


def touch_behind_other_memory(_link, while_posted):
    map_fixed, libc = 0x10, ctypes.CDLL(None)
    with core.Device() as device, open("/proc/self/exe", "rb") as file:
        endpoint, region = device.endpoint(), device.register(3 * mmap.PAGESIZE)
        endpoint.post_receive(region[:])
        second, third = (ctypes.c_void_p(region.remote.address + mmap.PAGESIZE * page) for page in (1, 2))
        assert libc.mmap(second, ctypes.c_size_t(mmap.PAGESIZE), mmap.PROT_READ, mmap.MAP_SHARED | map_fixed,
                         file.fileno(), ctypes.c_long(0)) != -1
        if not while_posted:
            endpoint.close()
        assert ctypes.string_at(third, 1) == b"\0"


@pytest.mark.parametrize("while_posted", [True, False])
def test_a_part_of_a_buffer_is_other_memory(viaduct_check, peer_process, while_posted):
    viaduct_check("pages")
    peer_process(touch_behind_other_memory, while_posted).result()
    assert [report.check for report in viaduct_check.reports()] == ["pages"] * while_posted


def test_reports_fail_a_test(pytester):
    pytester.makepyfile("""
        import os, pathlib
        def test_found(viaduct_check):
            viaduct_check()
            line = dict(check="sends", object="VI 0x1", text="wrong", posted="a+0x1", found="", program="p",
                        process="1")
            pathlib.Path(os.environ["VIADUCT_CHECK_FILE"]).write_text(__import__("json").dumps(line))
        def test_nothing(viaduct_check):
            assert "VIADUCT_CHECK" not in os.environ
            viaduct_check()
            assert viaduct_check.reports() == []
    """)
    done = pytester.runpytest_subprocess("-p", "viaduct.pytest_plugin", "-p", "no:cacheprovider")
    done.assert_outcomes(passed=2, errors=1)
    done.stdout.fnmatch_lines(["*p: check sends: wrong; posted at a+0x1"])


def test_a_wrong_setting(monkeypatch, run):
    monkeypatch.setenv("VIADUCT_CHECK", "sends,luck")
    said = run(BUILD / "tests/check/mistakes_vipl", ["none"], "none", status=1)
    assert "VIADUCT_CHECK: cannot use 'luck', only 1, or a list of sends" in said


def test_a_wrong_list(viaduct_check):
    with pytest.raises(subprocess.CalledProcessError):
        viaduct_check("sends,everything")
