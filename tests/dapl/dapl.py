#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""dapl.py PLACE GROUP SERVER CLIENT LIBRARY CONFIGURATION: runs Debian's DAT programs (package dapl2-utils). A run
passes if both ends report success and nothing else.

PLACE is "loopback", "guest" (hosts 2 and 1 of the guest of tests/vm) or "hosts" (those of tests/hosts). GROUP is one of
GROUPS, defined at the end.
SERVER and CLIENT select what each end loads:
  library    our libdat2.so.2 in the directory LIBRARY, instead of Debian's
  provider   Debian's libdat2.so.2, which finds our libdaplviaduct.so.2 through a dat.conf in CONFIGURATION
  stock      Debian's libdat2.so.2 and libdaplofa.so.2, also through a dat.conf
The exit status is 77, for "skipped", if the programs or, in the guest, RDMA devices are missing."""
import contextlib
import os
import pathlib
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "hosts"))
import hosts as namespaces  # noqa: E402, from that directory

SKIPPED = 77
PATIENCE_S = 200  # a program that says nothing for longer hangs
RETRY_MS = "5000"  # dtest and dtestx announce the server's address shortly before the server listens
PARAMETER_PORT = 15828  # where servers of dtest, dtestx and dtestcm send their parameters to clients


Failed = namespaces.Failed


class Place:
    """The location of the two ends."""

    def __init__(self, name, library, configuration):
        self.name, self.library, self.configuration = name, library, configuration
        loopback = name == "loopback"
        self.hosts = None  # if they are those of tests/hosts
        self.backend = {"loopback": "loopback", "guest": "verbs", "hosts": "tcp"}[name]
        self.adapter = "viaduct-lo" if loopback else "adapter"
        self.address = "127.0.0.1" if loopback else "10.0.0.2"

    def command(self, host, command):
        return self.hosts.command(host, command) if self.hosts else command

    def environment(self, host, stack):
        variables = self.hosts.environment(host) if self.hosts else {**os.environ}
        variables |= {"VIADUCT_BACKEND": self.backend, "VIADUCT_CONNECT_RETRY_MS": RETRY_MS, "VIADUCT_LOG": "info"}
        if stack == "library":
            variables["LD_LIBRARY_PATH"] = self.library
        if self.name != "loopback":
            maker = "stock" if stack == "stock" else "ours"
            variables["DAT_OVERRIDE"] = os.path.join(self.configuration, f"{maker}-{host}.conf")
        elif stack == "provider":  # our library knows its adapter without a file
            variables["DAT_OVERRIDE"] = os.path.join(self.configuration, "provider-lo.conf")
        return variables


class Program:
    """A process and its output."""

    def __init__(self, place, host, stack, command):
        self.command, self.stack = command, stack
        self.ends_at = time.monotonic() + PATIENCE_S
        self.said = ""
        self.errors = tempfile.TemporaryFile("a+")  # not in `said`, where they would split lines
        self.process = subprocess.Popen(place.command(host, command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=self.errors, bufsize=0, env=place.environment(host, stack))

    def describe(self):
        return f"{' '.join(self.command)} ({self.stack})"

    def listen(self):
        """Reads more output. Returns False at its end."""
        ready, _, _ = select.select([self.process.stdout], [], [], max(0, self.ends_at - time.monotonic()))
        if not ready:
            raise Failed(f"{self.describe()} hangs")
        more = os.read(self.process.stdout.fileno(), 65536).decode(errors="replace")
        self.said += more
        self.ends_at = time.monotonic() + PATIENCE_S
        return bool(more)

    def await_words(self, words, before=0):
        """Waits until the output contains the words once more than before."""
        while self.said.count(words) <= before:
            if not self.listen():
                raise Failed(f"{self.describe()} does not say '{words}'")

    def await_port(self, port):
        while port not in namespaces.listening_ports(self.process.pid):
            if self.process.poll() is not None or time.monotonic() > self.ends_at:
                raise Failed(f"{self.describe()} does not listen")
            time.sleep(0.01)  # nothing notifies of an open port

    def end(self):
        while self.listen():
            pass
        if self.process.wait() != 0:
            raise Failed(f"{self.describe()} ends with {self.process.returncode}")

    def all_errors(self):
        self.errors.seek(0)
        return self.errors.read()

    def __enter__(self):
        return self

    def __exit__(self, failure, *_):
        self.process.kill()
        self.process.wait()
        if failure:
            print(f"---- {self.describe()}:\n{self.said}{self.all_errors()}")


# Patterns in the output that indicate an error.
COMPLAINTS = re.compile(r"\bERR|warning: |[Ee]rror|FAIL|[Ff]ail|[Uu]nexpected|Warning|[Mm]ismatch|[Cc]annot|"
                        r"Skipping|[Ii]nvalid")

# From libdaplofa, which sometimes counts an endpoint that has been freed.
STOCK_COMPLAINT = "dat_ia_close (graceful) error: DAT_INVALID_STATE"

# From our library: it says why a connection ended, which is shown if the run fails.
EXPLANATION = "viaduct: info: "


def check(program, *words):
    """Checks that the program has printed the words and no error."""
    for line in (program.said + program.all_errors()).splitlines():
        if line.startswith(EXPLANATION):
            continue
        if program.stack == "stock" and STOCK_COMPLAINT in line:
            continue
        if COMPLAINTS.search(line):
            raise Failed(f"{program.describe()} says '{line}'")
    for wanted in words:
        if wanted not in program.said:
            raise Failed(f"{program.describe()} does not say '{wanted}'")


# ---- dtest and its kin: a server for one client ----------------------------------------------------------------------

VERDICTS = {"dtest": "DAPL Test Complete. PASSED", "dtestx": "immed/atomic test PASSED",
            "dtestcm": "DAPL Connection Test Complete.", "dtestsrq": "SRQ Test Complete."}
# The options of each run. The guest is slow, so options reduce what takes seconds there by default.
LOOPBACK = {
    "dtest": ("", "-p", "-c", "-w", "-w -p", "-w -c", "-u", "-u -w -b 100000", "-t -w -S 1 -B 100",
              "-w -b 1 -B 10 -S 3", "-W -B 100", "-W -b 65536 -B 100", "-W -B 10 -a -b 4096",
              "-W -B 10 -i 1000 -b 4000", "-D -B 100 -b 4096",
              "-D -p -B 100 -b 65536"),
    "dtestx": ("-p -b 1000",),
    "dtestcm": ("", "-w", "-w -c 200 -b 200", "-c 200 -b 20 -m"),
    "dtestsrq": ("", "-c 8 -B 10 -t 5", "-c 2 -B 100 -b 100 -t 2", "-S 0 -c 4 -B 4"),
}
PROVIDER = {"dtest": ("", "-p", "-c", "-w"), "dtestx": ("",), "dtestcm": ("-w",), "dtestsrq": ("",)}
CORRECT = {**PROVIDER, "dtest": ("", "-p", "-c")}  # with -w, buffers change before the completion
GUEST = {
    "dtest": ("-b 4096 -B 100", "-p -b 4096 -B 100", "-c -b 4096 -B 100", "-w -b 4096 -B 100", "-D -b 1000 -B 100"),
    "dtestx": ("",),
    "dtestcm": ("-w -c 20 -b 20",),
    "dtestsrq": ("-S 0 -c 4 -B 10 -t 2", "-c 4 -B 10 -t 2"),
}
HOSTS = {
    "dtest": ("", "-p", "-w -b 100000", "-W -B 100", "-D -p -B 100 -b 65536"),
    "dtestx": ("-p -b 1000",),
    "dtestcm": ("-w",),
    "dtestsrq": ("-c 4 -B 10 -t 2",),
}
# With an SRQ, dtestsrq finally waits for an event that libdaplofa derives from a device event, which Soft-RoCE does not
# generate.
GUEST_STOCK = {**GUEST, "dtestsrq": GUEST["dtestsrq"][:1]}


# A stock client that starts before its server listens is refused.
TOO_EARLY = "0x4003"  # DAT_CONNECTION_EVENT_NON_PEER_REJECTED
ATTEMPTS = 30


def run_pair(place, server_stack, client_stack, name, options):
    arguments = [name, "-P", place.adapter, *options.split()]
    for attempt in range(ATTEMPTS):
        with Program(place, 2, server_stack, arguments) as server:
            if name == "dtestsrq":
                server.await_words("Accepting...")
            else:
                server.await_port(PARAMETER_PORT)
            with Program(place, 1, client_stack, [*arguments, "-h", place.address]) as client:
                refused = None
                try:
                    client.end()
                except Failed as failure:
                    refused = failure
                if TOO_EARLY in client.said and client_stack == "stock" and attempt + 1 < ATTEMPTS:
                    continue
                if refused is not None:
                    raise refused
                server.end()
        break
    for end in (client, server):
        check(end, VERDICTS[name])


# ---- dapltest: a server for many -------------------------------------------------------------------------------------

# Segments of operations with several segments are multiples of 256 bytes, because dapltest aligns them, except with
# RDMA.
TRANSACTIONS = (
    "client SR server SR",
    "-P client SR 1 server SR 65536",
    "client SR 4096 2 server SR 4096 2",
    "-V client SR 1024 3 -f server SR 2048 1 -f",
    "-V -P client RW 4096 1 server RW 2048 4",
    "-V client RR 65536 1 server RR 1024 3",
    "-V -t 4 -w 8 client SR 256 server SR 256",
    "-V -t 2 -w 4 client RW 4096 1 server RW 2048 4 client SR 1024 4 server SR 4096 2 client SR 1024 3 -f "
    "server SR 2048 1 -f",
    "-V -P -t 3 -w 2 client RW 4096 1 server RR 4096 2 client RR 1024 4 server RW 300000 client SR server SR",
)
PERFORMANCES = ("-m b -p 1 RW 4096", "-m p -p 10 RW 4096 2", "-m b -p 10 RR 4096", "-m p -p 1 RR 65536 2")
LOOPBACK_TRANSACTIONS = ("-V -i 200 -t 8 -w 16 client SR server SR client RW server RR",
                         "-V -i 20 client RW 4000000 4 server RR 4000000 4")
LOOPBACK_PERFORMANCES = ("-m p -p 1 RW 65536", "-m b -p 10 RW 1", "-m b -p 1 RR 1", "-m p -p 10 RR 4096",
                         "RW 1000000 2", "-i 20000 -m p RW 8")
# With fewer iterations no time passes, which dapltest reports as an error.
ITERATIONS = {"loopback": 1000, "hosts": 100, "guest": 10}
AT_ONCE = 3  # clients
PORT = 62000


def run_dapltest(place, server_stack, client_stack, runs):
    common = ["-D", place.adapter, "-n", str(PORT)]

    def client(kind, *options):
        return Program(place, 1, client_stack, ["dapltest", "-T", kind, "-s", place.address, *common, *options])

    with Program(place, 2, server_stack, ["dapltest", "-T", "S", *common]) as server:
        server.await_words("Service Point Ready")
        for run in runs:
            with client(*run) as one:
                one.end()
                check(one, "Stat", "End of Work")
        with contextlib.ExitStack() as stack:
            many = [stack.enter_context(client(*runs[0])) for _ in range(AT_ONCE)]
            for one in many:
                one.end()
                check(one, "Stats", "End of Work")
        with client("Q") as one:
            one.end()
            check(one, "End of Work")
            server.end()
            check(server, "Test Finished", "Exiting.")


LIMIT = 40
LIMITS = {"ia": "IAs opened", "pz": "PZs created", "cno": "CNOs created", "evd": "EVDs created", "ep": "EPs created",
          "rsp": "RSPs created", "psp": "PSPs created", "lmr": "LMRs created"}


def alone(place, _, stack):
    """Creates LIMIT objects of each kind, posts receives until there is no room, and queries unopened adapters."""
    common = ["dapltest", "-T", "L", "-D", place.adapter]
    for width in (1, 3):  # open adapters; endpoints of all of them share an event dispatcher of the first one
        command = [*common, "-w", str(width), "-m", str(LIMIT), *(f"limit_{kind}" for kind in LIMITS)]
        with Program(place, 2, stack, command) as program:
            program.end()
            check(program, *(f"{what}: {LIMIT}\n" for what in LIMITS.values()))
    with Program(place, 2, stack, [*common, "-m", "100000", "limit_rpost"]) as program:
        program.end()
        if not re.search(r"post_recv fails: DAT_INSUFFICIENT_RESOURCES.*\n.*posted per EP: [1-9]", program.said):
            raise Failed(f"{program.describe()} finds no limit")
    with Program(place, 2, stack, ["dtestx", "-q", "-P", place.adapter]) as program:
        program.end()
        check(program, f"Open_Query: {place.adapter}", "DAT_IB_RDMA_READ=TRUE")


# ---- The groups ------------------------------------------------------------------------------------------------------

def run_pairs(place, server_stack, client_stack, table):
    for name, runs in table.items():
        for options in runs:
            run_pair(place, server_stack, client_stack, name, options)


def kin(place, *stacks):
    """A subset, for another configuration with the same provider, or for another place."""
    table = {"loopback": PROVIDER, "hosts": HOSTS, "guest": GUEST_STOCK if "stock" in stacks else GUEST}[place.name]
    run_pairs(place, *stacks, table)


def correct(place, *stacks):
    """What makes no mistake that the checker finds."""
    run_pairs(place, *stacks, CORRECT)


def dapltest(place, server_stack, client_stack):
    transactions, performances = TRANSACTIONS, PERFORMANCES
    if place.name == "loopback":
        transactions, performances = transactions + LOOPBACK_TRANSACTIONS, performances + LOOPBACK_PERFORMANCES
    common = ("-i", str(ITERATIONS[place.name]))
    runs = [(kind, *common, *options.split())
            for kind, all_options in (("T", transactions), ("P", performances)) for options in all_options]
    run_dapltest(place, server_stack, client_stack, runs)


def all_of(name):
    return lambda place, *stacks: run_pairs(place, *stacks, {name: LOOPBACK[name]})


GROUPS = {**{name: all_of(name) for name in LOOPBACK}, "kin": kin, "correct": correct,
          "dapltest": dapltest, "alone": alone}


def missing(place):
    """Returns what is missing to run the tests."""
    lacking = [program for program in (*VERDICTS, "dapltest") if not shutil.which(program)]
    if place == "guest" and not (os.path.isdir("/sys/class/infiniband") and os.listdir("/sys/class/infiniband")):
        lacking.append("RDMA device")
    return lacking


def main():
    place, group, server_stack, client_stack, library, configuration = sys.argv[1:]
    if lacking := missing(place):
        print(f"no {', no '.join(lacking)}")
        return SKIPPED
    where = Place(place, library, configuration)
    with contextlib.ExitStack() as stack:
        if place == "hosts":
            namespaces.enter()
            where.hosts = stack.enter_context(namespaces.Hosts())
        try:
            GROUPS[group](where, server_stack, client_stack)
        except Failed as failure:
            print(failure)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
