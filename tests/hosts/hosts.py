#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""hosts.py COMMAND [ARGUMENT]... [-- COMMAND [ARGUMENT]...]: runs the first command on host 1 and the second one on
host 2.
hosts.py --alone COMMAND [ARGUMENT]...: runs a command on a host with the addresses 127.0.0.1 and 127.0.0.2.

The hosts are two network namespaces that exist only during this command, linked by an Ethernet device:

    host                   1              2
    address, host name     10.0.0.1       10.0.0.2
    network device         veth1          veth2

These are the names of the hosts in tests/vm, so programs can run in either place. The namespaces have no names and
belong to processes, so any number of commands can run at the same time, and nothing remains even after SIGKILL.

An ordinary user needs user namespaces. The exit status is 77, for "skipped", if there are no namespaces or no
veth devices; otherwise it is that of the first command that failed.

Scripts in this directory import this file: enter() moves the script to host 1, and Hosts() makes host 2. Within the
virtual machine of tests/vm, Guest() has the hosts that are there."""
import os
import pathlib
import re
import secrets
import select
import shutil
import subprocess
import sys
import time

SKIPPED = 77
NEAR, FAR = 1, 2  # numbers of the hosts
ADDRESSES = {NEAR: "10.0.0.1", FAR: "10.0.0.2"}
DEVICES = {NEAR: "veth1", FAR: "veth2"}
PATIENCE_S = 60  # a command that takes longer hangs
NOBODY = 65534
INSIDE = "VIADUCT_TEST_HOST_1"  # the process that is on host 1


class Failed(Exception):
    """A program did not behave as expected."""


def skip(reason):
    print(reason)
    sys.exit(SKIPPED)


def check(condition, text):
    if not condition:
        raise Failed(text)


def become_ordinary(program):
    """Starts the script again as an ordinary user, before the hosts exist, if that user can run the program."""
    if os.geteuid() != 0 or INSIDE in os.environ:
        return
    command = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    if os.spawnvp(os.P_WAIT, command[0], [*command, "test", "-x", str(program)]) != 0:
        skip("an ordinary user cannot read the build directory")
    sys.stdout.flush()
    os.execvp(command[0], [*command, "/usr/bin/python3", *sys.argv])


def ways_to_unshare():
    if os.geteuid() == 0:
        yield ["unshare", "--net"]
    yield ["unshare", "--user", "--map-root-user", "--net"]


def enter():
    """Starts the script again in a new network namespace. It returns there."""
    if os.environ.get(INSIDE) == str(os.getpid()):
        return
    if lacking := [program for program in ("unshare", "nsenter", "setpriv", "ip") if not shutil.which(program)]:
        skip(f"no {', no '.join(lacking)}")
    problem = ""
    for way in ways_to_unshare():
        attempt = subprocess.run([*way, "ip", "link", "add", "veth1", "type", "veth", "peer", "name", "veth2"],
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if attempt.returncode == 0:
            os.environ[INSIDE] = str(os.getpid())  # unshare keeps the number of the process
            sys.stdout.flush()
            os.execvp(way[0], [*way, sys.executable, *sys.argv])
        problem = attempt.stdout.strip()
    skip(f"no network namespaces with veth devices: {problem}")


class Hosts:
    """Host 2, its link to host 1, where this process is, and the settings for programs on both."""

    def __init__(self):
        # Its end of the pipe closes at the latest when this process ends.
        self.holder = subprocess.Popen(["unshare", "--net", "sh", "-c", "echo; exec cat"], stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE)
        check(self.holder.stdout.readline() == b"\n", "unshare failed")
        self.network = f"/proc/{self.holder.pid}/ns/net"
        self.settings = {"VIADUCT_BACKEND": "tcp", "VIADUCT_TCP_KEY_FILE": self.new_key()}
        self.run(NEAR, "ip", "link", "add", DEVICES[NEAR], "type", "veth", "peer", "name", DEVICES[FAR],
                 "netns", str(self.holder.pid))
        for host in ADDRESSES:
            self.run(host, "ip", "link", "set", "lo", "up")
        self.repair()

    @staticmethod
    def new_key():
        """Returns the path of a new key file, which exists as long as this process."""
        file = os.memfd_create("key")
        os.fchmod(file, 0o600)
        os.write(file, secrets.token_hex(32).encode() + b"\n")
        return f"/proc/{os.getpid()}/fd/{file}"

    def repair(self):
        """Sets up addresses and links, also after a test has removed them."""
        for host, address in ADDRESSES.items():
            self.run(host, "ip", "address", "replace", f"{address}/24", "dev", DEVICES[host])
            self.run(host, "ip", "link", "set", DEVICES[host], "up")
        deadline = time.monotonic() + PATIENCE_S
        while not all("LOWER_UP" in self.run(host, "ip", "link", "show", DEVICES[host]) for host in ADDRESSES):
            check(time.monotonic() < deadline, "the link does not come up")
            time.sleep(0.01)  # nothing notifies of it
        for host in ADDRESSES:  # or a connection waits for a resolution that began without a link, and fails with it
            self.run(host, "ip", "neighbour", "flush", "dev", DEVICES[host])

    def cut(self):
        self.run(FAR, "ip", "link", "set", DEVICES[FAR], "down")

    def command(self, host, command):
        """Returns the command that runs a command on a host. The process ends with this one."""
        there = [] if host == NEAR else ["nsenter", f"--net={self.network}"]
        return [*there, "setpriv", "--pdeathsig", "KILL", "--", *map(str, command)]

    def environment(self, host, **settings):
        """Settings with the value None are removed."""
        variables = {**os.environ, **self.settings, "VIADUCT_DEVICE": f"viaduct-{DEVICES[host]}", **settings}
        return {name: value for name, value in variables.items() if value is not None}

    def start(self, host, command, settings=None, **options):
        return subprocess.Popen(self.command(host, command), env=self.environment(host, **(settings or {})), **options)

    def run(self, host, *command, **settings):
        """Returns the output of a command that must succeed."""
        done = self.attempt(host, *command, **settings)
        check(done.returncode == 0, f"{' '.join(map(str, command))}: exit status {done.returncode}: {done.stdout}")
        return done.stdout

    def attempt(self, host, *command, **settings):
        return subprocess.run(self.command(host, command), env=self.environment(host, **settings), text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                              timeout=PATIENCE_S, check=False)

    def close(self):
        self.holder.kill()
        self.holder.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Guest(Hosts):
    """Those of the virtual machine of tests/vm, which differ in their addresses only."""

    def __init__(self):
        self.holder = None
        self.settings = {"VIADUCT_TCP_KEY_FILE": self.new_key()}

    def command(self, host, command):
        return super().command(NEAR, command)

    def close(self):
        pass


class Program:
    """A program that runs on a host. Its output, including errors, is collected."""

    def __init__(self, hosts, host, *command, **settings):
        self.name = " ".join(map(str, command))
        self.log = ""
        self.process = hosts.start(host, command, settings, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, bufsize=0)

    def read(self, deadline):
        """Reads more output. Returns False at its end."""
        ready, _, _ = select.select([self.process.stdout], [], [], max(0, deadline - time.monotonic()))
        check(ready, f"{self.name} hangs:\n{self.log}")
        more = os.read(self.process.stdout.fileno(), 65536).decode(errors="replace")
        self.log += more
        return bool(more)

    def wait_for(self, pattern, patience_s=PATIENCE_S):
        """Reads until the output contains the regular expression. Returns the match."""
        deadline = time.monotonic() + patience_s
        while not (match := re.search(pattern, self.log)):
            check(self.read(deadline), f"{self.name} never says '{pattern}':\n{self.log}")
        return match

    def finish(self, *statuses):
        """Reads the rest of the output and checks the exit status."""
        deadline = time.monotonic() + PATIENCE_S
        while self.read(deadline):
            pass
        self.process.wait()
        check(self.process.returncode in (statuses or (0,)),
              f"{self.name}: exit status {self.process.returncode}:\n{self.log}")
        return self.log

    def stop(self, *statuses):
        self.process.terminate()
        return self.finish(*statuses)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


def listening_ports(process):
    """Returns the TCP ports on which programs of the process's host listen."""
    ports = set()
    for table in "tcp", "tcp6":
        with open(f"/proc/{process}/net/{table}", encoding="ascii") as lines:
            fields = [line.split() for line in list(lines)[1:]]
        ports |= {int(line[1].rpartition(":")[2], 16) for line in fields if line[3] == "0A"}
    return ports


def await_port(process, port=None):
    """Waits until a program of the process's host listens at the port, or at any."""
    deadline = time.monotonic() + PATIENCE_S
    while not (ports := listening_ports(process.pid)) or port not in (None, *ports):
        check(process.poll() is None, f"the process that should listen has ended with {process.returncode}")
        check(time.monotonic() < deadline, "nobody listens")
        time.sleep(0.01)  # nothing notifies of an open port


def run_tests(names, *arguments):
    """Runs every function of the script whose name starts with test_. Returns the exit status."""
    failures = 0
    for name, test in list(names.items()):
        if not name.startswith("test_"):
            continue
        start = time.monotonic()
        try:
            test(*arguments)
            print(f"ok {name} ({time.monotonic() - start:.1f} s)", flush=True)
        except (Failed, subprocess.SubprocessError, OSError) as problem:
            failures += 1
            print(f"FAILED {name}: {problem}", flush=True)
    return min(failures, 1)


def alone(command):
    commands = "link set lo up", "address add 127.0.0.2/8 dev lo", "address flush dev lo to ::1"
    subprocess.run(["ip", "-batch", "-"], input="\n".join(commands), text=True, check=True)
    for buffers in "tcp_rmem", "tcp_wmem":  # smaller than a window of frames; two hosts have the usual ones
        pathlib.Path("/proc/sys/net/ipv4", buffers).write_text("4096 65536 65536", encoding="ascii")
    defaults = {"VIADUCT_BACKEND": "tcp", "VIADUCT_TEST_LACKS": "one_sided shared_services"}
    os.execvpe(command[0], command, {**defaults, **os.environ})


def main():
    arguments = sys.argv[1:]
    if arguments[0] == "--alone":
        alone(arguments[1:])
    cut = arguments.index("--") if "--" in arguments else len(arguments)
    commands = {NEAR: arguments[:cut], FAR: arguments[cut + 1:]}
    with Hosts() as hosts:
        os.environ["VIADUCT_TEST_HOST_2"] = hosts.network
        running = [hosts.start(host, command) for host, command in commands.items() if command]
        statuses = [process.wait() for process in running]
    return next((status for status in statuses if status != 0), 0)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    enter()
    sys.exit(main())
