#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs vi-ping as a user would: test_vi_ping.py PATH_OF_VI_PING"""
import json
import os
import pathlib
import signal
import time

from command_line import APIS, ON_DEVICES, Tool, check, finish, free_service

OPERATIONS = "send", "write", "read"


def test_information(tool):
    check(tool.run("--version").stdout.startswith("vi-ping (Viaduct) "), "version")
    help_text = tool.run("--help").stdout
    check("--interval" in help_text and "Usage:" in help_text, "help")


def test_bad_options(tool):
    if ON_DEVICES:  # independent of the device
        return
    tool.refuses([
        ([], "no host given"),
        (["--no-such-option"], "no-such-option"),
        (["--api", "mpi", "localhost"], "unknown API 'mpi'"),
        (["--backend", "ether", "localhost"], "unknown backend 'ether'"),
        (["--op", "jump", "localhost"], "unknown operation 'jump'"),
        (["--interval", "soon", "localhost"], "expected seconds"),
        (["--timeout", "0", "localhost"], "longer than 0"),
        (["--size", "many", "localhost"], "bad size 'many'"),
        (["--size", "4G", "localhost"], "too long"),
        (["--size", "3G", "localhost"], "too long"),
        (["--count=-1", "localhost"], "out of range"),
        (["--count", "few", "localhost"], "few"),
        (["--device", "8", "localhost"], "no device 8"),
        (["--device", "4294967296", "localhost"], "out of range"),
        (["::1"], "IPv6"),
        (["no.such.host.invalid"], "unknown host"),
        (["host", "another"], "'another' is one argument too many"),
        (["--listen=1", "2"], "no host"),
        (["--listen", "203.0.113.9"], "this host does not have the address 203.0.113.9"),
        (["--listen", "300.0.0.1"], "bad address or service '300.0.0.1'"),
        (["--listen", "127.0.0.77"], "no device has the address 127.0.0.77"),
        (["--listen", "127.0.0.1", "--device", "1"], "which selects the device"),
        (["--listen", "65536"], "above 65535"),
        (["--listen=-1"], "bad service '-1'"),
        (["localhost:70000"], "service number '70000' is above 65535"),
        (["localhost:-1"], "bad service '-1'"),
        (["70000"], "a number is not a host"),
        (["localhost:echo", "--api", "rpma"], "must be numbers"),
        (["localhost:echo", "--api", "dat"], "must be numbers"),
        (["--listen", "echo", "--api", "rpma"], "must be numbers"),
        (["--listen", "echo", "--api", "dat"], "must be numbers"),
    ])


def test_settings_that_cannot_be_used(tool):
    if ON_DEVICES:  # the lists differ on devices
        return
    for variable, value, usable, status in [
        ("VIADUCT_LOG", "loud", "error, warning, info or debug", 1),
        ("VIADUCT_CONNECT_RETRY_MS", "soon", "a number from 0 to 4294967295", 1),
        ("VIADUCT_BACKEND", "ether", "verbs, loopback, tcp", 2),
        ("VIADUCT_DEVICE", "viaduct-lo8", "viaduct-lo0, viaduct-lo1", 2),
    ]:
        result = tool.run("-c", "1", "-W", "20", "localhost:nobody-is-here", status=status, **{variable: value})
        warning = f"viaduct: warning: {variable}: cannot use '{value}', only "
        check(result.stderr.count(warning) == 1 and usable in result.stderr, f"{variable}: {result.stderr}")


def test_streams_that_take_nothing(tool):
    for redirection in ">/dev/full", ">&-":
        result = tool.run_redirected(redirection, "--version", status=2)
        check("cannot write to standard output" in result.stderr, result.stderr)
    for redirection in "2>/dev/full", "2>&-":
        tool.run_redirected(redirection, status=2)
        tool.run_redirected(redirection, "--version", status=0)


def test_service_in_use(tool):
    if ON_DEVICES:  # the messages differ on devices
        return
    for api, reason in ("dat", "DAT_CONN_QUAL_IN_USE"), ("rpma", "already has a listener"):
        with tool.server("--api", api) as server:
            result = tool.run("--api", api, "--device", "1", "--listen", server.service, status=2)
            check(reason in result.stderr, result.stderr)


def test_service_in_use_with_vipl(tool):
    if ON_DEVICES:
        return
    with tool.server() as server:
        with tool.start("--device", "1", "--listen", server.service, VIADUCT_LOG="info") as other:
            other.wait_for(f"port {server.service} of 127.0.0.2 already has a listener")
        with tool.start("--device", "2", "--listen", server.service, VIADUCT_LOG="info") as elsewhere:
            elsewhere.wait_for("listening on")
            check("already" not in elsewhere.log, elsewhere.log)


def operations_between(server_api, api):
    """Returns all operations or, on devices, one, such that each API is tested with each operation."""
    number = APIS.index(server_api) + APIS.index(api)
    return [OPERATIONS[number % len(OPERATIONS)]] if ON_DEVICES else OPERATIONS


def test_replies(tool):
    for server_api in APIS:
        with tool.server("--api", server_api) as server:
            runs = [(api, operation) for api in APIS for operation in operations_between(server_api, api)]
            for api, operation in runs:
                result = ping(tool, server, "--api", api, "--op", operation)
                lines = result.stdout.splitlines()
                check(lines[1].startswith(f"64 bytes from {server.target}: seq=1 time="), result.stdout)
                check(lines[1].endswith(f" us ({api}, {operation})"), result.stdout)
                check("3 packets transmitted, 3 received, 0% packet loss" in result.stdout, result.stdout)
                check("rtt min/avg/max/mdev = " in result.stdout, result.stdout)
            server.wait_for(f"client {len(runs)} connected: {runs[-1][1]}, 64 bytes")
            server.stop()


def ping(tool, server, *options):
    """Sends three requests. A VIPL server announces its service anew for each client, which may take it a while."""
    return tool.run("-c", "3", "-i", "0", "-W", "20", server.target, *options, VIADUCT_CONNECT_RETRY_MS="10000")


def test_names_of_this_host(tool):
    service = free_service()
    with tool.start("--listen", service) as server:
        server.wait_for("listening on")
        for host in "localhost", "127.0.0.1":
            tool.run("-c", "1", "-W", "20", f"{host}:{service}")


def test_address_to_listen_on(tool):
    if ON_DEVICES:  # the addresses differ on devices
        return
    for api in APIS:
        service = free_service()
        with tool.start("--api", api, "--listen", f"127.0.0.3:{service}") as server:
            check(f"listening on 127.0.0.3:{service}" in server.wait_for("listening on"), server.log)
            tool.run("-c", "1", "-W", "20", f"127.0.0.3:{service}")


def test_ipv6_with_dat(tool):
    addresses = pathlib.Path("/proc/net/if_inet6")
    if ON_DEVICES or not addresses.exists() or " lo\n" not in addresses.read_text():
        return
    service = free_service()
    options, settings = ["--api", "dat"], {"VIADUCT_DEVICE": "viaduct-lo-v6"}
    with tool.start(*options, "--listen", service, **settings) as server:
        check(f"listening on [::1]:{service}" in server.wait_for("listening on"), server.log)
        tool.run(*options, "-c", "1", "-W", "20", f"[::1]:{service}", **settings)


def test_json(tool):
    with tool.server() as server:
        document = json.loads(ping(tool, server, "--json", "-s", "1000").stdout)
        check(document["received"] == 3 and document["loss_percent"] == 0, document)
        check([reply["seq"] for reply in document["replies"]] == [1, 2, 3], document)
        check(document["payload_bytes"] == 1000, document)
        check(0 < document["rtt_us"]["min"] <= document["rtt_us"]["avg"] <= document["rtt_us"]["max"], document)
        quiet = json.loads(ping(tool, server, "--json", "-q").stdout)
        check("replies" not in quiet, quiet)


def test_loss(tool):
    document = json.loads(tool.run("--json", "-c", "1", "localhost:no-text-\udcff", status=1).stdout)
    check(document["target"] == "localhost:no-text-\ufffd", document)
    result = tool.run("-c", "2", "-i", "0", "-W", "20", "localhost:nobody-is-here", status=1)
    check("seq=2 there is no listener" in result.stdout, result.stdout)
    check("2 packets transmitted, 0 received, 100% packet loss" in result.stdout, result.stdout)


def test_deadline(tool):
    result = tool.run("-w", "0.1", "-i", "0.01", "localhost:nobody-is-here", status=1)
    check("100% packet loss" in result.stdout, result.stdout)


def test_the_end_while_it_connects(tool):
    if ON_DEVICES:  # independent of the device
        return
    with tool.server("--api", "core") as server:
        server.process.send_signal(signal.SIGSTOP)
        os.waitpid(server.process.pid, os.WUNTRACED)  # it goes on until it is scheduled
        options = "--api", "core", "-W", "100", server.target
        result = tool.run("-w", "0.1", *options, status=1)
        check("1 packets transmitted, 0 received" in result.stdout, result.stdout)
        with tool.start(*options) as client:
            client.wait_for("VI-PING")
            client.process.send_signal(signal.SIGINT)
            interrupted = time.monotonic()
            client.wait_for("0 packets transmitted")
            client.finish(status=1)
            check(time.monotonic() - interrupted < 50, "it waits for the connection")


def test_interrupt_prints_the_summary(tool):
    with tool.server() as server:
        client = tool.start("-i", "0.01", "-W", "20", server.target)
        client.wait_for("seq=3")
        log = client.stop(signal.SIGINT)
        check("packets transmitted" in log and "rtt min" in log, log)


def test_loss_and_recovery_of_a_server(tool):
    with tool.server() as server:
        client = tool.start("-i", "0.01", "-W", "20", server.target)
        client.wait_for("bytes from")
        server.kill()
        client.wait_for("connection is closed")
        with tool.server(service=server.service):
            client.wait_for("bytes from")
            client.stop(signal.SIGINT)


def test_server_for_a_number_of_clients(tool):
    with tool.server("--count", "2") as server:
        for _ in range(2):
            ping(tool, server, "-q")
        log = server.finish()
        check(log.count("left after 3 answered requests") == 2, log)


finish(globals(), Tool("vi-ping"))
