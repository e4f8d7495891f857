#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""trouble.py BUILD: stopped and killed processes, a port that is in use, a libssl that is missing. Also what the
backend must not do: load libssl for others, catch signals, wake up when idle."""
import contextlib
import json
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

from hosts import ADDRESSES, DEVICES, FAR, NEAR, Hosts, Program, check, enter, run_tests

SERVICE = 7330
TARGET = f"{ADDRESSES[FAR]}:{SERVICE}"
APIS = "vipl", "dat", "rpma", "core"
STOPPED_S = 1  # less than the patience of the tools
IDLE_S = 2
CLIENTS = 100
WAKE_UPS = 4  # in that time, of the library's threads in an idle process
OCCUPY = f"import socket, sys; s = socket.create_server(('', {SERVICE})); print(flush=True); sys.stdin.read()"


class Tools:
    def __init__(self, hosts, build):
        self.hosts, self.ping, self.perf = hosts, build / "tools/vi-ping", build / "tools/vi-perf"
        self.info = build / "tools/vi-info"
        self.contract = build / "tests/contract/viaduct_contract_tests"

    def serving(self, tool, *options, host=FAR, **settings):
        server = Program(self.hosts, host, tool, "--listen", SERVICE, *options, **settings)
        server.wait_for(r"listening on .*\n")
        return server

    def client(self, tool, *options, **settings):
        return Program(self.hosts, NEAR, tool, *options, TARGET, **settings)


# ---- Stopped and killed processes ------------------------------------------------------------------------------------

def stop_for_seconds(process):
    process.send_signal(signal.SIGSTOP)
    time.sleep(STOPPED_S)
    process.send_signal(signal.SIGCONT)


def test_a_stopped_server_loses_nothing(tools):
    for options in (["--test", "bandwidth", "--sizes", "64K"], ["--test", "rate"],
                    ["--test", "bandwidth", "--sizes", "1M", "--op", "write"]):
        with tools.serving(tools.perf) as server, \
                tools.client(tools.perf, "--duration", STOPPED_S + 1, *options) as client:
            server.wait_for("connected")
            stop_for_seconds(server.process)
            client.finish()


def test_a_stopped_client_loses_nothing(tools):
    with tools.serving(tools.ping), tools.client(tools.ping, "-i", 0.01, "-W", 20, "-c", 200) as client:
        client.wait_for("seq=2 ")
        stop_for_seconds(client.process)
        check(" 0% packet loss" in client.finish(), client.log)


def test_a_killed_client_has_disconnected(tools):
    """Even if it was killed in the middle of a message."""
    for api in APIS:
        with tools.serving(tools.perf, "--api", api) as server, \
                tools.client(tools.perf, "--api", api, "--test", "bandwidth", "--sizes", "64M", "--window", 1,
                             "--duration", 60) as client:
            server.wait_for("connected")
            time.sleep(0.3)  # most of the time, a message is under way
            client.process.kill()
            server.wait_for("disconnected unexpectedly")


def test_a_killed_server_comes_back(tools):
    for api in APIS:
        with tools.client(tools.ping, "--api", api, "-i", 0.05, "-W", 5) as client:
            with tools.serving(tools.ping):
                client.wait_for("bytes from")
            gone = "(closed|lost|no listener)"
            client.wait_for(gone)
            with tools.serving(tools.ping):  # perhaps so soon that no attempt finds no listener
                client.wait_for(f"(?s){gone}.*bytes from")
                client.stop(0, 1)


# ---- What is missing or in use ---------------------------------------------------------------------------------------

def test_a_port_that_is_in_use(tools):
    with tools.hosts.start(FAR, [sys.executable, "-c", OCCUPY], stdin=subprocess.PIPE,
                           stdout=subprocess.PIPE) as occupant:
        occupant.stdout.readline()
        silent = []
        for api in APIS:
            tried = tools.hosts.attempt(FAR, tools.ping, "--api", api, "--listen", SERVICE, VIADUCT_LOG="info")
            check(tried.returncode == 2 and "listening on" not in tried.stdout,
                  f"{api}: exit status {tried.returncode}: {tried.stdout}")
            silent += [] if re.search("(?i)in.use|uses the port", tried.stdout) else [tried.stdout]
        check(not silent, "no reason: " + "\n".join(silent))
        occupant.kill()
    with tools.serving(tools.ping), tools.client(tools.ping, "-c", 1) as client:
        client.finish()


def test_a_service_that_another_process_serves(tools):
    with tools.serving(tools.ping):
        tried = tools.hosts.attempt(FAR, tools.ping, "--api", "rpma", "--listen", SERVICE)
        check(tried.returncode == 2 and re.search("(?i)in.use|busy", tried.stdout), tried.stdout)


def test_no_libssl(tools):
    """The loader finds a file of this name that is no library."""
    with tempfile.TemporaryDirectory() as directory:
        pathlib.Path(directory, "libssl.so.3").touch()
        for api in APIS:
            tried = tools.hosts.attempt(NEAR, tools.ping, "--api", api, "--listen", SERVICE, LD_LIBRARY_PATH=directory)
            check(tried.returncode == 2 and "libssl" in tried.stdout, f"{api}: no reason: {tried.stdout}")
        for backend in "loopback", None:
            settings = {"VIADUCT_BACKEND": backend, "VIADUCT_DEVICE": None, "LD_LIBRARY_PATH": directory}
            with tools.serving(tools.ping, host=NEAR, **settings):
                tools.hosts.run(NEAR, tools.ping, "-c", 1, f"127.0.0.1:{SERVICE}", **settings)


def test_many_clients_at_once(tools):
    """Some connect before others have authenticated, and none may ask twice."""
    with tools.serving(tools.ping, "--api", "core"), contextlib.ExitStack() as stack:
        clients = [stack.enter_context(tools.client(tools.ping, "--api", "core", "-c", 1, "-W", 30,
                                                    VIADUCT_CONNECT_RETRY_MS="0")) for _ in range(CLIENTS)]
        for client in clients:
            client.finish()


def test_a_server_without_free_descriptors(tools):
    """It goes on, and serves others when there are descriptors again."""
    for api in APIS:
        with Program(tools.hosts, FAR, "prlimit", "--nofile=40", tools.ping, "--listen", SERVICE, "--api", api) as server:
            with contextlib.ExitStack() as stack:
                server.wait_for(r"listening on .*\n")
                for _ in range(40):
                    stack.enter_context(tools.client(tools.ping, "-i", 0.1, "-W", 1))
                server.wait_for("(not served|turned away|client \\d+): .*")
            with tools.client(tools.ping, "-c", 1, "-W", 20) as client:
                client.finish()


def test_nobody_listens(tools):
    for api in APIS:
        tried = tools.hosts.attempt(NEAR, tools.ping, "--api", api, "-c", 2, "-i", 0, "-W", 5, TARGET)
        check(tried.returncode == 1 and "listener" in tried.stdout, f"{api}: {tried.stdout}")


def test_no_such_host(tools):
    """The link works, but no host has the address."""
    start = time.monotonic()
    tried = tools.hosts.attempt(NEAR, tools.ping, "-c", 1, "-W", 2, "10.0.0.99")
    check(tried.returncode == 1 and time.monotonic() < start + 5, tried.stdout)
    tried = tools.hosts.attempt(NEAR, tools.ping, "-c", 1, "-W", 2, "192.0.2.1")
    check(re.search("(?i)reachable|no route", tried.stdout), tried.stdout)


def test_a_host_that_does_not_answer(tools):
    """It has the address, but answers nothing: each program waits for its own time, also if connections to such a host
    are lost earlier."""
    dead = "10.0.0.98"
    tools.hosts.run(NEAR, "ip", "neighbour", "replace", dead, "lladdr", "02:00:00:00:00:98", "dev", DEVICES[NEAR])
    for api in APIS:
        start = time.monotonic()
        tried = tools.hosts.attempt(NEAR, tools.ping, "--api", api, "-c", 1, "-W", 2, dead, VIADUCT_TCP_TIMEOUT_MS="1000")
        check(tried.returncode == 1 and time.monotonic() > start + 2 and re.search("(?i)in time|timeout", tried.stdout),
              f"{api}: {tried.stdout}")


# ---- Bad lines -------------------------------------------------------------------------------------------------------

BAD_LINES = (["netem", "delay", "2ms", "1ms", "loss", "1%", "reorder", "5%"],
             ["tbf", "rate", "400mbit", "burst", "20kb", "limit", "30kb"])  # drops what it has no room for


def lost_segments(tools):
    return int(re.search(r"TcpRetransSegs +(\d+)", tools.hosts.run(NEAR, "nstat", "-asz", "TcpRetransSegs")).group(1))


def test_a_bad_line_loses_nothing(tools):
    for line in BAD_LINES:
        added = tools.hosts.attempt(NEAR, "tc", "qdisc", "add", "dev", DEVICES[NEAR], "root", *line)
        if added.returncode != 0:
            print(f"# this kernel has no {line[0]}")
            continue
        try:
            lost_before = lost_segments(tools)
            with tools.serving(tools.ping), tools.client(tools.ping, "-i", 0, "-c", 50, "-s", 60000) as client:
                client.finish()
            with tools.serving(tools.perf), tools.client(tools.perf, "--test", "bandwidth", "--sizes", "64K") as client:
                client.finish()
            check(lost_segments(tools) > lost_before, f"{line[0]} has lost nothing")
        finally:
            tools.hosts.run(NEAR, "tc", "qdisc", "del", "dev", DEVICES[NEAR], "root")


def test_a_slow_line_is_shared(tools):
    """The endpoints of a link take turns, although the socket never has room for all of them."""
    line = ["tbf", "rate", "200mbit", "burst", "64kb", "latency", "50ms"]
    if tools.hosts.attempt(NEAR, "tc", "qdisc", "add", "dev", DEVICES[NEAR], "root", *line).returncode != 0:
        print("# this kernel has no tbf")
        return
    try:
        tools.hosts.run(NEAR, tools.contract, "streams of large writes *", VIADUCT_TEST_HOST_2=tools.hosts.network)
    finally:
        tools.hosts.run(NEAR, "tc", "qdisc", "del", "dev", DEVICES[NEAR], "root")


# ---- Names of devices ------------------------------------------------------------------------------------------------

def test_names_of_further_addresses(tools):
    """An interface may have the name of another one with a number, as those of VLANs do; a label is no name."""
    near = DEVICES[NEAR]
    commands = (f"link add {near}.2 type veth peer name other", f"link set {near}.2 up", "link set other up",
                f"address add 10.0.2.1/24 dev {near}.2", f"address add 10.0.1.1/24 dev {near} label {near}:1",
                f"address add 10.0.3.1/24 dev {near}")
    for command in commands:
        tools.hosts.run(NEAR, "ip", *command.split())
    try:
        described = json.loads(tools.hosts.run(NEAR, tools.info, "--json", VIADUCT_DEVICE=None,
                                               VIADUCT_TCP_INTERFACES=f"{near},{near}.2"))
        devices = next(backend["devices"] for backend in described["backends"] if backend["name"] == "tcp")
        names = {device["host"]: device["name"] for device in devices if ":" not in device["host"]}
        check(names == {ADDRESSES[NEAR]: f"viaduct-{near}", "10.0.2.1": f"viaduct-{near}.2",
                        "10.0.1.1": f"viaduct-{near}.3", "10.0.3.1": f"viaduct-{near}.4"}, str(names))
    finally:
        tools.hosts.run(NEAR, "ip", "link", "del", f"{near}.2")
        for address in "10.0.1.1/24", "10.0.3.1/24":
            tools.hosts.run(NEAR, "ip", "address", "del", address, "dev", near)


# ---- What the backend must not do ------------------------------------------------------------------------------------

def caught_signals(process):
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
    return int(status.partition("SigCgt:")[2].split()[0], 16)


def mapped(process, word):
    return word in pathlib.Path(f"/proc/{process.pid}/maps").read_text(encoding="utf-8")


def test_libssl_is_loaded_only_if_needed_and_catches_no_signals(tools):
    with tools.serving(tools.ping) as server:
        check(mapped(server.process, "libssl"), "libssl is not loaded")
        caught = caught_signals(server.process)
    with tools.serving(tools.ping, host=NEAR, VIADUCT_BACKEND="loopback", VIADUCT_DEVICE=None) as server:
        check(not mapped(server.process, "libssl"), "loopback loads libssl")
        check(caught_signals(server.process) == caught, f"signals {caught:x} are caught")


def wake_ups(process):
    """Counts those of the library's threads; the tool itself wakes up from time to time."""
    total = 0
    for thread in pathlib.Path(f"/proc/{process.pid}/task").iterdir():
        if (thread / "comm").read_text(encoding="ascii") != "vi-ping\n":
            total += int((thread / "status").read_text(encoding="ascii").partition("\nvoluntary_")[2].split()[1])
    return total


def test_idle_processes_sleep(tools):
    with tools.serving(tools.ping) as server, tools.client(tools.ping, "-i", 1000) as client:
        client.wait_for("bytes from")
        for process in server.process, client.process:
            before = wake_ups(process)
            time.sleep(IDLE_S)
            count = wake_ups(process) - before
            check(count <= WAKE_UPS, f"{process.args[-1]}: {count} wake-ups in {IDLE_S} s without work")


def test_only_the_named_address_is_open(tools):
    """The server names the address of host 2, so it does not listen on others."""
    with tools.serving(tools.ping, "--api", "core") as server:  # with VIPL, it listens only while it waits
        table = pathlib.Path(f"/proc/{server.process.pid}/net/tcp").read_text(encoding="ascii").splitlines()[1:]
        listening = {line.split()[1].partition(":")[0] for line in table if line.split()[3] == "0A"}
        own = f"{int.from_bytes(socket.inet_aton(ADDRESSES[FAR]), sys.byteorder):08X}"
        check(listening == {own}, f"the server listens at {listening}, not only at {own}")


def main():
    enter()
    with Hosts() as hosts:
        return run_tests(globals(), Tools(hosts, pathlib.Path(sys.argv[1])))


if __name__ == "__main__":
    sys.exit(main())
