#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Lets vi-info look at listeners and at the way to them: test_vi_info_why.py PATH_OF_VI_INFO PATH_OF_VI_PING. Runs in a
network namespace of its own. The exit status is 77 if there can be none."""
import concurrent.futures
import contextlib
import itertools
import json
import os
import pathlib
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time

from command_line import PATIENCE_S, Running, Terminal, check, finish, forget_settings, run

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "hosts"))
from hosts import Hosts, enter  # noqa: E402: the directory is not a package

NOBODY = 65534
ANOTHER_DEVICE = "127.0.0.2"
NEIGHBOUR = "10.0.0.2"  # an address in the network of the device veth1
PROTOCOL_OF_NOBODY = 99


ANOTHER_USER = ["setpriv", "--reuid", str(NOBODY), "--clear-groups", "--"]


def has_another_user():
    there_is = os.geteuid() == 0 and subprocess.run([*ANOTHER_USER, "true"], check=False).returncode == 0
    if not there_is:
        print("there is no other user")
    return there_is


class Info:
    """vi-info, and vi-ping for servers."""

    def __init__(self):
        self.path, self.ping = sys.argv[1:3]
        self.services = itertools.count(5000)  # nobody else uses this network namespace
        forget_settings()

    def run(self, *options, status=0, **variables):
        return run([self.path, *options], status, **variables).stdout

    def refusal(self, *options):
        result = run([self.path, *options], status=2)
        check(not result.stdout, f"{options}: {result}")
        return result.stderr

    def why(self, target, works=False, **variables):
        """Returns the last step, after the check that all before it succeed."""
        way = json.loads(self.run("--json", "--why", target, status=0 if works else 1, **variables))
        check(way["works"] == works, str(way))
        *others, last = way["steps"]
        for step in others:
            check(step["result"] in ("ok", "warning"), str(way))
        check(last["result"] == ("ok" if works else "failed"), str(way))
        check(works or last["advice"], str(last))
        return last

    def fails(self, target, step, finding, advice="", **variables):
        last = self.why(target, **variables)
        check(last["step"] == step and finding in last["finding"] and advice in last["advice"],
              f"{target}: expected {step}: {finding} ({advice}): {last}")
        check(finding in self.run("--why", target, status=1, **variables), "the text differs")

    @contextlib.contextmanager
    def server(self, api="core", prefix=(), device="0", service=None, program=None, **variables):
        """With VIPL, a server listens only while it waits, and on a busy machine nobody listens for long times."""
        service = service or str(next(self.services))
        command = ["env", *(f"{name}={value}" for name, value in variables.items()), *prefix, program or self.ping,
                   "--device", device, "--api", api, "--listen", service]
        with Running(command) as running:
            running.wait_for("listening on")
            yield service, running.process.pid

    def listeners(self):
        return json.loads(self.run("--json", "--listeners"))["listeners"]

    def listener(self, service):
        """Looks again: on a busy machine, a listener may not answer within the time that vi-info gives it."""
        deadline = time.monotonic() + PATIENCE_S
        while not (found := [each for each in self.listeners() if each["service"] == service]):
            check(time.monotonic() < deadline, f"{service} is never found")
        check(len(found) == 1, f"{service}: {found}")
        return found[0]


def key_file():
    return Hosts.new_key()


# ---- Listeners -----------------------------------------------------------------------------------------------------

def test_listeners_of_each_api(info):
    for api in "vipl", "dat", "rpma", "core":
        with info.server(api=api) as (service, process):
            found = info.listener(service)
            check(found["processes"] == [{"pid": process, "program": "vi-ping"}], str(found))
            check(found["backend"] == "loopback" and found["host"] == "127.0.0.1", str(found))
            check(found["uid"] == os.geteuid() and found["own_network"] and found["compatible"], str(found))
            check(service in info.run("--listeners"), "the text differs")


def test_listeners_with_other_services(info):
    for service, shown in ("echo", "echo"), ("a-service-that-is-longer-than-names-can-be", "?"):
        with info.server(service=service) as (_, process):
            found = info.listener(shown)
            check(found["processes"][0]["pid"] == process, str(found))
            check(info.why(f"localhost:{service}", works=True)["step"] == "listener", "why")


def test_listeners_of_tcp(info):
    with info.server(api="rpma", VIADUCT_BACKEND="tcp") as (service, process):
        found = info.listener(service)
        check(found["backend"] == "tcp" and found["processes"][0]["pid"] == process, str(found))


def test_names_that_would_disturb_a_terminal(info):
    with tempfile.TemporaryDirectory() as directory:
        program = os.path.join(directory, "a\x1b[31mb")
        os.symlink(info.ping, program)
        with info.server(program=program) as (service, process):
            check(info.listener(service)["processes"][0]["program"] == "a\x1b[31mb", "JSON has the name")
            for text in info.run("--listeners"), info.run("--processes"), info.run("--why", f"localhost:{service}"):
                check("a?[31mb" in text and "\x1b" not in text, text)


def test_nothing_listens(info):
    found = [listener for listener in info.listeners() if listener["own_network"]]
    check(found == [], str(found))


# ---- Processes -----------------------------------------------------------------------------------------------------

def test_processes(info):
    with info.server(api="rpma") as (service, process), \
            Running([info.ping, "--api", "dat", "--interval", "0.01", f"localhost:{service}"]) as client:
        client.wait_for("seq=5")
        found = {each["pid"]: each for each in json.loads(info.run("--json", "--processes"))["processes"]}
        check({process, client.process.pid} <= set(found), str(found))
        endpoint = found[client.process.pid]["endpoints"][0]
        check(endpoint["state"] == "Connected" and endpoint["peer_process"] == process, str(endpoint))
        check(endpoint["remote"] == {"host": "127.0.0.1", "port": int(service)}, str(endpoint))
        sent = sum(each["messages"] for each in endpoint["counters"]["traffic"] if each["operation"] == "send")
        check(sent >= 5, str(endpoint))
        listeners = found[process]["listeners"]
        check([each["address"]["port"] for each in listeners] == [int(service)], str(listeners))
        text = info.run("--processes", str(process))
        check(f"{process} vi-ping" in text and "librpma" in text and "Connected" in text, text)
        check(str(client.process.pid) in text and f"listener 127.0.0.1:{service}" in text, text)


def test_processes_that_do_not_answer(info):
    for process, reason in ("1000000000", "no such process"), (str(os.getpid()), "no device of Viaduct open"):
        check(reason in info.refusal("--processes", process), info.refusal("--processes", process))
    check("bad process number 'vi-ping'" in info.refusal("--processes", "vi-ping"), "a name")
    if not has_another_user():
        return
    with info.server(prefix=ANOTHER_USER) as (_, process):
        text = info.refusal("--processes", str(process))
        check("belongs to user" in text and "only processes of the same user" in text, text)


def test_watch(info):
    with info.server(api="dat") as (service, process), \
            Running([info.ping, "--api", "rpma", "--quiet", "--interval", "0.01", f"localhost:{service}"]) as client, \
            Running([info.path, "--watch", "--json"]) as watch:
        deadline = time.monotonic() + PATIENCE_S
        rates = {}
        while not {process, client.process.pid} <= set(rates):
            check(time.monotonic() < deadline, f"never both: {rates}")
            found = json.loads(watch.process.stdout.readline())
            rates = {each["pid"]: each["per_second"] for each in found["endpoints"] if each["per_second"]["requests"]}
        ours = rates[client.process.pid]
        check(0 < ours["requests"] < 1000 and ours["request_bytes"] >= 64 * ours["requests"] * 0.9, str(rates))
        check(ours["served"] > 0 and ours["waits"] >= 0 and ours["refusals"] == 0, str(rates))
        with Terminal([info.path, "--watch", str(process)], 200) as terminal:
            text = terminal.read_until("IN B/s") + terminal.read_until("Connected")
            check("\x1b[2J" in text and "OUT/s" in text and "1 processes" in text, text)
        watch.process.send_signal(signal.SIGINT)
        check(watch.process.wait(PATIENCE_S) == 0, "an interrupt is no error")
    check("no such process" in info.refusal("--watch", "1000000000"), "watch")


# ---- Shared memory -------------------------------------------------------------------------------------------------

def test_why_it_works(info):
    with info.server() as (service, process):
        for host in "localhost", "127.0.0.1", "10.0.0.1":  # the last one is an address of this host, too
            finding = info.why(f"{host}:{service}", works=True)["finding"]
            check("vi-ping" in finding and str(process) in finding, finding)
        check("No obstacle was found." in info.run("--why", f"localhost:{service}"), "text")


def test_why_an_ipv6_address(info):
    with info.server(api="rpma") as (service, _):
        check("::1, which is this host" in info.run("--why", f"[::1]:{service}"), "the address of this host")


def test_why_a_stopped_server(info):
    with info.server(api="rpma") as (service, process):
        os.kill(process, signal.SIGSTOP)
        os.waitpid(process, os.WUNTRACED)  # it goes on until it is scheduled
        last = json.loads(info.run("--json", "--why", f"localhost:{service}"))["steps"][-1]
        os.kill(process, signal.SIGCONT)
        check(last["result"] == "warning" and "which is stopped" in last["finding"], str(last))


def test_why_without_a_service(info):
    way = json.loads(info.run("--json", "--why", "localhost"))
    check(way["works"] and way["steps"][-1]["result"] == "not checked", str(way))


def test_why_nobody_listens(info):
    with info.server() as (service, _):
        info.fails("localhost:1", "listener", "nobody listens on service 1", f"Listening here: {service}")


def test_why_a_listener_of_another_user(info):
    if not has_another_user():
        return
    with info.server(prefix=ANOTHER_USER) as (service, process):
        info.fails(f"localhost:{service}", "listener", "the listener belongs to user", "VIADUCT_BACKEND=tcp")
        check(info.listener(service)["uid"] == NOBODY, "uid")
        # The other user may not look into this process, but is told whose it is.
        with info.server() as (own_service, _):
            command = [*ANOTHER_USER, info.path, "--why", f"localhost:{own_service}"]
            text = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False).stdout
            check("belongs to user root" in text and "process unknown" in text, text)


def test_why_a_listener_in_another_network_namespace(info):
    with info.server(prefix=["unshare", "--net"]) as (service, process):
        info.fails(f"localhost:{service}", "listener", "in another network namespace", "nsenter")
        found = info.listener(service)
        check(not found["own_network"] and found["processes"][0]["pid"] == process, str(found))


def test_why_a_listener_on_another_device(info):
    with info.server(device="1") as (service, _):
        info.fails(f"localhost:{service}", "listener", "on another device", f"Connect to {ANOTHER_DEVICE}")
        info.why(f"{ANOTHER_DEVICE}:{service}", works=True)


def test_why_a_listener_of_another_version(info):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(f"\0viaduct/{PROTOCOL_OF_NOBODY}/{os.geteuid()}/7f000001/1234/0")
        listener.listen()
        info.fails("localhost:4660", "listener", f"uses protocol {PROTOCOL_OF_NOBODY}", "the same version")


# ---- Names, routes and settings ------------------------------------------------------------------------------------

def test_why_an_unknown_host(info):
    info.fails("no.such.host.invalid:1", "name", "the host is unknown", "getent hosts")


def test_why_the_name_of_a_device(info):
    info.fails("viaduct-lo3:1", "name", "the host is unknown", "that of the device is 127.0.0.4")


def test_why_a_host_that_no_backend_reaches(info):
    info.fails("192.0.2.1:1", "backend", "loopback: 192.0.2.1 is not an address of this host", "ip route get")


def test_why_a_backend_that_a_setting_excludes(info):
    info.fails(f"{NEIGHBOUR}:1", "backend", "tcp: VIADUCT_BACKEND excludes it", "VIADUCT_BACKEND=tcp",
               VIADUCT_BACKEND="loopback")
    info.fails(f"{NEIGHBOUR}:1", "backend", "tcp: VIADUCT_DEVICE excludes it", "Unset VIADUCT_DEVICE",
               VIADUCT_DEVICE="viaduct-lo2")


def test_why_an_interface_that_a_setting_excludes(info):
    info.fails(f"{NEIGHBOUR}:1", "backend", "VIADUCT_TCP_INTERFACES excludes the interface", "or unset it",
               VIADUCT_TCP_INTERFACES="lo")


def test_why_settings_that_name_nothing(info):
    info.fails("localhost:1", "settings", "there is no device 'viaduct-eth9'", VIADUCT_DEVICE="viaduct-eth9")
    info.fails("localhost:1", "settings", "'ether' is none of", VIADUCT_BACKEND="ether")


def test_why_a_misspelt_setting(info):
    way = json.loads(info.run("--json", "--why", "localhost", VIADUCT_BACKND="tcp"))
    check(way["steps"][0]["result"] == "warning" and "VIADUCT_BACKEND?" in way["steps"][0]["finding"], str(way))


def test_why_with_the_old_name_of_a_backend(info):
    way = json.loads(info.run("--json", "--why", "localhost", VIADUCT_BACKEND="ofi"))
    check(way["works"] and way["steps"][0]["result"] == "warning", str(way))


def test_why_the_default_device_leads_elsewhere(info):
    way = json.loads(info.run("--json", "--why", NEIGHBOUR))
    warning = next(step for step in way["steps"] if step["result"] == "warning")
    check("VINIC" in warning["finding"] and "VIADUCT_DEVICE=viaduct-veth1" in warning["advice"], str(way))


# ---- Other networks ------------------------------------------------------------------------------------------------

def test_why_a_listener_of_another_backend(info):
    with info.server(VIADUCT_DEVICE="viaduct-lo", VIADUCT_BACKEND="tcp") as (service, _):
        info.fails(f"localhost:{service}", "listener", "of another backend", "VIADUCT_BACKEND=tcp")
    with info.server() as (service, _):
        info.fails(f"localhost:{service}", "listener", "of another backend", "VIADUCT_BACKEND=loopback",
                   VIADUCT_BACKEND="tcp")


def test_why_tcp_works(info):
    settings = {"VIADUCT_BACKEND": "tcp", "VIADUCT_TCP_KEY_FILE": key_file()}
    with info.server(**settings) as (service, process):
        finding = info.why(f"10.0.0.1:{service}", works=True, **settings)
        check(str(process) in finding["finding"], str(finding))
        # As the tools, which use the default device for this host. Programs of librpma do not.
        for api in "rpma", "vipl", "dat":
            run([info.ping, "--api", api, "--count", "1", f"localhost:{service}"], **settings)
        info.why(f"localhost:{service}", works=True, **settings)
        check("Give librpma programs the address 10.0.0.1" in info.run("--why", f"localhost:{service}", **settings),
              "no warning")


def test_why_does_not_disturb_the_server(info):
    settings = {"VIADUCT_BACKEND": "tcp", "VIADUCT_TCP_KEY_FILE": key_file()}
    service = str(next(info.services))
    with Running([info.ping, "--api", "core", "--listen", service], **settings) as server:
        server.wait_for("listening on")
        info.why(f"10.0.0.1:{service}", works=True, **settings)
        check("turned away" not in (log := server.stop()), log)


def test_why_nobody_at_the_port(info):
    info.fails("localhost:1", "listener", "nothing listens at the port", VIADUCT_BACKEND="tcp")


def test_why_a_key_that_cannot_be_used(info):
    info.fails("localhost:1", "device", "the key cannot be used", "key file",
               VIADUCT_BACKEND="tcp", VIADUCT_TCP_KEY_FILE="/etc/passwd")
    certificate = dict.fromkeys(("VIADUCT_TCP_CERT", "VIADUCT_TCP_KEY", "VIADUCT_TCP_CA"), "/etc/passwd")
    info.fails("localhost:1", "device", "the certificate cannot be used", "PEM format", VIADUCT_BACKEND="tcp",
               VIADUCT_TCP_KEY_FILE=key_file(), **certificate)


def test_why_the_peer_has_another_key(info):
    with info.server(VIADUCT_BACKEND="tcp", VIADUCT_TCP_KEY_FILE=key_file()) as (service, _):
        info.fails(f"10.0.0.1:{service}", "listener", "requires a key", "VIADUCT_TCP_KEY_FILE", VIADUCT_BACKEND="tcp")
        info.fails(f"10.0.0.1:{service}", "listener", "VIADUCT_TCP_KEY_FILE has another content", "the same key",
                   VIADUCT_BACKEND="tcp", VIADUCT_TCP_KEY_FILE=key_file())
    with info.server(VIADUCT_BACKEND="tcp", VIADUCT_TCP_INSECURE="1") as (service, _):
        info.fails(f"10.0.0.1:{service}", "listener", "VIADUCT_TCP_INSECURE on both or none", VIADUCT_BACKEND="tcp")


def test_why_another_program_at_the_port(info):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        target = f"localhost:{listener.getsockname()[1]}"
        tcp = {"VIADUCT_BACKEND": "tcp", "VIADUCT_DEVICE": "viaduct-lo"}
        info.fails(target, "listener", "does not answer", **tcp)

        def greet_as_another():
            for _ in range(2):  # fails() asks twice
                with listener.accept()[0] as client, contextlib.suppress(ConnectionError):
                    client.sendall(b"SSH-2.0-another\r\n")
                    client.recv(1024)

        while select.select([listener], [], [], 0)[0]:
            listener.accept()[0].close()
        with concurrent.futures.ThreadPoolExecutor() as threads:
            greeting = threads.submit(greet_as_another)
            info.fails(target, "listener", "does not speak the protocol of Viaduct", "Another program", **tcp)
            greeting.result()


def main():
    enter()
    for command in ("link set lo up", "link add veth1 type veth peer name veth2", "address add 10.0.0.1/24 dev veth1",
                    "link set veth1 up", "link set veth2 up"):
        subprocess.run(["ip", *command.split()], check=True)
    finish(globals(), Info())


if __name__ == "__main__":
    main()
