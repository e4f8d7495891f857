#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Lets vi-info look at listeners of RDMA devices: test_vi_info_rdma.py PATH_OF_VI_INFO PATH_OF_VI_PING BUILD [STOCK].
BUILD is the directory of the build, STOCK that of the stock libraries. For the guest of tests/vm, whose addresses are
10.0.0.1 to 10.0.0.3. Other tests may run and listen there. The exit status is 77 if there is no RDMA device."""
import json
import os
import pathlib
import re
import sys

from command_line import Running, check, finish, free_service, run
from test_vi_info_why import ANOTHER_USER, NOBODY, Info, has_another_user

ADDRESS, ANOTHER_ADDRESS = "10.0.0.1", "10.0.0.2"
LISTENER = str(pathlib.Path(__file__).with_name("rdma_listener.py"))
BUILD = pathlib.Path(sys.argv[3])
STOCK = sys.argv[4] if len(sys.argv) > 4 else ""


def librdmacm_alone(info, address=ADDRESS, creator="main", prefix=()):
    """Starts a program that uses none of our APIs."""
    service = str(next(info.services))
    running = Running([*prefix, sys.executable, LISTENER, address, service, creator])
    running.wait_for("the thread has ended" if creator == "ended" else "listening on")
    return running, service


def interop(info, program, library, configuration=""):
    """Starts the server of tests/interop, with the libraries of a directory."""
    service = str(next(info.services))
    running = Running([str(BUILD / "tests/interop" / program), "server", ANOTHER_ADDRESS, service, str(library)],
                      LD_LIBRARY_PATH=str(library), DAT_OVERRIDE=str(configuration), VIADUCT_BACKEND="verbs")
    running.wait_for("listening")
    return running, service


def check_listener(info, service, process, host=ADDRESS, apis=None):
    found = info.listener(service)
    check((found["backend"], found["host"]) == ("verbs", host), str(found))
    check([each["pid"] for each in found["processes"]] == [process], str(found))
    check(found["uid"] == os.geteuid() and found["own_user"] and found["own_network"], str(found))
    check(apis is None or found["apis"] == apis, f"not {apis}: {found}")
    line = next(line for line in info.run("--listeners").splitlines() if line.startswith(f"{service} "))
    check(host in line and "verbs" in line and f"({process})" in line, line)
    return found


def check_why(info, host, service, process):
    finding = info.why(f"{host}:{service}", works=True)["finding"]
    check(f"process {process}" in finding and "verbs" in finding, finding)


# ---- Listeners -----------------------------------------------------------------------------------------------------

def test_listeners_of_viaduct(info):
    for api in "vipl", "dat", "rpma", "core":
        with info.server(api) as (service, process):
            found = check_listener(info, service, process)
            check(api == "core" or api in found["apis"], str(found))
            check_why(info, ADDRESS, service, process)


def test_listeners_of_programs(info):
    """These load the library of one API only."""
    for program, library, configuration, api in [
            ("rpma_interop", BUILD / "api/rpma", "", "rpma"),
            ("dat_interop", BUILD / "api/udat", BUILD / "tests/dapl/ours-2.conf", "dat"),
            ("rpma_interop", STOCK, "", "rpma"),
            ("dat_interop", STOCK, BUILD / "tests/dapl/stock-2.conf", "dat")]:
        if not library:
            print(f"no stock library for {program}")
            continue
        running, service = interop(info, program, library, configuration)
        with running:
            found = check_listener(info, service, running.process.pid, ANOTHER_ADDRESS, [api])
            check(found["processes"][0]["program"] == program, str(found))
            check_why(info, ANOTHER_ADDRESS, service, running.process.pid)


def test_a_listener_of_every_address_is_listed_once(info):
    for address in "0.0.0.0", "::":
        running, service = librdmacm_alone(info, address)
        with running:
            check_listener(info, service, running.process.pid, address, [])
            for host in ADDRESS, ANOTHER_ADDRESS:
                check_why(info, host, service, running.process.pid)


def test_a_listener_that_another_thread_created(info):
    running, service = librdmacm_alone(info, creator="thread")
    with running:
        check_listener(info, service, running.process.pid)


def test_a_listener_whose_thread_has_ended(info):
    running, service = librdmacm_alone(info, creator="ended")
    with running:
        found = info.listener(service)
        check((found["user"], found["uid"], found["processes"]) == ("unknown", None, []), str(found))
        check("process unknown" in info.why(f"{ADDRESS}:{service}", works=True)["finding"], "why")


def test_other_users_see_the_process(info):
    if not has_another_user():
        return
    with info.server() as (service, process):
        text = run([*ANOTHER_USER, info.path, "--json", "--listeners"]).stdout
        found = next(each for each in json.loads(text)["listeners"] if each["service"] == service)
        check(found["processes"] == [{"pid": process, "program": "vi-ping"}], str(found))
        check((found["uid"], found["own_user"], found["apis"]) == (os.geteuid(), False, []), str(found))


def test_a_listener_of_another_user(info):
    if not has_another_user():
        return
    running, service = librdmacm_alone(info, prefix=ANOTHER_USER)
    with running:
        found = info.listener(service)
        check((found["uid"], found["own_user"]) == (NOBODY, False), str(found))
        check_why(info, ADDRESS, service, running.process.pid)  # users do not matter there


def test_all_listeners_of_the_kernel_are_shown(info):
    """As rdma(8) shows them."""
    running, _ = librdmacm_alone(info, "0.0.0.0")
    with info.server("rpma") as (_, one), info.server("dat", device="1") as (_, another), running:
        started = {one, another, running.process.pid}
        text = run(["rdma", "resource", "show", "cm_id"]).stdout
        lines = re.findall(r"state LISTEN ps TCP pid (\d+) .*src-addr (\S+):(\d+)", text)
        expected = {(host, service, int(process)) for process, host, service in lines if int(process) in started}
        check(len(expected) == len(started), text)
        found = [(each["host"], each["service"], each["processes"][0]["pid"]) for each in info.listeners()
                 if [process for process in each["processes"] if process["pid"] in started]]
        check(sorted(found) == sorted(expected), f"{found} {expected}")


# ---- The way to them -----------------------------------------------------------------------------------------------

def test_why_nobody_listens(info):
    with info.server("rpma") as (service, _):
        info.fails(f"{ADDRESS}:1", "listener", "nobody listens on service 1", "Listening here:")
    info.fails(f"{ADDRESS}:{service}", "listener", f"nobody listens on service {service} at {ADDRESS}", "Start")


def test_why_a_connected_client_is_no_listener(info):
    with info.server("rpma") as (service, process), \
            Running([info.ping, "--api", "rpma", "--interval", "0.01", f"{ADDRESS}:{service}"]) as client:
        client.wait_for("seq=2")
        found = [each["pid"] for listener in info.listeners() for each in listener["processes"]]
        check(process in found and client.process.pid not in found, str(found))


def test_why_services_that_are_no_ports(info):
    with info.server("vipl", service="echo") as (_, process):
        check_why(info, ADDRESS, "echo", process)
        info.fails(f"{ADDRESS}:another", "listener", "nobody listens on service another")


def test_why_a_listener_on_another_device(info):
    with info.server(device="1") as (service, process):
        info.fails(f"{ADDRESS}:{service}", "listener", "on another device", f"Connect to {ANOTHER_ADDRESS}")
        check_why(info, ANOTHER_ADDRESS, service, process)


def test_why_a_listener_of_another_backend(info):
    with info.server(VIADUCT_BACKEND="loopback") as (service, _):
        info.fails(f"{ADDRESS}:{service}", "listener", "of another backend", "VIADUCT_BACKEND=loopback")
    with info.server() as (service, process):  # the default device, which the tools use for this host
        check_why(info, "localhost", service, process)
        info.fails(f"localhost:{service}", "listener", "of another backend", f"Connect to {ADDRESS}",
                   VIADUCT_BACKEND="loopback")


def main():
    if not os.path.isdir("/sys/class/infiniband") or not os.listdir("/sys/class/infiniband"):
        print("no RDMA device")
        sys.exit(77)
    info = Info()
    info.services = iter(free_service, None)
    finish(globals(), info)


if __name__ == "__main__":
    main()
