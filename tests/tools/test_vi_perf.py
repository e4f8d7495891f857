#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs vi-perf as a user would: test_vi_perf.py PATH_OF_VI_PERF"""
import csv
import io
import json
import os
import pathlib
import re
import signal
import socket
import tempfile
import time
import xml.etree.ElementTree

from command_line import APIS, ON_DEVICES, Terminal, Tool, check, finish


OPERATIONS = {
    "vipl": ["send-immediate", "write-immediate"],
    "dat": ["write-immediate", "fetch-add", "compare-swap"],
    "rpma": ["send-immediate", "write-immediate", "flush", "flush-persistent", "atomic-write"],
    "core": ["send-immediate", "write-immediate", "flush", "flush-persistent", "atomic-write", "fetch-add",
             "compare-swap"],
}


def backends(api):
    """Returns the backends for the measurements of an API. For a second backend, those of the core are enough."""
    if ON_DEVICES:
        return ["verbs"]
    return ["loopback", "tcp"] if api == "core" else ["loopback"]


def test_information(tool):
    check(tool.run("--version").stdout.startswith("vi-perf (Viaduct) "), "version")
    help_text = tool.run("--help").stdout
    check("--histogram" in help_text and "Usage:" in help_text, "help")


def test_bad_options(tool):
    if ON_DEVICES:  # independent of the device
        return
    tool.refuses([
        ([], "no host given"),
        (["--test", "speed", "--local"], "unknown test 'speed'"),
        (["--mode", "lazy", "--local"], "unknown mode 'lazy'"),
        (["--memory", "tape", "--local"], "unknown memory 'tape'"),
        (["--sizes", "8..", "--local"], "bad size"),
        (["--sizes", "2G", "--local"], "supports at most"),
        (["--window", "0", "--local"], "at least 1"),
        (["--window", "100000", "--local"], "windows of at most"),
        (["--bidirectional", "-t", "connect", "--local"], "the connect test cannot be bidirectional"),
        (["--plot", "figure.docx", "--local"], "must end in one of: "),
        (["--plot", "/nowhere/figure.svg", "--local"], "cannot write /nowhere/figure.svg: No such file"),
        (["--op", "write", "--mode", "blocking", "--local"], "blocking mode"),
        (["--open", "7", "--local"], "connect test"),
        (["--op", "send-immediate", "--api", "dat", "--local"], "dat has no send-immediate; it has send, write, "
         "read, write-immediate, fetch-add, compare-swap"),
        (["--op", "fetch-add", "--api", "rpma", "--local"], "flush-persistent, atomic-write\n"),
        (["--op", "fetch-add", "--api", "core", "-s", "8,16", "--local"], "one segment of 8 bytes"),
        (["--op", "fetch-add", "--api", "core", "-s", "4,8", "--local"], "requires messages of 8 bytes"),
        (["--op", "flush", "--local"], "vipl has no flush; it has send, write, read"),
        (["--op", "flush", "--api", "core", "--window", "8000", "--local"], "windows of at most"),
        (["--segments", "2", "--api", "rpma", "--local"], "rpma has no lists of segments"),
        (["--segments", "5", "--local", "-s", "4"], "at least 5 bytes"),
        (["--segments", "65", "--local", "-s", "4K"], "lists of segments of at most"),
        (["--reliability", "reception", "--api", "dat", "--local"], "dat has no reception; it has delivery"),
        (["--reliability", "unreliable", "--op", "read", "--local"], "an unreliable connection has no read"),
        (["--reliability", "unreliable", "-t", "connect", "--local"], "the connect test has no --reliability"),
        (["--batch", "4", "-t", "rate", "--api", "dat", "--local"], "dat has no lists of requests"),
        (["--batch", "4", "--api", "core", "--local"], "can post lists"),
        (["--batch", "4", "--window", "7", "-t", "rate", "--api", "core", "--local"], "half of the window"),
        (["--batch", "33", "-t", "rate", "--api", "core", "--local"], "lists of requests of at most 32"),
        (["--queues", "2", "--local"], "several queues"),
        (["--threads", "257", "--local"], "--threads"),
        (["-n", "1", "-d", "1", "--local"], "cannot be used together"),
        (["--csv", "--json", "--local"], "cannot be used together"),
        (["--csv", "--histogram", "--local"], "--histogram"),
        (["-t", "rate", "--histogram", "--local"], "--histogram requires the latency or connect test"),
        (["-R", "--local"], "reversed"),
        (["-R", "-b", "-t", "rate", "--local"], "cannot be used together"),
        (["--rate-limit", "5", "--local"], "rate limit"),
        (["--check", "-t", "connect", "--local"], "no data to check"),
        (["--sizes", "8,64", "-t", "connect", "--local"], "the connect test has no --sizes"),
        (["-i", "0", "--local"], "--interval must be longer than 0"),
        (["--percentiles", "50,101", "--local"], "bad percentiles '50,101': expected numbers from 0 to 100"),
        (["--percentiles", "50,", "--local"], "bad percentiles"),
        (["--samples", "/dev/null", "-t", "rate", "--local"], "samples require the latency or connect test"),
        (["--samples", "/no/such/file", "--local"], "cannot write /no/such/file: No such file"),
        (["--compare", "a.json"], "--compare takes two files"),
        (["--compare", "a.json", "b.json"], "cannot read a.json: No such file"),
        (["--compare", "/dev/null", "/dev/null"], "/dev/null is not what 'vi-perf --json' prints"),
        (["--compare", "a.json", "b.json", "--tolerance", "few"], "expected percent"),
        (["--compare", "a.json", "--local"], "cannot be used together"),
        (["--listen", "--local"], "cannot be used together"),
        (["--local", "localhost"], "--local does not take a host"),
        (["--server-cpu", "0", "localhost"], "--local"),
        (["--connections", "0"], "at least 1"),
        (["--connections", "4", "--local"], "cannot be used together"),
        (["--connections", "4", "--api", "dat"], "--api core"),
        (["--connections", "4", "--device", "99"], "no device 99: the "),
        (["--connections", "4", "--cpu", "4000"], "cannot run on CPU 4000"),
        (["--connections", "4", "--server-cpu", "4000"], "the server has ended"),
        (["--cpu", "4000", "--local"], "cannot run on CPU 4000"),
        (["--server-cpu", "4000", "--local"], "could not start"),
        (["--connect-timeout", "0.05", "localhost:nobody-is-here"], "there is no listener, tried for "),
    ])


def document_of(tool, *options):
    result = tool.run("--json", *options)
    check(result.stderr == "", result.stderr)
    return json.loads(result.stdout)


def test_tests(tool):
    sizes = ["--sizes", "8,4K"] if ON_DEVICES else []
    for api in APIS:
        for test, key in [
            ("latency", "p99.9_ns"),
            ("bandwidth", "bytes_per_second"),
            ("rate", "messages_per_second"),
            ("connect", "connections_per_second"),
        ]:
            options = ["-n", "50", *([] if test == "connect" else sizes)]
            document = document_of(tool, "--local", "--api", api, "--test", test, *options)
            check(document["test"] == test and document["api"] == api, document)
            for row in document["results"]:
                check(row["iterations"] == 50 and row[key] > 0, row)


def test_results_that_are_lost(tool):
    for redirection in ">/dev/full", ">&-":
        result = tool.run_redirected(redirection, "--local", "-n", "20", "--sizes", "8", "--json", status=2)
        check("cannot write to standard output" in result.stderr, result.stderr)


def test_sizes(tool):
    document = document_of(tool, "--local", "-n", "20", "--sizes", "1,8..32", "--histogram")
    check([row["size_bytes"] for row in document["results"]] == [1, 8, 16, 32], document)
    check(all(sum(bar["count"] for bar in row["histogram"]) == 20 for row in document["results"]), document)


def test_csv(tool):
    result = tool.run("--local", "--csv", "-t", "bandwidth", "-n", "50", "--sizes", "8,4K", "--op", "write")
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    check([row["size_bytes"] for row in rows] == ["8", "4096"], rows)
    check(all(float(row["bytes_per_second"]) > 0 and row["op"] == "write" for row in rows), rows)


def test_csv_tells_directions_apart(tool):
    for options, direction in ([], "forward"), (["-b"], "both"), (["-R"], "reverse"):
        result = tool.run("--local", "--csv", "-t", "rate", "-n", "50", "--window", "7", *options)
        row, = csv.DictReader(io.StringIO(result.stdout))
        check(row["direction"] == direction and row["window"] == "7", row)


def test_csv_tells_machines(tool):
    result = tool.run("--local", "--csv", "-n", "50", "-s", "8")
    row, = csv.DictReader(io.StringIO(result.stdout))
    check(row["date"].endswith("Z") and row["version"] == row["server_version"] != "", row)
    check(row["host"] == row["server_host"] == socket.gethostname(), row)
    check(row["processor"] == row["server_processor"] != "", row)
    check(float(row["cpu_percent"]) >= 0 and float(row["peer_cpu_percent"]) >= 0, row)


def test_data_check(tool):
    for test in "latency", "bandwidth":
        for operation in "send", "write", "read":
            document_of(tool, "--local", "-t", test, "--op", operation, "-n", "50", "--sizes", "1,8,4K", "--check")


def test_percentiles_and_deviation(tool):
    row, = document_of(tool, "--local", "-n", "50", "-s", "8", "--percentiles", "0,25,99.99")["results"]
    check(0 < row["p0_ns"] <= row["p25_ns"] <= row["p99.99_ns"] <= row["max_ns"] and row["stddev_ns"] >= 0, row)
    check("p50_ns" not in row, row)


def test_samples(tool):
    with tempfile.NamedTemporaryFile("r") as file:
        document_of(tool, "--local", "-n", "50", "--sizes", "8,64", "--samples", file.name)
        rows = list(csv.DictReader(file))
    check([row["size_bytes"] for row in rows] == ["8"] * 50 + ["64"] * 50, rows)
    check(all(float(row["ns"]) > 0 for row in rows), rows)


def test_plots(tool):
    if ON_DEVICES:  # where there is no matplotlib
        return
    for test, axes in {"latency": ["percentile", "latency [µs]", "64 B", "4 KiB"],
                       "rate": ["rate [million messages/s]"],
                       "bandwidth": ["size of the message", "bandwidth [MB/s]"], "connect": ["percentile"]}.items():
        with tempfile.NamedTemporaryFile("r", suffix=".svg") as file:
            sizes = [] if test == "connect" else ["-s", "64,4K"]
            tool.run("--local", "-t", test, "-n", "50", *sizes, "--plot", file.name)
            texts = {element.text for element in xml.etree.ElementTree.parse(file).iter() if element.text}
            check(any(text.startswith(f"vi-perf {test}: vipl to localhost") for text in texts), texts)
            check(texts.issuperset(axes), texts)


def test_plots_of_nothing(tool):
    if ON_DEVICES:
        return
    with tempfile.TemporaryDirectory() as directory:
        file = os.path.join(directory, "figure.svg")
        tool.run("--connect-timeout", "0.05", "localhost:nobody-is-here", "--plot", file, status=2)
        check(not os.path.exists(file), "an empty file is left")


def test_messages_that_cross(tool):
    for api in APIS:
        for backend in backends(api):
            # Writes carry a mark, which begins anew after 255.
            for operation, mode, count in (("send", "polling", 50), ("send", "blocking", 50), ("write", "polling", 300),
                                           ("read", "polling", 50)):
                options = "--backend", backend, "--api", api, "--op", operation, "--mode", mode, "-n", str(count)
                document = document_of(tool, "--local", *options, "-b", "-s", "8", "--check")
                check(document["direction"] == "both" and document["results"][0]["iterations"] == count, document)


def test_intervals(tool):
    options = "--local", "-t", "rate", "-d", "0.3", "-i", "0.05"
    row, = document_of(tool, *options)["results"]
    check(sum(part["iterations"] for part in row["intervals"]) == row["iterations"], row)
    begins = [part["begin_seconds"] for part in row["intervals"]]
    check(begins[0] == 0 and begins == sorted(begins), row)
    lines = tool.run(*options, "--bits").stdout.splitlines()
    check("interval [s]" in lines[1] and "[Mbit/s]" in lines[1], lines)
    first, last = lines[2].split()[0], lines[-1].split()[0]  # on a busy machine, an interval may take seconds
    check(re.fullmatch(r"0\.00-\d+\.\d\d", first) and last == "total", lines)


def test_comparison(tool):
    def compare(status, before, after, *options):
        with tempfile.TemporaryDirectory() as directory:
            paths = [os.path.join(directory, name) for name in ("before.json", "after.json")]
            for path, document in zip(paths, (before, after)):
                with open(path, "w") as file:
                    json.dump(document, file)
            result = tool.run("--compare", *paths, *options, status=status)
            return result.stdout + result.stderr

    def latency(*medians, **settings):
        rows = [{"size_bytes": 8 << i, "p50_ns": median} for i, median in enumerate(medians)]
        return {"tool": "vi-perf", "test": "latency", "api": "core", "results": rows} | settings

    rate = {"tool": "vi-perf", "test": "rate", "results": [{"size_bytes": 8, "messages_per_second": 4e6}]}
    text = compare(1, latency(100, 200, 300), latency(104, 150, 330, api="dat"))
    check([line.split()[-1] for line in text.splitlines()[2:5]] == ["same", "better", "worse"], text)
    check('different api: "core", "dat"' in text and "+10.0" in text, text)
    check("verdict: worse (of 3: 1 better, 1 worse by more than 5 %)" in text, text)
    check("verdict: same" in compare(0, latency(100, 200, 300), latency(104, 150, 330), "--tolerance", "25.1"), text)
    check("verdict: better" in compare(0, latency(100), latency(50, 60)), "fewer sizes")
    slower = rate | {"results": [{"size_bytes": 8, "messages_per_second": 3e6}]}
    check("verdict: worse" in compare(1, rate, slower) and "verdict: better" in compare(0, slower, rate), "rates")
    check("different tests: latency, rate" in compare(2, latency(100), rate), "tests")
    check("different queues: 1, 2" in compare(2, latency(100, queues=1), latency(100, queues=2)), "queues")
    check("different rate_limit" in compare(2, latency(100, rate_limit=0), latency(100, rate_limit=9)), "rate")
    text = compare(0, latency(100), latency(100, window=8))
    check("different window: null, 8" in text, text)
    check("different direction" in compare(2, latency(100, direction="forward"), latency(100, direction="both")), "-b")
    check("verdict: same" in compare(0, latency(100), latency(100, queues=2)), "a file of an older version")
    check("no size in common" in compare(2, latency(), latency(100)), "sizes")
    check("a result has no p50_ns" in compare(2, rate | {"test": "latency"}, latency(100)), "keys")
    real = document_of(tool, "--local", "-n", "20", "--sizes", "8")
    check("verdict: same" in compare(0, real, real), real)


def test_operations(tool):
    for api, operations in OPERATIONS.items():
        for backend in backends(api):
            for operation in operations:
                for test in "latency", "rate":
                    options = "--backend", backend, "--api", api, "-t", test, "--op", operation, "-n", "50"
                    document = document_of(tool, "--local", *options, "-s", "8", "--check")
                    check(document["op"] == operation and document["results"][0]["iterations"] == 50, document)


def test_operations_for_both_ends(tool):
    with tool.server("--api", "dat", "--count", "1") as server:
        error = tool.run("--api", "core", "--op", "send-immediate", server.target, status=2).stderr
        check("the server refuses: dat has no send-immediate" in error, error)


def test_reliability(tool):
    for api in "vipl", "core":
        for backend in backends(api):
            for level in "unreliable", "reception":
                for test, operation in ("latency", "send"), ("latency", "write"), ("rate", "write"), ("rate", "send"):
                    options = "--backend", backend, "--api", api, "-t", test, "--op", operation, "-n", "50", "-s", "8"
                    document = document_of(tool, "--local", *options, "--reliability", level, "--check")
                    check(document["reliability"] == level, document)


def test_lists_of_requests(tool):
    for backend in backends("core"):
        for operation, direction in ("send", "-b"), ("write", "-R"), ("fetch-add", "-b"), ("flush", "-b"):
            for mode in "polling", "blocking":
                options = "--backend", backend, "--api", "core", "-t", "rate", "--op", operation, "--mode", mode
                document = document_of(tool, "--local", *options, "--batch", "8", "--window", "16", "-n", "100",
                                       "--check", direction)
                check(document["batch"] == 8 and document["results"][0]["iterations"] == 100, document)


def test_segments(tool):
    for api in set(APIS) - {"rpma"}:
        for backend in backends(api):
            for test, operation in ("latency", "send"), ("latency", "write"), ("bandwidth", "read"), ("rate", "send"):
                options = "--backend", backend, "--api", api, "-t", test, "--op", operation, "-n", "50", "--check"
                document = document_of(tool, "--local", *options, "--segments", "3", "-s", "8,4K")
                check(document["segments"] == 3, document)


def test_several_connections(tool):
    for api in APIS:
        for backend in backends(api):
            options = "--local", "--backend", backend, "--api", api, "-n", "50", "--threads", "2", "--check"
            document = document_of(tool, *options, "-s", "8")
            check(document["threads"] == 2 and document["results"][0]["iterations"] == 100, document)
            document = document_of(tool, *options, "-t", "rate", "--queues", "3")
            check(document["queues"] == 3 and document["results"][0]["iterations"] == 300, document)


def test_rate_limit(tool):
    row, = document_of(tool, "--local", "-t", "rate", "-n", "100", "--rate-limit", "1000")["results"]
    check(row["messages_per_second"] <= 1000, row)


def test_table(tool):
    result = tool.run("--local", "-n", "50", "--sizes", "8", "--mode", "blocking", "--memory", "heap", "--cpu", "0")
    check("one way" in result.stdout and "p50 [us]" in result.stdout, result.stdout)
    check(result.stderr == "", "a progress bar without a terminal: " + result.stderr)


def test_open_connections(tool):
    document = document_of(tool, "--local", "-t", "connect", "--open", "64", "-n", "128",
                           "--connect-timeout", "20")
    check(document["open"] == 64 and document["results"][0]["iterations"] == 128, document)


def test_many_connections(tool):
    options = ["--connections", "100" if not ON_DEVICES else "2", "-d", "0.05"]
    document = document_of(tool, *options)
    check(document["connections"] == int(options[1]), document)
    check([row["active"] for row in document["results"]] == ([1] if ON_DEVICES else [1, 100]), document)
    check(all(row["round_trip_ns"] > 0 and row["round_trips_per_second"] > 0 for row in document["results"]), document)
    for key in "connections_per_second", "wakeup_ns", "registration_ns":
        check(document[key] > 0, document)
    for side in "client", "server":
        check(document[side]["memory_bytes"] > 0, document)
        check(document[side]["descriptors"] >= (0 if ON_DEVICES else 1), document)  # devices may need none of their own
    check("round trip [us]" in tool.run(*options).stdout, "the table")


def test_one_server_for_every_interface(tool):
    for server_api in APIS:
        with tool.server("--api", server_api) as server:
            for api in APIS:
                options = ["--api", api, "-n", "20", "--sizes", "8,100K", "--connect-timeout", "20"]
                document_of(tool, *options, server.target)
            server.wait_for(f"client {len(APIS)} is done")


def test_server_outlives_a_client_that_is_killed(tool):
    with tool.server() as server:
        client = tool.start("-d", "1000", "--sizes", "8", "--connect-timeout", "20", server.target)
        server.wait_for("client 1 connected")
        client.kill()
        server.wait_for("client 1 disconnected unexpectedly")
        document_of(tool, "-n", "20", "--sizes", "8", "--connect-timeout", "20", server.target)


def test_server_that_serves_another_client(tool):
    if ON_DEVICES:  # may be too slow to answer in a second
        return
    for server_api, api in zip(APIS, [*APIS[1:], APIS[0]]):
        with tool.server("--api", server_api, "--count", "2") as server:
            first = tool.start("-d", "1000", "--sizes", "8", "--connect-timeout", "20", server.target)
            server.wait_for("client 1 connected")
            error = tool.run("--api", api, "--connect-timeout", "1", server.target, status=2).stderr
            check(f"{server.target} ({api}, " in error, error)
            check("the server is busy: it serves client 1, tried for " in error, error)
            waiting = tool.start("-n", "20", "--sizes", "8", "--connect-timeout", "60", server.target)
            first.process.send_signal(signal.SIGINT)
            first.finish(status=130)
            waiting.finish()
            server.wait_for("client 2 is done")
            server.finish()


def test_client_of_a_server_that_is_killed(tool):
    with tool.server() as server:
        client = tool.start("-d", "1000", "-t", "rate", "--connect-timeout", "20", server.target)
        server.wait_for("client 1 connected")
        server.kill()
        log = client.finish(status=2)
        check(f"vi-perf: {server.target} (vipl, " in log and "): the connection is closed" in log, log)


def polling_child(process):
    """Returns the child of a process once it has used a processor for a second: it polls for messages."""
    while True:
        for child in pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split():
            user, system = pathlib.Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[11:13]
            if int(user) + int(system) > os.sysconf("SC_CLK_TCK"):
                return int(child)
        time.sleep(0.01)  # nothing notifies of it


def test_client_of_a_server_that_is_stopped(tool):
    if ON_DEVICES:  # independent of the device
        return
    options = ["-d", "1000", "-i", "0.5", "--connect-timeout", "20", "-s", "8"]
    with tool.server() as one, tool.server() as other, tool.start("--op", "write", *options, one.target) as writes, \
            tool.start("-t", "rate", *options, other.target) as streams, \
            tool.start("--connections", "2", "-d", "1000") as many:
        for client, server in (writes, one), (streams, other):
            client.wait_for("0.00-")
            server.process.send_signal(signal.SIGSTOP)
        os.kill(polling_child(many.process), signal.SIGSTOP)
        for client in writes, streams, many:
            log = client.finish(status=2)
            check("no progress for 30 s" in log or "does not answer" in log, log)  # the latter between two runs


def test_connecting_in_vain(tool):
    if ON_DEVICES:  # the messages differ on devices
        return
    for api in APIS:
        error = tool.run("--api", api, "--connect-timeout", "1", "localhost:9", status=2).stderr
        check(f"vi-perf: localhost:9 ({api}, loopback): there is no listener" in error, error)
        check(float(error.rpartition(", tried for ")[2].split()[0]) >= 1, error)


def test_interrupt_prints_what_was_measured(tool):
    endless = ["-d", "1000"]
    many = ["-n", "1000000000", "--warmup", "1"]
    for options in endless, [*endless, "--mode", "blocking"], [*endless, "-t", "connect"], many:
        with Terminal([tool.path, "--local", "--json", *options], 80) as terminal:
            terminal.read_until("%")  # some of it has been measured
            terminal.write("\x03")  # for the local server, too
            results = json.loads("{" + terminal.read().partition("{")[2])["results"]
            check(len(results) == 1 and results[0]["iterations"] > 0, results)
            check(terminal.process.wait(60) == 130, "the exit status")


def test_progress_bar_has_the_width_of_the_terminal(tool):
    for columns in 200, 60, 20, 5:
        with Terminal([tool.path, "--local", "--csv", "-n", "2000", "--sizes", "8"], columns) as terminal:
            lines = [line for line in terminal.read().split("\r") if "%" in line]
            check(lines and all(line.endswith("%") for line in lines), f"{columns}: {lines}")
            check(all(len(line) == columns - 1 or len(line) < columns < 30 for line in lines), f"{columns}: {lines}")


finish(globals(), Tool("vi-perf"))
