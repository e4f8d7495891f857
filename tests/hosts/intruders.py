#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""intruders.py BUILD: what comes from the network and is not a connection: peers without the key, garbage, scans of all
ports and connections that say nothing. Each leaves a reason in the log, and none harms the server or other clients."""
import contextlib
import os
import pathlib
import random
import re
import select
import signal
import socket
import struct
import sys
import time

from hosts import ADDRESSES, FAR, NEAR, Hosts, Program, await_port, check, enter, listening_ports, run_tests

SERVICE = 7320
TARGET = f"{ADDRESSES[FAR]}:{SERVICE}"
HALF_OPEN = 1000
DESCRIPTORS = 1040  # little more than the connections that do not go on
GROWTH_KIB = 32 << 10  # of a server that is attacked
REFUSAL = r"VIADUCT_OFI_|authentic"  # in the log of one end
TURNED_AWAY = r"turned away: \w+"  # in the log of the server
HOST_KEY_DIRECTORIES = "/dev/shm", "/run/user", "/tmp"  # where hosts may keep keys of their own


class Target:
    """A server that is attacked, and what its clients see."""

    def __init__(self, build):
        self.build = build
        self.ping = build / "tools/vi-ping"
        self.hosts = Hosts()

    @contextlib.contextmanager
    def serving(self, api="core", **settings):  # with VIPL, a server listens only while it waits
        limit = "prlimit", f"--nofile={DESCRIPTORS}"
        with Program(self.hosts, FAR, *limit, self.ping, "--listen", SERVICE, "--api", api, VIADUCT_LOG="info",
                     **settings) as server:
            server.wait_for(r"listening on .*\n")
            await_port(server.process, SERVICE)
            yield server

    def answers(self, **settings):
        output = self.hosts.run(NEAR, self.ping, "-c", 3, "-i", 0, "-W", 20, TARGET, **settings)
        check("3 received" in output, output)

    def refuses(self, server, *prefix, **settings):
        """The client gets no connection, and one of the two ends gives the reason."""
        tried = self.hosts.attempt(NEAR, *prefix, self.ping, "-c", 1, "-W", 5, TARGET, VIADUCT_LOG="info", **settings)
        check(tried.returncode == 1 and "0 received" in tried.stdout, f"a client is not refused: {tried.stdout}")
        if not re.search(REFUSAL, tried.stdout):
            server.wait_for(REFUSAL, 10)


def resident_kib(process):
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
    return int(status.partition("VmRSS:")[2].split()[0])


def descriptors(process):
    return len(os.listdir(f"/proc/{process.pid}/fd"))


def await_descriptors(server, count):
    """Meanwhile it reads the log, so that the server can write it."""
    deadline = time.monotonic() + 30
    while descriptors(server.process) > count:
        check(time.monotonic() < deadline, f"{descriptors(server.process)} descriptors remain open instead of {count}")
        if select.select([server.process.stdout], [], [], 0.01)[0]:  # nothing notifies of a closed descriptor
            server.read(deadline)


# ---- Peers without the key -------------------------------------------------------------------------------------------

def test_a_wrong_key(target):
    with target.serving() as server:
        target.answers()
        target.refuses(server, VIADUCT_OFI_KEY_FILE=target.hosts.new_key())
        target.answers()


def test_a_client_without_a_key(target):
    with target.serving() as server:
        target.refuses(server, VIADUCT_OFI_KEY_FILE=None)
        target.refuses(server, VIADUCT_OFI_KEY_FILE=None, VIADUCT_OFI_INSECURE="1")
        target.answers()


def test_a_server_without_a_key(target):
    with target.serving(VIADUCT_OFI_KEY_FILE=None) as server:
        target.refuses(server)


def test_hosts_of_one_machine_need_no_key(target):
    with target.serving(VIADUCT_OFI_KEY_FILE=None):
        target.answers(VIADUCT_OFI_KEY_FILE=None)


def test_other_machines_need_a_key(target):
    """A client that cannot see the files of the server's machine."""
    mounts = "".join(f"mount -t tmpfs -o mode=1777 none {directory}; " for directory in HOST_KEY_DIRECTORIES)
    keep = 'mkdir -p "$0"; mount --no-canonicalize --bind . "$0"; '  # it may be in one of them
    other = "unshare", "--mount", "sh", "-c", f'cd "$0"; {mounts} {keep} exec "$@"', target.build
    with target.serving(VIADUCT_OFI_KEY_FILE=None) as server:
        target.refuses(server, *other, VIADUCT_OFI_KEY_FILE=None)
        target.answers(VIADUCT_OFI_KEY_FILE=None)


def test_no_authentication_on_demand(target):
    insecure = {"VIADUCT_OFI_KEY_FILE": None, "VIADUCT_OFI_INSECURE": "1"}
    with target.serving(**insecure) as server:
        target.answers(**insecure)
        target.refuses(server)
        target.refuses(server, VIADUCT_OFI_KEY_FILE=None)


def test_a_key_that_others_can_read(target):
    key = target.hosts.new_key()
    os.chmod(key, 0o644)
    tried = target.hosts.attempt(FAR, target.ping, "--listen", SERVICE, VIADUCT_OFI_KEY_FILE=key)
    check(tried.returncode == 2 and key in tried.stdout, f"the key is accepted: {tried.stdout}")


# ---- Garbage ---------------------------------------------------------------------------------------------------------

def garbage():
    generator = random.Random(7)
    yield b""
    yield b"\0"
    yield b"GET / HTTP/1.1\r\nHost: viaduct\r\n\r\n"
    yield b"\xff" * 4096
    yield b"\0" * 4096
    for length in 0, 1, 7, 8, 1024, 1025, 0x7fffffff, 0x80000000, 0xffffffff:
        yield struct.pack("<IHH", length, 2, 0) + b"x" * 100
    for _ in range(30):
        yield generator.randbytes(generator.choice((3, 8, 100, 1024, 70000)))


def throw(port, data):
    """Sends the data, hears what the server says, and hangs up."""
    with socket.create_connection((ADDRESSES[FAR], port), timeout=5) as connection:
        connection.settimeout(0.02)
        with contextlib.suppress(OSError):  # the server hangs up, or says nothing
            connection.sendall(data)
            while connection.recv(65536):
                pass


def test_garbage_at_every_port(target):
    with target.serving() as server:
        target.answers()
        before, had = resident_kib(server.process), descriptors(server.process)
        ports = listening_ports(server.process.pid)
        check(SERVICE in ports, f"the server listens at {ports}, not at {SERVICE}")
        for port in sorted(ports):
            for data in garbage():
                throw(port, data)
                check(server.process.poll() is None, f"the server died from {data[:20]} at port {port}:\n{server.log}")
        server.wait_for(TURNED_AWAY)
        target.answers()
        await_descriptors(server, had)
        check(resident_kib(server.process) < before + GROWTH_KIB, "the server has grown")


def test_an_echo_of_the_challenge(target):
    """What the server says comes back to it."""
    with target.serving() as server:
        with socket.create_connection((ADDRESSES[FAR], SERVICE), timeout=5) as connection:
            connection.sendall(connection.recv(1024))
            check(connection.recv(1024) == b"", "the server goes on")
        server.wait_for(TURNED_AWAY)
        target.answers()


def test_a_port_scan(target):
    with target.serving() as server:
        target.answers()
        before, had = resident_kib(server.process), descriptors(server.process)
        found = 0
        for port in range(1, 1 << 16):
            with socket.socket() as scanner:
                found += scanner.connect_ex((ADDRESSES[FAR], port)) == 0
        check(found >= 1, "the scan finds nothing")
        server.wait_for(TURNED_AWAY)
        target.answers()
        await_descriptors(server, had)
        check(resident_kib(server.process) < before + GROWTH_KIB, "the server has grown")


# ---- Refusals --------------------------------------------------------------------------------------------------------

REJECTED, NO_LISTENER, PROVIDER_MISMATCH, AUTHENTICATION_FAILED = 4, 5, 7, 8  # docs/ofi-wire.md
MAC_BYTES = 32
TCP_CLOSED = 7
SURPLUS = b"more than the answer needs" * 200  # remains unread when the server answers


def string(data):
    return bytes([len(data)]) + data


def request(service=struct.pack(">H", SERVICE), provider=b"nobody", flags=0):
    """A request for host 2, with a MAC that is valid without authentication only."""
    host = string(socket.inet_aton(ADDRESSES[FAR]))
    end = string(provider) + string(b"address") + struct.pack("<IQBBI", 1, 1, 0, flags, 0)
    body = b"VIDO" + struct.pack("<H", 1) + bytes(16) + b"\0" + end + host + string(b"") + host + string(service)
    body += struct.pack("<H", 0)
    return struct.pack("<IHH", 8 + len(body) + MAC_BYTES, 2, 0) + body + bytes(MAC_BYTES)


def read_all(connection):
    data = b""
    while more := connection.recv(65536):
        data += more
    return data


def refusal_of(data):
    """Sends a request, and more. Returns the type and the body of the answer: none, if the server only closes the
    socket. Either way it must not reset the connection, because what is lost in the network is not sent again then."""
    with socket.create_connection((ADDRESSES[FAR], SERVICE), timeout=10) as connection:
        length, _, _ = struct.unpack("<IHH", connection.recv(8, socket.MSG_WAITALL))
        connection.recv(length - 8, socket.MSG_WAITALL)
        connection.sendall(data + SURPLUS)
        answer = read_all(connection)
        with contextlib.suppress(OSError):  # it is reset
            connection.shutdown(socket.SHUT_WR)
        deadline = time.monotonic() + 10
        while connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] != TCP_CLOSED:
            check(time.monotonic() < deadline, "the server does not close the socket")
            time.sleep(0.001)  # nothing notifies of it
        error = connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        check(error == 0, f"the server resets the connection: {os.strerror(error)}")
    if not answer:
        return None, b""
    length, kind, _ = struct.unpack_from("<IHH", answer)
    check(length == len(answer), f"{len(answer)} bytes are no answer of {length} bytes")
    return kind, answer[8:]


def test_each_refusal_arrives(target):
    with target.serving():
        check(refusal_of(request())[0] == AUTHENTICATION_FAILED, "a wrong key")
        check(refusal_of(b"\xff" * 100)[0] is None, "garbage")
    insecure = {"VIADUCT_OFI_KEY_FILE": None, "VIADUCT_OFI_INSECURE": "1"}
    with target.serving(**insecure):
        kind, body = refusal_of(request())
        check(kind == PROVIDER_MISMATCH, f"another provider: {kind}")
        provider = body[1:1 + body[0]]
        check(refusal_of(request(b"another service", provider))[0] == NO_LISTENER, "no listener")
        kind, _ = refusal_of(request(provider=provider))
        check(kind == REJECTED, f"another reliability: {kind}")
        target.answers(**insecure)


def test_refused_clients_that_stay(target):
    """They send nothing more, or do not stop to send."""
    with target.serving() as server, contextlib.ExitStack() as stack:
        target.answers()
        had = descriptors(server.process)
        silent, noisy = ([stack.enter_context(socket.create_connection((ADDRESSES[FAR], SERVICE), timeout=5))
                          for _ in range(count)] for count in (200, 20))
        for connection in silent + noisy:
            connection.sendall(b"\xff" * 100)
        for connection in noisy:
            with contextlib.suppress(OSError):  # the server hangs up
                while True:
                    connection.sendall(bytes(65536))
        await_descriptors(server, had)
        target.answers()


def test_a_listener_that_goes_answers_those_who_have_connected(target):
    """A VIPL server listens only while it waits, for 0.1 s at a time. If it is stopped for longer, it closes its port
    when it continues, and clients have connected meanwhile."""
    with target.serving(api="vipl") as server:
        for _ in range(20):
            await_port(server.process, SERVICE)  # not while it closes the port: the system resets who connects then
            os.kill(server.process.pid, signal.SIGSTOP)
            with socket.create_connection((ADDRESSES[FAR], SERVICE), timeout=10) as connection:
                time.sleep(0.15)
                os.kill(server.process.pid, signal.SIGCONT)
                check(connection.recv(1), "the server closes the socket")


def test_a_client_asks_again_if_it_was_not_challenged(target):
    """A listener that goes before it has accepted the client is no reason to fail, as long as the client may retry."""
    command = target.ping, "--api", "core", "-c", 1, "-W", 30, f"{ADDRESSES[NEAR]}:{SERVICE}"
    with socket.create_server((ADDRESSES[NEAR], SERVICE)) as listener, \
            Program(target.hosts, FAR, *command, VIADUCT_LOG="debug", VIADUCT_CONNECT_RETRY_MS="30000") as client:
        listener.settimeout(20)
        for _ in range(3):
            listener.accept()[0].close()
        client.process.kill()
        log = client.finish(-signal.SIGKILL)
        check("ActivePending" in log and "Refused" not in log, f"an attempt fails: {log}")


# ---- Connections that say nothing ------------------------------------------------------------------------------------

def test_half_open_connections(target):
    with target.serving() as server, contextlib.ExitStack() as stack:
        target.answers()
        before, had = resident_kib(server.process), descriptors(server.process)
        for _ in range(HALF_OPEN):
            stack.enter_context(socket.create_connection((ADDRESSES[FAR], SERVICE), timeout=5))
        target.answers()
        check(resident_kib(server.process) < before + GROWTH_KIB, "the server has grown")
        server.wait_for(TURNED_AWAY, 30)
        stack.close()
        await_descriptors(server, had)
        target.answers()


def test_half_open_connections_at_every_port(target):
    with target.serving() as server, contextlib.ExitStack() as stack:
        target.answers()
        had = descriptors(server.process)
        for port in sorted(listening_ports(server.process.pid) - {SERVICE}):
            for _ in range(HALF_OPEN // 10):
                stack.enter_context(socket.create_connection((ADDRESSES[FAR], port), timeout=5))
        target.answers()
        stack.close()
        await_descriptors(server, had)
        target.answers()


def main():
    enter()
    target = Target(pathlib.Path(sys.argv[1]))
    with target.hosts:
        return run_tests(globals(), target)


if __name__ == "__main__":
    sys.exit(main())
