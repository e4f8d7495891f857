# SPDX-License-Identifier: BSD-3-Clause
"""The workers of chaos.py and soak.py, and the memory in which they show what they do."""
import ctypes
import errno
import mmap
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/hosts"))
from hosts import ADDRESSES, DEVICES, NEAR, Failed, check  # noqa: E402, from that directory

APIS = "vipl", "dat", "rpma"
BOARD_BYTES, SESSIONS_AT = 16384, 4096  # as in worker.c, like what follows
WORKER, SESSION = struct.Struct("=5Q"), struct.Struct("=24s11Q")
RUN, FINISH, EXECUTE, PAUSE = range(4)
APART, CONNECTING, CONNECTED = range(3)
MIXED, STREAM = range(2)  # traffic
BASE_PORT = 7500
LAST_LINES = 40
LEAVING_S = 30  # until a worker that is told to leave has left
PR_SET_CHILD_SUBREAPER = 36


def stacks_of(process):
    if not shutil.which("gdb"):
        return "(gdb would show the stacks)"
    command = ["timeout", "60", "gdb", "-p", str(process), "-batch", "-ex", "thread apply all bt 14"]
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    return "\n".join(line for line in done.stdout.splitlines() if line.startswith(("#", "Thread")))


def status_of(process):
    try:
        return pathlib.Path(f"/proc/{process}/status").read_text(encoding="ascii")
    except OSError:
        return ""  # it has ended


def run_times(process):
    """For how long each thread of a process has run, and has waited for a processor, in nanoseconds."""
    times = {}
    for file in pathlib.Path(f"/proc/{process}/task").glob("*/schedstat"):
        try:
            run, delay, _ = file.read_text(encoding="ascii").split()
            times[file.parent.name] = int(run), int(delay)
        except (OSError, ValueError):
            pass  # the thread has ended
    return times


class Fields:
    """Numbers at a place of the board, by their names."""

    def __init__(self, board, at, names):
        self.board, self.at, self.names = board, at, names

    def __getattr__(self, name):
        return struct.unpack_from("=Q", self.board, self.at + 8 * self.names.index(name))[0]

    def set(self, name, value):
        struct.pack_into("=Q", self.board, self.at + 8 * self.names.index(name), value)


class Session(Fields):
    """One end of a pair: what worker.c shows of it."""
    NAMES = ["since", "state", "connections", "ended", "progress", "messages", "bytes", "opened", "losses", "cancelled",
             "round_trips_ns"]

    def __init__(self, board, index, worker, port, traffic):
        self.start = SESSIONS_AT + index * SESSION.size
        super().__init__(board, self.start + 24, self.NAMES)
        self.index, self.worker, self.port, self.traffic, self.peer = index, worker, port, traffic, None
        self.excused = 0  # until when the loss of a connection is no surprise
        self.doomed = 0  # the connection that was lost with the peer's process
        worker.sessions.append(self)

    @property
    def call(self):
        return self.board[self.start:self.start + 24].split(b"\0")[0].decode()

    def __str__(self):
        return (f"{'server' if self in self.worker.servers else 'client'} {self.index} of worker {self.worker.index}, "
                f"{self.worker.api}, (in {self.call}, state {self.state}, connection {self.connections}, message "
                f"{self.messages}, progress {self.progress / 1e9:.3f}, "
                f"scarce {self.worker.scarce / 1e9:.3f})")

    def join(self, peer):
        self.peer, peer.peer = peer, self

    def arguments(self, is_server):
        return f"{self.index}:{self.traffic}:{'s' if is_server else 'c'}:{self.port}:{self.peer.worker.address}"


class Worker(Fields):
    """A place for processes, one after another, of changing APIs. All have the same backend, host and sessions."""
    NAMES = ["order", "scarce", "forks", "storms", "shortages"]

    def __init__(self, fleet, index, backend, host):
        super().__init__(fleet.board, index * WORKER.size, self.NAMES)
        self.fleet, self.index, self.backend, self.host = fleet, index, backend, host
        self.address = "127.0.0.1" if backend == "loopback" else ADDRESSES[host]
        self.device = "viaduct-lo" if backend == "loopback" else f"viaduct-{DEVICES[host]}"
        self.sessions, self.servers = [], set()
        self.process, self.api, self.lines, self.rest = None, None, [], b""
        self.started, self.stopped, self.calm_since = 0, None, 0  # calm: nothing has been done to it

    def launch(self, api, seed, disturbed):
        self.api, self.lines, self.rest, self.stopped = api, [], b"", None
        self.set("order", RUN)
        self.set("scarce", 0)
        at = self.address if api == "rpma" else self.device
        command = [self.fleet.build / f"tests/chaos/{api}_worker", self.fleet.file, self.index, seed, int(disturbed),
                   at, self.address, *(session.arguments(session in self.servers) for session in self.sessions)]
        for session in self.sessions:
            session.set("state", APART)
            session.set("since", 0)
        settings = {"VIADUCT_BACKEND": self.backend, "VIADUCT_DEVICE": None, "VIADUCT_LOG": "info",
                    "VIADUCT_CONNECT_RETRY_MS": "2000", "LD_PRELOAD": os.environ.get("CHAOS_PRELOAD")}
        self.process = self.fleet.hosts.start(self.host, command, settings, stdout=subprocess.PIPE, bufsize=0,
                                              stderr=subprocess.STDOUT, pass_fds=[self.fleet.file])
        os.set_blocking(self.process.stdout.fileno(), False)
        self.started = self.calm_since = time.monotonic_ns()

    def read(self):
        """Returns new whole lines of its output."""
        try:
            while more := os.read(self.process.stdout.fileno(), 65536):
                self.rest += more
        except BlockingIOError:
            pass
        *lines, self.rest = self.rest.split(b"\n")
        lines = [line.decode(errors="replace") for line in lines]
        self.lines = (self.lines + lines)[-LAST_LINES:]
        return lines

    def run_delays(self):
        """For how long each of its threads has waited for a processor, in nanoseconds."""
        return {thread: delay for thread, (_, delay) in run_times(self.process.pid).items()}

    def is_runnable(self):
        return any("R (running)" in status_of(f"{self.process.pid}/task/{thread}")
                   for thread in run_times(self.process.pid))

    def delayed_since(self, before):
        return sum(delay - before.get(thread, 0) for thread, delay in self.run_delays().items())

    def name(self):
        return f"worker {self.index} ({self.api}, {self.backend}, host {self.host}, process {self.process.pid})"

    def stacks(self):
        return stacks_of(self.process.pid)

    def last_lines(self, count=LAST_LINES):
        self.read()
        return [f"    {line}" for line in self.lines[-count:]]

    def failure(self, text, with_stacks=False):
        pairs = [f"  {session} with {session.peer}" for session in self.sessions]
        peers = {session.peer.worker for session in self.sessions if session.peer.worker.process} - {self}
        of_peers = [line for peer in peers for line in (f"  {peer.name()} has said:", *peer.last_lines(10))]
        return Failed("\n".join([f"{self.name()}: {text}", *pairs, *self.last_lines(), *of_peers,
                                 *([self.stacks(), *self.fleet.orphans_stacks()] if with_stacks else [])]))


class Fleet:
    """All workers, and the hosts on which they are."""

    def __init__(self, build, hosts, places):
        """Each place of a worker is a pair of backend and host."""
        self.build, self.hosts = build, hosts
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # children of the killed come here
        self.file = os.memfd_create("board", 0)
        os.truncate(self.file, BOARD_BYTES)
        self.board = mmap.mmap(self.file, BOARD_BYTES)
        self.workers = [Worker(self, index, *place) for index, place in enumerate(places)]
        self.sessions = []
        self.files_before = self.files()

    def pair(self, server, client, traffic=MIXED):
        port = BASE_PORT + len(self.sessions)
        ends = [Session(self.board, len(self.sessions) + number, worker, port, traffic)
                for number, worker in enumerate((server, client))]
        server.servers.add(ends[0])
        ends[0].join(ends[1])
        self.sessions += ends

    def total(self, name, of):
        return sum(getattr(item, name) for item in of)

    def finish(self):
        """Clients leave first, at the end of a connection, so that no server waits for one that has left."""
        for worker in self.workers:
            worker.set("order", FINISH)
        deadline = time.monotonic() + LEAVING_S
        for worker in self.workers:
            while worker.process.poll() is None:
                worker.read()
                if time.monotonic() > deadline:
                    raise worker.failure("does not leave", True)
                time.sleep(0.01)  # its end, and its output
            if worker.process.returncode != 0:
                raise worker.failure(f"exit status {worker.process.returncode}")
        check(not (left := self.left_after(5)), f"left: {', '.join(left)}")

    def left_after(self, patience_s):
        deadline = time.monotonic() + patience_s
        while (left := self.left()) and time.monotonic() < deadline:
            time.sleep(0.05)  # for what ends on its own
        return left

    def left(self):
        """Children of killed workers, shared files, and sockets."""
        left = self.orphans_stacks()
        left += [f"file {file}" for file in self.files() - self.files_before]
        for host in ADDRESSES:
            command = self.hosts.run(host, "cat", "/proc/net/unix", "/proc/net/tcp")
            left += [f"socket '{line}' on host {host}" for line in command.splitlines() if "viaduct" in line
                     or line.split()[3:4] in (["01"], ["0A"])]
        if any(worker.backend == "verbs" for worker in self.workers):
            left += [f"{kind} '{line}'" for kind in ("cm_id", "qp", "mr", "pd")
                     for line in self.hosts.run(NEAR, "rdma", "resource", "show", kind).splitlines() if " pid " in line]
        return left

    def orphans(self):
        own = {process.pid for process in (self.hosts.holder, *(worker.process for worker in self.workers)) if process}
        children = pathlib.Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii")
        for child in {int(child) for child in children.split()} - own:
            try:
                os.waitpid(child, os.WNOHANG)
            except OSError as error:
                if error.errno != errno.ECHILD:
                    raise
        children = pathlib.Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii")
        return {int(child) for child in children.split()} - own

    def orphans_stacks(self):
        return [f"process {process}:\n{stacks_of(process)}\n" for process in self.orphans()]

    def newborns(self):
        """Orphans that wait to run for the first time, and still have what the dead parent had."""
        return {child for child in self.orphans()
                if "R (running)" in status_of(child) and all(run < 10**6 for run, _ in run_times(child).values())}

    @staticmethod
    def files():
        return {str(file) for file in pathlib.Path("/dev/shm").glob("*")}

    def close(self):
        for worker in self.workers:
            if worker.process and worker.process.poll() is None:
                worker.process.kill()
                worker.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
