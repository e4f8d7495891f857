#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""faults.py PROGRAM FAULT: connects two ends (end.h) on hosts 1 and 2. One of them dies, loses its link or its device.
The surviving ends must be notified, every later call must return, and nothing may be leaked.

For the guest of tests/vm, which it breaks and repairs. Elsewhere the exit status is 77, for "skipped"."""
import contextlib
import json
import os
import select
import shutil
import subprocess
import sys
import time

CLIENT, SERVER = 1, 2  # numbers of the hosts
PATIENCE_S = 60  # a command that takes longer hangs
SKIPPED = 77
KINDS = ("cm_id", "qp", "cq", "mr", "pd")  # resources of a process in rdma(8); contexts stay open in librdmacm


class Failed(Exception):
    """An end did not answer as expected."""


class End:
    """A process that executes commands and reports the result of each."""

    def __init__(self, program, *hosts):
        self.name = "client" if len(hosts) > 1 else "server"
        arguments = [program, *map(str, hosts)]
        self.process = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        self.command = None
        self.since = 0.0
        self.shows = False  # print commands and answers

    def begin(self, command):
        self.command, self.since = command, time.monotonic()
        self.process.stdin.write(command.encode() + b"\n")

    def answer(self):
        ready, _, _ = select.select([self.process.stdout], [], [], PATIENCE_S)
        line = self.process.stdout.readline().decode().strip() if ready else ""
        took = time.monotonic() - self.since
        if self.shows or not line:
            print(f"  {self.name}: {self.command}: {line or 'no answer'} ({took:.2f} s)", flush=True)
        return line

    def end(self, *expected):
        """Waits for the result of the command that was started."""
        answer = self.answer()
        if answer not in expected:
            raise Failed(f"{self.name}: {self.command}: '{answer}', not {' or '.join(expected)}")

    def do(self, command, *expected):
        self.begin(command)
        self.end(*(expected or ("ok",)))

    def descriptors(self):
        self.begin("descriptors")
        return int(self.answer())

    def resources(self, *kinds):
        """Returns the RDMA resources that the kernel holds for the process."""
        kept = []
        for kind in kinds:
            entries = json.loads(run("rdma", "-j", "resource", "show", kind) or "[]")
            kept += [kind for entry in entries if entry.get("pid") == self.process.pid]
        return kept

    def await_listening(self):
        """Waits until the server listens. A VIPL server listens only while it waits for a client."""
        while not self.resources("cm_id"):
            if self.process.poll() is not None:
                raise Failed(f"the {self.name} has died")

    def kill(self):
        self.process.kill()
        self.process.wait()


def run(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


class Hosts:
    """A client and a server. The resources that they hold after closing everything are compared with those after a
    connection without a fault."""

    def __init__(self, program):
        self.client, self.server = End(program, CLIENT, SERVER), End(program, SERVER)
        self.open()
        self.connect()
        self.client.begin("close")  # at the same time, because an end that closes waits for the other's confirmation
        self.server.begin("close")
        self.client.end("ok")
        self.server.end("ok")
        self.baseline = {end: end.descriptors() for end in (self.client, self.server)}
        self.client.shows = self.server.shows = True
        self.open()

    def open(self):
        for end in (self.client, self.server):
            end.do("open")

    def request(self):
        """The client sends a request, and the server receives it."""
        self.server.begin("take")
        self.server.await_listening()
        self.client.begin("connect")
        self.server.end("ok")

    def connect(self):
        self.request()
        self.server.begin("connect")
        self.client.end("established")
        self.server.end("established")

    def close(self, *survivors):
        for end in survivors:
            end.do("close")
        for end in survivors:
            if kept := end.resources(*KINDS):
                raise Failed(f"the {end.name} keeps {', '.join(kept)}")
            if (descriptors := end.descriptors()) > self.baseline[end]:
                raise Failed(f"the {end.name} keeps {descriptors} descriptors instead of {self.baseline[end]}")

    def kill(self):
        for end in (self.client, self.server):
            end.kill()


# ---- The faults ------------------------------------------------------------------------------------------------------

ENDED = ("closed", "lost")
NOT_CONNECTED = ("rejected", "unreachable", "timeout", "no match", "not accepted", "Provider error occurred")


def killed_peer():
    for idle in (True, False):
        for name in ("client", "server"):
            yield f"the {name} is killed, the other end " + ("is idle" if idle else "has work"), lose_peer, name, idle
    yield "the server is killed while the client connects", lose_server_while_connecting
    yield "the client is killed while the server answers", lose_client_while_connecting


def lose_peer(hosts, name, idle):
    hosts.connect()
    killed, survivor = getattr(hosts, name), hosts.server if name == "client" else hosts.client
    if not idle:
        survivor.do("receive")
    survivor.begin("event")
    killed.kill()
    survivor.end(*ENDED)
    if not idle:
        survivor.do("finish", "failed")
    hosts.close(survivor)


def lose_server_while_connecting(hosts):
    hosts.request()
    hosts.server.kill()
    hosts.client.end(*NOT_CONNECTED)
    hosts.close(hosts.client)


def lose_client_while_connecting(hosts):
    hosts.request()
    hosts.client.kill()
    hosts.server.do("connect", *NOT_CONNECTED)
    hosts.close(hosts.server)


def link_down():
    for name in ("client", "server"):
        yield f"connected; then the {name} sends", send_without_link, name
    yield "before the client connects", connect_without_link
    yield "before the server answers", answer_without_link


def cut_link():
    run("ip", "link", "set", f"veth{SERVER}", "down")


def send_without_link(hosts, name):
    hosts.connect()
    sender = getattr(hosts, name)
    for end in (hosts.client, hosts.server):
        end.do("receive")
    cut_link()
    sender.do("send")
    sender.do("finish", "failed")
    sender.do("event", "lost")
    hosts.close(hosts.client, hosts.server)


def connect_without_link(hosts):
    cut_link()
    hosts.client.do("connect", *NOT_CONNECTED)
    hosts.close(hosts.client, hosts.server)


def answer_without_link(hosts):
    hosts.request()
    cut_link()
    hosts.server.do("connect", *NOT_CONNECTED)
    hosts.client.end(*NOT_CONNECTED)
    hosts.close(hosts.server, hosts.client)


def removed_device():
    for name in ("client", "server"):
        yield f"of the {name}; the ends are idle", remove_device, name, True
        yield f"of the {name}; the ends have work", remove_device, name, False
        yield f"of the {name}, while they connect", remove_while_connecting, name
    yield "of the server, which waits for a client", remove_while_listening


@contextlib.contextmanager
def without_device(hosts, host):
    """The device disappears immediately, but the command ends only when no process has it open."""
    command = subprocess.Popen(["rdma", "link", "delete", f"rxe{host}"])
    try:
        yield
    finally:
        hosts.kill()
        command.wait(PATIENCE_S)


def remove_device(hosts, name, idle):
    hosts.connect()
    for end in (hosts.client, hosts.server):
        if not idle:
            end.do("receive")
        end.begin("event")
    with without_device(hosts, CLIENT if name == "client" else SERVER):
        for end in (hosts.client, hosts.server):
            end.end(*ENDED)
            if not idle:
                end.do("finish", "failed")
        hosts.close(hosts.client, hosts.server)


def remove_while_connecting(hosts, name):
    hosts.request()
    with without_device(hosts, CLIENT if name == "client" else SERVER):
        hosts.client.end(*NOT_CONNECTED)
        hosts.server.do("connect", *NOT_CONNECTED)
        hosts.close(hosts.client, hosts.server)


def remove_while_listening(hosts):
    hosts.server.begin("take")
    hosts.server.await_listening()
    with without_device(hosts, SERVER):
        hosts.server.end("catastrophe", *NOT_CONNECTED)
        hosts.close(hosts.client, hosts.server)


FAULTS = {"killed_peer": killed_peer, "link_down": link_down, "removed_device": removed_device}


def main():
    program, fault = sys.argv[1:]
    if shutil.which("host-up") is None:
        print("no guest")
        return SKIPPED
    failures = 0
    for what, scenario, *arguments in FAULTS[fault]():
        print(f"{fault}: {what}", flush=True)
        hosts = Hosts(program)
        try:
            scenario(hosts, *arguments)
        except Failed as problem:
            print(f"  FAILED: {problem}", flush=True)
            failures += 1
        finally:
            hosts.kill()
            run("host-up", str(CLIENT), str(SERVER))
    return min(failures, 1)


if __name__ == "__main__":
    os.environ["VIADUCT_BACKEND"] = "verbs"
    sys.exit(main())
