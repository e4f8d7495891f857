#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tests of hosts.py itself, without the library: two hosts with a link, any number of them, and nothing left."""
import os
import socket
import subprocess
import sys

from hosts import ADDRESSES, DEVICES, FAR, NEAR, Hosts, await_port, check, enter, run_tests

PORT = 7300
SERVER = f"""
import socket, sys
with socket.create_server(("", {PORT})) as listener:
    connection = listener.accept()[0]
    while data := connection.recv(100):
        connection.sendall(data.upper())
"""
CLIENT = f"""
import socket, sys
connection = socket.create_connection((sys.argv[1], {PORT}), timeout=10)
connection.sendall(b"hello")
assert connection.recv(100) == b"HELLO"
"""
PAIRS = 8  # at the same time


def test_sockets_in_both_directions(hosts):
    for server, client in (NEAR, FAR), (FAR, NEAR):
        with hosts.start(server, [sys.executable, "-c", SERVER]) as process:
            await_port(process, PORT)
            hosts.run(client, sys.executable, "-c", CLIENT, ADDRESSES[server])


def test_the_hosts_share_no_sockets(hosts):
    name = f"\0viaduct-test-{os.getpid()}"
    find = f"import socket; socket.socket(socket.AF_UNIX).connect({name!r})"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(name)
        listener.listen()
        hosts.run(NEAR, sys.executable, "-c", find)
        check(hosts.attempt(FAR, sys.executable, "-c", find).returncode != 0, "host 2 finds a Unix socket of host 1")


def test_a_link_that_is_cut_and_repaired(hosts):
    hosts.cut()
    check("LOWER_UP" not in hosts.run(NEAR, "ip", "link", "show", DEVICES[NEAR]), "host 1 has a carrier")
    hosts.repair()
    test_sockets_in_both_directions(hosts)


def test_many_pairs(_):
    here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "hosts.py")
    command = [here, "sleep", "0.5", "--", "ip", "link", "show", "veth2"]
    environment = {**os.environ, "VIADUCT_TEST_HOST_1": ""}
    pairs = [subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL) for _ in range(PAIRS)]
    check([pair.wait() for pair in pairs] == [0] * PAIRS, "a pair of hosts failed")


def test_nothing_survives_a_kill(_):
    here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "hosts.py")
    programs = ["sh", "-c", "echo; exec sleep 1000"]
    with subprocess.Popen([here, *programs, "--", *programs], env={**os.environ, "VIADUCT_TEST_HOST_1": ""},
                          stdout=subprocess.PIPE) as pair:
        check([pair.stdout.readline() for _ in range(2)] == [b"\n", b"\n"], "the commands do not run")
        pair.kill()
        pair.stdout.read()  # ends when no process has the other end


def main():
    enter()
    with Hosts() as hosts:
        return run_tests(globals(), hosts)


if __name__ == "__main__":
    sys.exit(main())
