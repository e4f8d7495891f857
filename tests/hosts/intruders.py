#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""intruders.py BUILD: what comes from the network and is not a connection: peers without the key, garbage, scans of all
ports and connections that say nothing. Each leaves a reason in the log, and none harms the server or other clients."""
import contextlib
import hashlib
import os
import pathlib
import random
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

from hosts import ADDRESSES, FAR, NEAR, Hosts, Program, await_port, check, enter, listening_ports, run_tests

SERVICE = 7320
TARGET = f"{ADDRESSES[FAR]}:{SERVICE}"
HALF_OPEN = 1000
DESCRIPTORS = 1040  # little more than the connections that do not go on
GROWTH_KIB = 32 << 10  # of a server that is attacked
REFUSAL = r"VIADUCT_TCP_|authentic|certificate"  # in the log of one end
TURNED_AWAY = r"turned away: \w+"  # in the log of the server
INSECURE = {"VIADUCT_TCP_KEY_FILE": None, "VIADUCT_TCP_INSECURE": "1"}
HEADER_BYTES, KIND_AT = 40, 32  # of a frame: docs/tcp-wire.md
HELLO = struct.pack("<Q6I2B6x4sH", 0, 6, 0, 0, 0, 0, 0, 1, 0, b"VIDT", 1)
MESSAGE, REFUSED = 12, 21
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

    def refuses(self, server, *prefix, api="vipl", **settings):
        """The client gets no connection, and one of the two ends gives the reason."""
        command = *prefix, self.ping, "--api", api, "-c", 1, "-W", 5, TARGET
        tried = self.hosts.attempt(NEAR, *command, VIADUCT_LOG="info", **settings)
        check(tried.returncode == 1 and "0 received" in tried.stdout and "in time" not in tried.stdout,
              f"a client is not refused: {tried.stdout}")
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
        for api in "vipl", "dat", "rpma", "core":
            target.refuses(server, api=api, VIADUCT_TCP_KEY_FILE=target.hosts.new_key())
        target.answers()


def test_a_client_without_a_key(target):
    with target.serving() as server:
        target.refuses(server, VIADUCT_TCP_KEY_FILE=None)
        target.refuses(server, VIADUCT_TCP_KEY_FILE=None, VIADUCT_TCP_INSECURE="1")
        target.answers()


def test_a_server_without_a_key(target):
    with target.serving(VIADUCT_TCP_KEY_FILE=None) as server:
        target.refuses(server)


def test_hosts_of_one_machine_need_no_key(target):
    with target.serving(VIADUCT_TCP_KEY_FILE=None):
        target.answers(VIADUCT_TCP_KEY_FILE=None)


def test_other_machines_need_a_key(target):
    """A client that cannot see the files of the server's machine."""
    mounts = "".join(f"mount -t tmpfs -o mode=1777 none {directory}; " for directory in HOST_KEY_DIRECTORIES)
    keep = 'mkdir -p "$0"; mount --no-canonicalize --bind . "$0"; '  # it may be in one of them
    other = "unshare", "--mount", "sh", "-c", f'cd "$0"; {mounts} {keep} exec "$@"', target.build
    with target.serving(VIADUCT_TCP_KEY_FILE=None) as server:
        target.refuses(server, *other, VIADUCT_TCP_KEY_FILE=None)
        target.answers(VIADUCT_TCP_KEY_FILE=None)


def test_no_authentication_on_demand(target):
    with target.serving(**INSECURE) as server:
        target.answers(**INSECURE)
        target.refuses(server)
        target.refuses(server, VIADUCT_TCP_KEY_FILE=None)


def test_a_key_that_others_can_read(target):
    key = target.hosts.new_key()
    os.chmod(key, 0o644)
    tried = target.hosts.attempt(FAR, target.ping, "--listen", SERVICE, VIADUCT_TCP_KEY_FILE=key)
    check(tried.returncode == 2 and key in tried.stdout, f"the key is accepted: {tried.stdout}")


def certificate_of(authority, directory, name, *options):
    """Makes a certificate that the authority, which is made if it does not exist, has signed. Returns the settings."""
    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], cwd=directory, check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
    key = "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"
    if not (directory / f"{authority}.pem").exists():
        openssl("req", "-x509", *key, "-keyout", f"{authority}.key", "-out", f"{authority}.pem", "-subj",
                f"/CN={authority}", "-days", "1")
    openssl("req", *key, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
    openssl("x509", "-req", "-in", f"{name}.csr", "-CA", f"{authority}.pem", "-CAkey", f"{authority}.key",
            "-CAcreateserial", "-out", f"{name}.pem", "-days", "1", *options)
    return {"VIADUCT_TCP_KEY_FILE": None, "VIADUCT_TCP_CERT": directory / f"{name}.pem",
            "VIADUCT_TCP_KEY": directory / f"{name}.key", "VIADUCT_TCP_CA": directory / f"{authority}.pem"}


def test_certificates(target):
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        server_has, client_has = (certificate_of("ours", directory, host) for host in ("server", "client"))
        with target.serving(**server_has) as server:
            target.answers(**client_has)
            target.refuses(server)
            target.refuses(server, **certificate_of("theirs", directory, "stranger"))
            target.answers(**client_has)


def test_an_intermediate_authority(target):
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        (directory / "ca.cnf").write_text("basicConstraints = critical, CA:TRUE", encoding="ascii")
        certificate_of("ours", directory, "middle", "-extfile", "ca.cnf")
        server_has, client_has = (certificate_of("middle", directory, host) for host in ("server", "client"))
        with target.serving(**server_has) as server:
            target.answers(**client_has)
            target.refuses(server, **certificate_of("ours", directory, "stranger"))


def test_a_client_learns_that_its_certificate_is_refused(target):
    """Although it has authenticated the server, and for itself the handshake is over."""
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        server_has = certificate_of("ours", directory, "server")
        client_has = {**certificate_of("theirs", directory, "stranger"), "VIADUCT_TCP_CA": server_has["VIADUCT_TCP_CA"]}
        for security in "encrypted", "authenticated":
            with target.serving(**server_has, VIADUCT_TCP_SECURITY=security):
                tried = target.hosts.attempt(NEAR, target.ping, "-c", 1, "-W", 5, TARGET,
                                             VIADUCT_TCP_SECURITY=security, **client_has)
                check(tried.returncode == 1 and "certificate" in tried.stdout, f"no reason is given: {tried.stdout}")


def test_each_end_learns_that_the_other_has_another_kind_of_credentials(target):
    with tempfile.TemporaryDirectory() as name:
        kinds = {"VIADUCT_TCP_CERT there": certificate_of("ours", pathlib.Path(name), "end"),
                 "VIADUCT_TCP_KEY_FILE there": {},
                 "requires a key or a certificate": {"VIADUCT_TCP_KEY_FILE": None},
                 "VIADUCT_TCP_INSECURE on both or none": INSECURE}
        for at_server, server_has in kinds.items():
            for at_client, client_has in kinds.items():
                if server_has is client_has:
                    continue
                one_has_none = INSECURE in (server_has, client_has)
                with target.serving(**server_has) as server:
                    tried = target.hosts.attempt(NEAR, target.ping, "-c", 1, "-W", 5, TARGET, **client_has)
                    advice = "VIADUCT_TCP_INSECURE on both or none" if one_has_none else at_client
                    check("warning: tcp: cannot connect: the peer" in tried.stdout and advice in tried.stdout,
                          f"{at_server}, {at_client}: {tried.stdout}")
                    if server_has is not INSECURE:  # it sees no credentials
                        server.wait_for(f"turned away: the peer .*{advice if one_has_none else at_server}", 10)


def test_an_encrypted_private_key(target):
    """It is refused. Nobody is asked for its password, although there is a terminal."""
    with tempfile.TemporaryDirectory() as name:
        settings = certificate_of("ours", pathlib.Path(name), "server")
        key = settings["VIADUCT_TCP_KEY"]
        subprocess.run(["openssl", "pkcs8", "-topk8", "-in", key, "-out", f"{key}.locked", "-passout", "pass:secret"],
                       check=True)
        tried = target.hosts.attempt(FAR, "script", "-qec", f"{target.ping} --listen {SERVICE}", "/dev/null",
                                     **settings | {"VIADUCT_TCP_KEY": f"{key}.locked"})
    check(tried.returncode == 2 and "the key is encrypted" in tried.stdout and "pass phrase" not in tried.stdout,
          f"the key is accepted, or its password asked for: {tried.stdout}")


def test_a_missing_file_of_a_certificate(target):
    with tempfile.TemporaryDirectory() as name:
        settings = certificate_of("ours", pathlib.Path(name), "server")
        for variable in "VIADUCT_TCP_CERT", "VIADUCT_TCP_KEY", "VIADUCT_TCP_CA":
            missing = f"{name}/missing"
            tried = target.hosts.attempt(FAR, target.ping, "--listen", SERVICE, **settings | {variable: missing})
            check(tried.returncode == 2 and f"{missing}: No such file" in tried.stdout, f"{variable}: {tried.stdout}")


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


class MiddleMan(threading.Thread):
    """Forwards one connection from host 1 to the server: what `change(data, towards_the_server)` returns."""

    def __init__(self, change):
        super().__init__(daemon=True)
        self.change, self.said = change, b""  # what the client has said
        self.listener = socket.create_server((ADDRESSES[NEAR], SERVICE + 1))

    def run(self):
        client, _ = self.listener.accept()
        with client, socket.create_connection((ADDRESSES[FAR], SERVICE)) as server, contextlib.suppress(OSError):
            while True:
                for side in select.select([client, server], [], [])[0]:
                    data = side.recv(65536)
                    if not data:
                        return
                    if side is client:
                        self.said += data
                    (server if side is client else client).sendall(self.change(data, side is client))


def through(target, middle_man, **settings):
    with middle_man.listener:
        middle_man.start()
        return target.hosts.attempt(NEAR, target.ping, "-c", 3, "-i", 0, "-W", 2, f"{ADDRESSES[NEAR]}:{SERVICE + 1}",
                                    **settings)


def test_a_middle_man(target):
    """Who only forwards is not noticed, and reads nothing of what is sent. Who changes a bit ends the connection."""
    with target.serving() as server:
        forwarder = MiddleMan(lambda data, _: data)
        check("3 received" in through(target, forwarder, VIADUCT_TCP_SECURITY="encrypted").stdout, "no way through")
        check(b"VIDT" not in forwarder.said, "it is not encrypted")
        for at in 3, 60, 150, 300, 450, 600, 900:
            seen = [0]

            def flip(data, towards_the_server, at=at, seen=seen):
                if not towards_the_server:
                    return data
                begin, seen[0] = seen[0], seen[0] + len(data)
                if begin <= at < seen[0]:
                    data = bytearray(data)
                    data[at - begin] ^= 1
                return bytes(data)

            tried = through(target, MiddleMan(flip), VIADUCT_TCP_SECURITY="encrypted", VIADUCT_CONNECT_RETRY_MS="0")
            if seen[0] > at:
                check("3 received" not in tried.stdout, f"a bit of byte {at} may be changed")
            check(server.process.poll() is None, f"the server died:\n{server.log}")
        target.answers()


def test_a_replay(target):
    """What a client has said once is of no use again."""
    with target.serving() as server:
        recorder = MiddleMan(lambda data, _: data)
        check("3 received" in through(target, recorder).stdout, "no way through")
        with socket.create_connection((ADDRESSES[FAR], SERVICE), timeout=5) as connection:
            connection.sendall(recorder.said)
            with contextlib.suppress(ConnectionError):
                while connection.recv(65536):
                    pass
        server.wait_for(TURNED_AWAY)
        target.answers()


def test_a_server_sends_no_requests(target):
    """The peer has not authenticated as a client: here, it sends back what the client has sent, its request, too."""
    def echo():
        with contextlib.suppress(OSError):
            while True:
                with listener.accept()[0] as link:
                    while data := link.recv(65536):
                        link.sendall(data)

    with socket.create_server((ADDRESSES[NEAR], SERVICE + 1)) as listener:
        threading.Thread(target=echo, daemon=True).start()
        tried = target.hosts.attempt(NEAR, target.ping, "-c", 1, "-W", 1, f"{ADDRESSES[NEAR]}:{SERVICE + 1}",
                                     VIADUCT_LOG="debug", **INSECURE)
        listener.shutdown(socket.SHUT_RDWR)
    check("sends a request over a link of this side" in tried.stdout, tried.stdout)


def test_a_reliable_request_is_not_refused(target):
    def refuse(data, towards_the_server):
        if towards_the_server or data[KIND_AT] != MESSAGE:
            return data
        refusal = bytearray(data[:HEADER_BYTES])
        refusal[KIND_AT], refusal[8:12], refusal[24:28] = REFUSED, bytes(4), bytes(4)  # no payload
        return bytes(refusal) + data

    with target.serving(**INSECURE):
        tried = through(target, MiddleMan(refuse), VIADUCT_LOG="warning", **INSECURE)
        check("refuses a request of a reliable connection" in tried.stdout, tried.stdout)


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

TCP_CLOSED = 7


def test_refusals_arrive(target):
    """The server must not reset the connection, because what is lost in the network is not sent again then."""
    for settings in {}, {"VIADUCT_TCP_KEY_FILE": None, "VIADUCT_TCP_INSECURE": "1"}:
        with target.serving(**settings), \
                socket.create_connection((ADDRESSES[FAR], SERVICE), timeout=10) as connection:
            connection.sendall(b"\x16\x03\x01\x00\x10" + bytes(5000))  # more than the answer needs
            while connection.recv(65536):
                pass
            with contextlib.suppress(OSError):  # it is reset
                connection.shutdown(socket.SHUT_WR)
            deadline = time.monotonic() + 10
            while connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] != TCP_CLOSED:
                check(time.monotonic() < deadline, "the server does not close the socket")
                time.sleep(0.001)  # nothing notifies of it
            error = connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            check(error == 0, f"the server resets the connection: {os.strerror(error)}")


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


def test_strangers_who_have_begun(target):
    """The server tells no reason to those that have to leave for others, because that takes time and a descriptor."""
    with target.serving() as server, contextlib.ExitStack() as stack:
        target.answers()
        had = descriptors(server.process)
        for _ in range(HALF_OPEN):
            stack.enter_context(socket.create_connection((ADDRESSES[FAR], SERVICE), timeout=5)).sendall(b"\x16")
        target.answers()  # who has come after them
        open_now = descriptors(server.process)
        check(open_now < had + DESCRIPTORS // 3, f"{open_now} descriptors are open")
        server.wait_for(TURNED_AWAY, 30)
        check("RLIMIT_NOFILE" not in server.log, "too few descriptors are free")


def stop_listening(process):
    """Stops a process while it listens: it may close its port just before it is stopped."""
    while True:
        await_port(process, SERVICE)
        os.kill(process.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED)
        if SERVICE in listening_ports(process.pid):
            return
        os.kill(process.pid, signal.SIGCONT)


def test_a_listener_that_goes_answers_those_who_have_connected(target):
    """A VIPL server listens only while it waits, for 0.1 s at a time. If it is stopped for longer, it closes its port
    when it continues, and clients have connected meanwhile. Without authentication, it speaks first."""
    with target.serving(api="vipl", VIADUCT_TCP_KEY_FILE=None, VIADUCT_TCP_INSECURE="1") as server:
        for _ in range(20):
            stop_listening(server.process)  # the system resets who connects while the port is closed
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


def test_new_keys_without_end(target):
    """By one who may connect: OpenSSL's client replaces its key for each line with a k."""
    key = pathlib.Path(target.hosts.settings["VIADUCT_TCP_KEY_FILE"]).read_bytes()
    command = ["openssl", "s_client", "-connect", TARGET, "-tls1_3", "-ciphersuites", "TLS_AES_128_GCM_SHA256",
               "-psk", hashlib.sha256(b"Viaduct tcp 1 pre-shared key" + key).hexdigest(),
               "-psk_identity", "viaduct: shared key", "-alpn", "viaduct/1/encrypted"]
    with target.serving() as server:
        with target.hosts.start(NEAR, command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                bufsize=0) as client:
            said = iter(client.stdout.readline, b"")
            check(any(line.startswith(b"Verify return code") for line in said), "the client cannot connect")
            with contextlib.suppress(BrokenPipeError):
                for _ in range(1000):
                    client.stdin.write(b"k\n")
                    if not any(line.endswith(b"KEYUPDATE\n") for line in said):  # what the server says comes first
                        break
            server.wait_for("turned away: the peer replaces its keys")
            client.kill()
        target.answers()


# ---- Connections that say nothing ------------------------------------------------------------------------------------

def test_a_listener_that_has_gone_says_why_a_client_was_turned_away(target):
    with target.serving(api="vipl") as server:
        while True:
            with contextlib.suppress(ConnectionError), \
                    socket.create_connection((ADDRESSES[FAR], SERVICE), timeout=5):
                server.wait_for("turned away: it did not authenticate", 30)
                return


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


def test_links_without_connections(target):
    """Of those who may connect: the links that came first are closed."""
    with target.serving(**INSECURE) as server, contextlib.ExitStack() as stack:
        target.answers(**INSECURE)
        had = descriptors(server.process)
        for _ in range(HALF_OPEN):
            link = stack.enter_context(socket.create_connection((ADDRESSES[FAR], SERVICE), timeout=5))
            link.sendall(HELLO)
            check(link.recv(len(HELLO), socket.MSG_WAITALL) == HELLO, "the server does not say Hello")
        target.answers(**INSECURE)
        open_now = descriptors(server.process)
        check(open_now < had + DESCRIPTORS // 3, f"{open_now} descriptors are open")


def main():
    enter()
    target = Target(pathlib.Path(sys.argv[1]))
    with target.hosts:
        return run_tests(globals(), target)


if __name__ == "__main__":
    sys.exit(main())
