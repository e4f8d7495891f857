#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""faults.py PLACE PROGRAM FAULT: connects two ends (end.h) on hosts 1 and 2. One of them dies, or loses its link, its
device or its address. The surviving ends must be notified, every later call must return, and nothing may be leaked.

PLACE is "guest", for the guest of tests/vm, which the faults break and repair, or "hosts", for those of tests/hosts. If
there is no such place, the exit status is 77, for "skipped"."""
import contextlib
import json
import pathlib
import select
import shutil
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "hosts"))
import hosts as namespaces  # noqa: E402, from that directory
from hosts import PATIENCE_S, SKIPPED, Failed  # noqa: E402

CLIENT, SERVER = namespaces.NEAR, namespaces.FAR
SLACK_S = 2  # for slow machines
PORT = 7400  # of the server
KINDS = ("cm_id", "qp", "cq", "mr", "pd")  # resources of a process in rdma(8); contexts stay open in librdmacm


class Guest(namespaces.Guest):
    """The hosts of the guest of tests/vm, with RDMA devices."""
    tells_idle_ends = False  # that the link is down

    def __init__(self):
        super().__init__()
        self.settings["VIADUCT_BACKEND"] = "verbs"

    def environment(self, host, **settings):
        return super().environment(host, **{"VIADUCT_DEVICE": None, **settings})

    def hurry(self):
        pass

    def kept(self, process):
        """Returns the RDMA resources that the kernel holds for the process."""
        kept = []
        for kind in KINDS:
            entries = json.loads(run("rdma", "-j", "resource", "show", kind) or "[]")
            kept += [kind for entry in entries if entry.get("pid") == process.pid]
        return kept

    def await_listening(self, process):
        while "cm_id" not in self.kept(process):
            if process.poll() is not None:
                raise Failed("the server has died")

    def repair(self):
        run("host-up", str(CLIENT), str(SERVER))


class Namespaces(namespaces.Hosts):
    """The hosts of tests/hosts."""
    tells_idle_ends = True
    bound_s = 10  # until both ends know that a link is down

    def hurry(self):
        self.bound_s = 2
        self.settings["VIADUCT_TCP_TIMEOUT_MS"] = str(1000 * self.bound_s)

    def kept(self, _):
        return []

    def await_listening(self, process):
        namespaces.await_port(process, PORT)


class End:
    """A process that executes commands and reports the result of each."""

    def __init__(self, place, program, *hosts):
        self.place = place
        self.name = "client" if len(hosts) > 1 else "server"
        arguments = [program, *map(str, hosts)]
        self.process = place.start(hosts[0], arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
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
        """Waits for the result of the command that was started. Returns it."""
        answer = self.answer().partition(": ")[0]  # the reason follows the text of an error
        if answer not in expected:
            raise Failed(f"{self.name}: {self.command}: '{answer}', not {' or '.join(expected)}")
        return answer

    def do(self, command, *expected):
        self.begin(command)
        self.end(*(expected or ("ok",)))

    def descriptors(self):
        self.begin("descriptors")
        return int(self.answer())

    def kill(self):
        self.process.kill()
        self.process.wait()


def run(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


class Hosts:
    """A client and a server. The resources that they hold after closing everything are compared with those after a
    connection without a fault."""

    def __init__(self, place, program):
        self.place = place
        self.client, self.server = End(place, program, CLIENT, SERVER), End(place, program, SERVER)
        self.baseline = {}

    def prepare(self):
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
        self.place.await_listening(self.server.process)  # a VIPL server listens only while it waits for a client
        self.client.begin("connect")
        try:
            self.server.end("ok")
        except Failed as problem:
            raise Failed(f"{problem}; the client: {self.client.answer()}") from None

    def connect(self):
        self.request()
        self.server.begin("connect")
        self.client.end("established")
        self.server.end("established")

    def close(self, *survivors):
        for end in survivors:
            end.do("close")
        for end in survivors:
            if kept := self.place.kept(end.process):
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
        yield f"for a moment, in which the {name} disconnects", disconnect_in_vain, name
    yield "before the client connects", connect_without_link
    yield "before the server answers", answer_without_link


def send_without_link(hosts, name):
    hosts.connect()
    for end in (hosts.client, hosts.server):
        end.do("receive")
    hosts.place.cut()
    end_of_traffic(hosts, name)


def end_of_traffic(hosts, name):
    """One end sends, in vain."""
    sender, other = (hosts.client, hosts.server) if name == "client" else (hosts.server, hosts.client)
    start = time.monotonic()
    sender.do("send")
    if hosts.place.tells_idle_ends:
        other.begin("event")
    sender.do("finish", "failed")
    sender.do("event", "lost")
    if hosts.place.tells_idle_ends:
        other.end("lost")
        other.do("finish", "failed")
        took = time.monotonic() - start
        if took > hosts.place.bound_s + SLACK_S:
            raise Failed(f"it takes {took:.1f} s until both ends know")
    hosts.close(hosts.client, hosts.server)


def disconnect_in_vain(hosts, name):
    """The other end gets no message until the system repeats it. Only packets from one end are lost, and no route."""
    hosts.connect()
    leaver, other = (hosts.client, hosts.server) if name == "client" else (hosts.server, hosts.client)
    here, there = (CLIENT, SERVER) if name == "client" else (SERVER, CLIENT)
    neighbour = namespaces.ADDRESSES[there], "dev", namespaces.DEVICES[here]
    hosts.place.run(here, "ip", "neighbour", "replace", *neighbour, "lladdr", "02:00:00:00:00:99", "nud", "permanent")
    try:
        other.begin("event")
        # The kernel may tell a client over RDMA that its peer has another address.
        may_be_told = leaver is hosts.client and not hosts.place.tells_idle_ends
        leaver.do("hang_up", "closed", *["lost"] * may_be_told)
    finally:
        hosts.place.run(here, "ip", "neighbour", "delete", *neighbour)
    other.end(*ENDED)
    hosts.close(leaver, other)


def connect_without_link(hosts):
    hosts.place.cut()
    hosts.client.do("connect", *NOT_CONNECTED)
    hosts.close(hosts.client, hosts.server)


def answer_without_link(hosts):
    """A server whose answer is on its way may count as connected, until it is clear that it does not arrive."""
    hosts.request()
    hosts.place.cut()
    hosts.server.begin("connect")
    if hosts.server.end("established", *NOT_CONNECTED) == "established":
        hosts.server.do("event", *ENDED)
    hosts.client.end(*NOT_CONNECTED)
    hosts.close(hosts.server, hosts.client)


def removed_device():
    for name in ("client", "server"):
        yield f"of the {name}; the ends are idle", remove_device, name, True
        yield f"of the {name}; the ends have work", remove_device, name, False
        yield f"of the {name}, while they connect", remove_while_connecting, name
    yield "of the server, which waits for a client", remove_while_listening


def removed_address():
    for host in (CLIENT, SERVER):
        for name in ("client", "server"):
            yield f"of host {host}; then the {name} sends", send_without_address, host, name
    yield "of the client, before it connects", connect_without_address, CLIENT
    yield "of the server, before the client connects", connect_without_address, SERVER


def remove_address(hosts, host):
    hosts.place.run(host, "ip", "address", "delete", f"{namespaces.ADDRESSES[host]}/24", "dev", f"veth{host}")


def send_without_address(hosts, host, name):
    hosts.connect()
    for end in (hosts.client, hosts.server):
        end.do("receive")
    remove_address(hosts, host)
    end_of_traffic(hosts, name)


def connect_without_address(hosts, host):
    remove_address(hosts, host)
    hosts.client.do("connect", *NOT_CONNECTED)
    hosts.close(hosts.client, hosts.server)


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
    hosts.place.await_listening(hosts.server.process)
    with without_device(hosts, SERVER):
        hosts.server.end("catastrophe", *NOT_CONNECTED)
        hosts.close(hosts.client, hosts.server)


FAULTS = {"killed_peer": killed_peer, "link_down": link_down, "removed_device": removed_device,
          "removed_address": removed_address}


def inject(place, program, fault):
    """Returns the number of scenarios that failed."""
    failures = 0
    for what, scenario, *arguments in FAULTS[fault]():
        print(f"{fault}: {what}", flush=True)
        hosts = Hosts(place, program)
        try:
            hosts.prepare()
            scenario(hosts, *arguments)
        except Failed as problem:
            print(f"  FAILED: {problem}", flush=True)
            failures += 1
        finally:
            hosts.kill()
            place.repair()
            place.hurry()  # the first scenario has the usual times
    return failures


def main():
    place, program, fault = sys.argv[1:]
    if place == "hosts":
        namespaces.enter()
        with Namespaces() as pair:
            return min(inject(pair, program, fault), 1)
    if shutil.which("host-up") is None:
        print("no guest")
        return SKIPPED
    return min(inject(Guest(), program, fault), 1)


if __name__ == "__main__":
    sys.exit(main())
