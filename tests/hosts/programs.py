#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""programs.py GROUP BUILD: runs programs of each API on two hosts, a server on host 2 and a client on host 1. GROUP is
one of GROUPS, defined at the end."""
import pathlib
import sys

from hosts import ADDRESSES, DEVICES, FAR, NEAR, Failed, Hosts, Program, become_ordinary, check, enter

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "bindings/python/examples"
APIS = "vipl", "dat", "rpma", "core"
OPERATIONS = "send", "write", "read"
SERVICE = 7310
PATIENT = "--connect-timeout", 30


def server_of(hosts, tool, api="vipl", **settings):
    server = Program(hosts, FAR, tool, "--api", api, "--listen", SERVICE, **settings)
    server.wait_for(r"listening on .*\n")
    return server


TARGET = f"{ADDRESSES[FAR]}:{SERVICE}"


# ---- The tools -------------------------------------------------------------------------------------------------------

def ping_all_pairs(hosts, build):
    """Each pair with one operation, and each API with all of them at both ends."""
    for server_api in APIS:
        with server_of(hosts, build / "tools/vi-ping", server_api) as server:
            for number, api in enumerate(APIS):
                operation = OPERATIONS[(number + APIS.index(server_api)) % len(OPERATIONS)]
                output = hosts.run(NEAR, build / "tools/vi-ping", "--api", api, "--op", operation, "-c", 3, "-i", 0,
                                   "-W", 20, "-s", 5000, TARGET)
                check("3 packets transmitted, 3 received" in output, output)
            server.stop()


def perf_all_pairs(hosts, build):
    for server_api in APIS:
        with server_of(hosts, build / "tools/vi-perf", server_api):
            for number, api in enumerate(APIS):
                test = ("latency", "bandwidth", "rate", "connect")[(number + APIS.index(server_api)) % 4]
                sizes = [] if test == "connect" else ["--sizes", "8,64K,1M" if test != "rate" else "8"]
                output = hosts.run(NEAR, build / "tools/vi-perf", *PATIENT, "--api", api, "--test", test, *sizes,
                                   "--duration", 0.05, "--csv", TARGET)
                check(len(output.splitlines()) >= 2, output)


def perf_of_all_operations(hosts, build):
    with server_of(hosts, build / "tools/vi-perf"):
        for operation in OPERATIONS:
            for mode in ("polling", "blocking") if operation == "send" else ("polling",):
                hosts.run(NEAR, build / "tools/vi-perf", *PATIENT, "--op", operation, "--mode", mode, "--sizes",
                          "1,16K,64K,4M", "-n", 20, TARGET)
        options = "--test", "bandwidth", "--bidirectional", "--sizes", "64K", "--duration", 0.2
        hosts.run(NEAR, build / "tools/vi-perf", *PATIENT, *options, TARGET)


# ---- Programs that check every byte ----------------------------------------------------------------------------------

def interop(hosts, build):
    for program, library, suffix in ("rpma_interop", "api/rpma", ""), ("dat_interop", "api/udat", "dat"):
        directory = build / library
        settings = {host: {"LD_LIBRARY_PATH": str(directory)} for host in ADDRESSES}
        for host, variables in settings.items():
            if suffix:
                variables["DAT_OVERRIDE"] = str(build / f"tests/dapl/ours-{host}.conf")
        arguments = [ADDRESSES[FAR], SERVICE, directory]
        with Program(hosts, FAR, build / "tests/interop" / program, "server", *arguments, **settings[FAR]) as server:
            server.wait_for("listening\n")
            hosts.run(NEAR, build / "tests/interop" / program, "client", *arguments, **settings[NEAR])
            server.finish()


# ---- Python ----------------------------------------------------------------------------------------------------------

def examples(hosts, build):
    environment = {"PYTHONPATH": str(build / "bindings/python"), "PYTHONDONTWRITEBYTECODE": "1"}
    there = ["--service", SERVICE, "--host", ADDRESSES[FAR]]

    def client(name, *arguments):
        return hosts.run(NEAR, "/usr/bin/python3", EXAMPLES / name, *there, *arguments, **environment)

    def server(name, *arguments):
        here = there if "rpma" in name or "kv" in name else there[:2]
        program = Program(hosts, FAR, "/usr/bin/python3", EXAMPLES / name, *here, *arguments, **environment)
        program.wait_for("listening")
        return program

    for name in "ping_vipl.py", "ping_dat.py", "ping_rpma.py":
        with server(name, "--listen") as running:
            check("50 round trips of 64 bytes" in client(name, "--count", 50), "the median")
            running.finish()
    with server("echo_server.py", "--listen"):
        check("4 clients sent 20 messages each" in client("echo_server.py", "--clients", 4, "--messages", 20), "echo")
    with server("kv_store.py", "serve"):
        client("kv_store.py", "put", "key", "a value")
        check(client("kv_store.py", "get", "key") == "a value\n", "what was stored")


UNREACHABLE = f"""
from viaduct import vipl
with vipl.open_nic() as nic:
    vi = nic.create_vi()
    vi.post_recv()
    vi.connect_peer_request(nic.net_address(b"peer", "{ADDRESSES[NEAR]}"), 40)
    try:
        vi.recv_wait(30)
    except vipl.DescriptorError as error:
        print(error, vi.state.name)
"""


def unreachable_peer(hosts, build):
    """The receives of a VIPL VI are flushed although no call asks for the result of the request. Of two hosts, that
    with the larger address looks for the other one."""
    hosts.run(NEAR, "ip", "address", "del", f"{ADDRESSES[NEAR]}/24", "dev", DEVICES[NEAR])
    hosts.run(FAR, "ip", "neighbour", "flush", "dev", DEVICES[FAR])
    try:
        output = hosts.run(FAR, "/usr/bin/python3", "-c", UNREACHABLE, PYTHONPATH=str(build / "bindings/python"),
                           PYTHONDONTWRITEBYTECODE="1")
        check("DESC_FLUSHED" in output and " ERROR\n" in output, output)
    finally:
        hosts.repair()


# ---- As an ordinary user ---------------------------------------------------------------------------------------------

def user(hosts, build):
    own = pathlib.Path("/proc/self/uid_map").read_text(encoding="ascii").split()
    check(own[1] != "0", "this is root")
    with server_of(hosts, build / "tools/vi-ping", "dat"):
        hosts.run(NEAR, build / "tools/vi-ping", "--api", "rpma", "-c", 3, "-i", 0, TARGET)


GROUPS = {"ping": [ping_all_pairs], "perf": [perf_all_pairs, perf_of_all_operations], "interop": [interop],
          "python": [examples, unreachable_peer], "user": [user]}


def main():
    group, build = sys.argv[1], pathlib.Path(sys.argv[2])
    if group == "user":
        become_ordinary(build / "tools/vi-ping")
    enter()
    with Hosts() as hosts:
        for run in GROUPS[group]:
            run(hosts, build)


if __name__ == "__main__":
    try:
        main()
    except Failed as failure:
        sys.exit(f"FAILED: {failure}")
