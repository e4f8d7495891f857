#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Traces programs with vi-run: test_vi_run_trace.py PATH_OF_VI_RUN"""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

from command_line import PATIENCE_S, Running, Terminal, Tool, check, finish, free_service, run

TOOLS = pathlib.Path(sys.argv[1]).resolve().parent
BUILD = TOOLS.parent
TRACED = str(BUILD / "tests/tools/viaduct_traced")
LINE = re.compile(r"\d\d:\d\d:\d\d\.\d{6} \[(\d+)(?:\.(\d+))?\] "
                  r"(?:(\w+)\((.*)\) = (.*) <\d+\.\d{6}>|\+\+\+ (.*) \+\+\+|"
                  r"\w+\(.* <unfinished after \d+\.\d{6} s>)")
ROUNDS = 25  # of traced.c
os.environ["VIADUCT_BACKEND"] = "loopback"


class Trace:
    """A file for a trace. `lines` are its lines, `calls` the names of the calls in it."""

    def __enter__(self):
        self.directory = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.directory.name) / "trace"
        return self

    def __exit__(self, *_):
        self.directory.cleanup()

    def lines(self):
        return self.path.read_text().splitlines()

    def records(self):
        """The lines as matches of LINE, which all of them are."""
        records = [(line, LINE.fullmatch(line)) for line in self.lines()]
        for line, record in records:
            check(record, f"not a record: {line}")
        return [record for _, record in records]

    def calls(self):
        return [record[3] for record in self.records() if record[3]]

    def objects(self):
        return [json.loads(line) for line in self.lines()]


def traced(tool, trace, *arguments, status=0, options=()):
    """Runs the test program; returns what it and vi-run wrote."""
    return tool.run("--quiet", f"--trace={trace.path}", *options, TRACED, *arguments, status=status)


def test_arguments_are_decoded(tool):
    with Trace() as trace:
        result = traced(tool, trace, "polls")
        check(result.stdout == "done\n" and result.stderr == "", f"{result}")
        text = trace.path.read_text()
        for words in ('VipOpenNic(DeviceName="VINIC0", NicHandle=nic#1) = VIP_SUCCESS <',
                      "VipCreateCQ(NicHandle=nic#1, EntryCount=8, CQHandle=cq#1) = VIP_SUCCESS <",
                      "VipCreateCQ(NicHandle=nic#1, EntryCount=9, CQHandle=cq#2) = VIP_SUCCESS <",
                      "VipDestroyCQ(CQHandle=cq#2) = VIP_SUCCESS <", "VipCloseNic(NicHandle=nic#1) = VIP_SUCCESS <"):
            check(words in text, f"no '{words}' in {text}")
        events = [record[6] for record in trace.records() if record[6]]
        check(events == [f"started {TRACED} polls", "exited with 0"], events)


def test_polls_that_find_nothing_are_folded(tool):
    with Trace() as trace:
        traced(tool, trace, "polls")
        polls = [(record[4], record[5]) for record in trace.records() if record[3] == "VipCQDone"]
        check(polls == [("CQHandle=cq#1", f"VIP_NOT_DONE, times={ROUNDS}"),
                        ("CQHandle=cq#2", f"VIP_NOT_DONE, times={ROUNDS}"), ("CQHandle=cq#1", "VIP_NOT_DONE")], polls)


def test_every_api_is_traced(tool):
    for api, calls in (
            ("vipl", "VipOpenNic VipCreateVi VipRegisterMem VipConnectRequest VipPostSend VipPostRecv VipDisconnect"),
            ("dat", "dat_ia_openv dat_ep_create dat_lmr_create dat_ep_connect dat_ep_post_send dat_ia_close"),
            ("rpma", "rpma_peer_new rpma_conn_req_new rpma_conn_req_connect rpma_send rpma_recv rpma_cq_get_wc")):
        service = free_service()
        with Trace() as ours, Trace() as theirs:
            ping = [str(TOOLS / "vi-ping"), "--api", api]
            with Running([tool.path, "--quiet", f"--trace={theirs.path}", *ping, "--listen", service]) as server:
                server.wait_for("listening on")
                tool.run("--quiet", f"--trace={ours.path}", *ping, "-c", "3", "-i", "0", f"127.0.0.1:{service}")
                server.process.terminate()
                server.finish()
            missing = set(calls.split()) - set(ours.calls())
            check(not missing, f"{api}: no {missing}")
            check(len(set(theirs.calls())) > 10, f"{api}: the server is not traced: {theirs.calls()}")


def test_dat12_programs_are_traced_once(tool):
    """libdat.so.1 itself calls libdat2.so.2."""
    with Trace() as trace:
        tool.run("--quiet", f"--trace={trace.path}", "--trace-format", "json",
                 str(BUILD / "tests/conformance/dat1/objects"))
        apis = {record["api"] for record in trace.objects() if "api" in record}
        check(apis == {"dat1.2"}, apis)


def test_all_programs_of_the_conformance_suites(tool):
    """They pass as they do untraced, and every line is well-formed."""
    for program in "vipl/connect_request", "udat/ep_query", "udat/evd_events", "rpma/conn", "rpma/srq", "dat1/objects":
        for form in "text", "json", "perfetto":
            with Trace() as trace:
                tool.run("--quiet", f"--trace={trace.path}", "--trace-format", form,
                         str(BUILD / "tests/conformance" / program))
                count = {"text": lambda: len(trace.records()), "json": lambda: len(trace.objects()),
                         "perfetto": lambda: len(json.loads(trace.path.read_text()))}[form]()
                check(count > 10, f"{program} {form}: {count}")


def test_formats(tool):
    with Trace() as trace:
        traced(tool, trace, "polls", options=["--trace-format", "json"])
        started, opened, *_, closed, exited = trace.objects()
        check(started["event"] == "started" and exited["event"] == "exited with", f"{started} {exited}")
        check(opened["call"] == "VipOpenNic" and opened["args"] == {"DeviceName": "VINIC0", "NicHandle": "nic#1"}
              and opened["result"] == "VIP_SUCCESS" and opened["duration_us"] > 0 and opened["api"] == "vipl", opened)
        check(closed["time"] > opened["time"] > 1.7e9, closed)
        folded = [record for record in trace.objects() if record.get("times")]
        check([record["times"] for record in folded] == [ROUNDS, ROUNDS], folded)
    with Trace() as trace:
        traced(tool, trace, "wild", "я" * 1000, options=["--trace-format", "json"], status=-signal.SIGSEGV)
        failed = [record["call"] for record in trace.objects() if record.get("failed") is True]
        check(failed == ["VipCloseNic", "VipDeregisterMem"], f"{failed} in {trace.lines()}")
    with Trace() as trace:
        traced(tool, trace, "polls", options=["--trace-format", "perfetto"])
        events = json.loads(trace.path.read_text())
        opened = next(event for event in events if event["name"] == "VipOpenNic")
        check(opened["ph"] == "X" and opened["dur"] > 0 and opened["args"]["result"] == "VIP_SUCCESS", opened)
        check(events[0]["ph"] == "M" and events[0]["args"]["name"].endswith("viaduct_traced polls"), events[0])


def test_vi_port_reads_every_format(tool):
    for form in "text", "json", "perfetto":
        with Trace() as trace:
            traced(tool, trace, "polls", options=["--trace-format", form])
            source = pathlib.Path(__file__).with_name("traced.c")
            said = run([TOOLS / "vi-port", "scan", "--json", "--trace", trace.path, source]).stdout
            report = json.loads(said)["trace"]
            counts = {function["name"]: function["calls"] for function in report["functions"] if function["calls"]}
            check(counts == {"VipCQDone": 2 * ROUNDS + 1, "VipCreateCQ": 2, "VipDestroyCQ": 2, "VipCloseNic": 1,
                             "VipOpenNic": 1}, f"{form}: {counts}")
            check(report["not_in_sources"] == [], report)


def test_summary(tool):
    said = tool.run("--quiet", "--summary", TRACED, "polls").stderr.splitlines()
    rows = {line.split()[-1]: line.split() for line in said}
    check(rows["VipCQDone"][4] == str(2 * ROUNDS + 1), f"{said}")
    check(rows["total"][3] == str(2 * ROUNDS + 1 + 6), f"{said}")
    times = [float(row[1]) for name, row in rows.items() if name.startswith("Vip")]
    check(times == sorted(times, reverse=True), f"not sorted: {said}")
    rows = {line.split()[-1]: line.split() for line in
            tool.run("--quiet", "--summary", TRACED, "errors").stderr.splitlines()}
    check(rows["VipDestroyCQ"][4:6] == ["1", "1"], f"no error: {rows}")
    with Trace() as trace:  # both
        check("VipCQDone" in traced(tool, trace, "polls", options=["--summary"]).stderr, "no summary")
        check("VipOpenNic" in trace.calls(), "no trace")


def test_a_killed_program_leaves_its_last_call(tool):
    for form in "text", "json", "perfetto":
        with Trace() as trace:
            with Running([tool.path, "--quiet", f"--trace={trace.path}", "--summary", "--trace-format", form, TRACED,
                          "wait"]) as program:
                program.wait_for("waiting")
                child = children_of(program.process.pid)[0]
                await_wait(child)
                os.kill(child, signal.SIGKILL)
                said = program.finish(-signal.SIGKILL)
            check("VipQueryNic" in said, f"no summary: {said}")
            if form == "perfetto":
                last = json.loads(trace.path.read_text())[-2]
                check(last["name"] == "VipConnectWait" and last["args"]["unfinished"] is True, last)
                continue
            end, last = trace.lines()[-1], trace.lines()[-2]
            if form == "json":
                last = json.loads(last)
                check(last["call"] == "VipConnectWait" and last["unfinished"] is True, last)
                check(last["args"]["LocalAddr"]["Discriminator"] == b"nobody".hex(), last)
            else:
                check(end.endswith("+++ killed by SIGKILL +++"), end)
                check("VipConnectWait(NicHandle=nic#1, " in last and "<unfinished after " in last, last)
                check("times=5" in trace.path.read_text(), "the polls before the wait are missing")


def test_a_killed_program_leaves_its_polls(tool):
    with Trace() as trace:
        with Running([tool.path, "--quiet", f"--trace={trace.path}", TRACED, "poll"]) as program:
            program.wait_for("polling")
            os.kill(children_of(program.process.pid)[0], signal.SIGKILL)
            program.finish(-signal.SIGKILL)
        polls = trace.lines()[-2]
        check(int(re.search(r"VipCQDone\(CQHandle=cq#1\) = VIP_NOT_DONE, times=(\d+) ", polls)[1]) >= 10, polls)


def children_of(pid):
    path = pathlib.Path(f"/proc/{pid}/task/{pid}/children")
    return [int(word) for word in path.read_text().split()]


def await_wait(pid):
    """Waits until the program sleeps in its last call."""
    while pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "S":
        os.sched_yield()


def test_signals_are_passed_on(tool):
    with Trace() as trace:
        with Running([tool.path, "--quiet", f"--trace={trace.path}", TRACED, "wait"]) as program:
            program.wait_for("waiting")
            program.process.send_signal(signal.SIGTERM)
            program.finish(-signal.SIGTERM)
        check(trace.lines()[-1].endswith("killed by SIGTERM +++"), trace.lines()[-1])


def test_signals_of_the_kernel_are_passed_on(tool):
    """Those that it sends to the first process of a session, or to the one that set an alarm."""
    command = [os.path.abspath(tool.path), "--quiet", "--summary"]
    with Terminal([*command, "sh", "-c", "echo ready; exec sleep 1000"], 80) as terminal:
        terminal.read_until("ready")
        with open(os.devnull) as nothing:
            os.dup2(nothing.fileno(), terminal.fd)  # hangs up
        check(terminal.process.wait(PATIENCE_S) == -signal.SIGHUP, terminal.process.returncode)
    set_alarm = """import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
signal.setitimer(signal.ITIMER_REAL, 1e-6)
while signal.SIGALRM not in signal.sigpending(): pass
os.execv(sys.argv[1], sys.argv[1:])"""
    await_alarm = "import signal; signal.sigwait([signal.SIGALRM])"
    run([sys.executable, "-c", set_alarm, *command, sys.executable, "-c", await_alarm])


def test_a_crash_shows_the_call(tool):
    with Trace() as trace:
        traced(tool, trace, "wild", status=-signal.SIGSEGV)
        text = trace.path.read_text()
        check(re.search(r"VipCloseNic\(NicHandle=nic#\d\) = VIP_INVALID_PARAMETER ! <", text), text)
        check("VipCreateVi(NicHandle=nic#1, ViAttribs=0x10, SendCQHandle=NULL, RecvCQHandle=NULL <unfin" in text, text)
        check(text.endswith("killed by SIGSEGV +++\n"), text)


def test_forks_and_threads(tool):
    with Trace() as trace:
        traced(tool, trace, "fork")
        records = trace.records()
        pids = {record[1] for record in records}
        check(len(pids) == 2, pids)
        check(trace.calls() == ["VipOpenNic"] * 2 + ["VipCloseNic"] * 2, trace.calls())
        parent = records[0][1]
        check([record[6] for record in records if record[1] != parent][0] ==
              f"started {TRACED} fork (forked from {parent})", trace.lines())
    with Trace() as trace:
        traced(tool, trace, "threads")
        records = trace.records()
        check(len({record[2] for record in records if record[3] == "VipCreateCQ"}) == 4, "not four threads")
        check(trace.calls().count("VipCreateCQ") == trace.calls().count("VipDestroyCQ") == 4 * ROUNDS, "calls are lost")
        names = {name for record in records if record[3] == "VipCreateCQ" for name in re.findall(r"cq#\d+", record[4])}
        check(len(names) == 4 * ROUNDS, f"{len(names)} names")


def test_cancelled_threads(tool):
    """The tracer adds no cancellation point, not even where it writes polls when the thread ends."""
    with Trace() as trace:
        said = traced(tool, trace, "cancel").stdout
        check(said == "done\n", said)
        check(trace.calls() == ["VipOpenNic", "VipCreateCQ", "VipCQDone"], trace.lines())


def test_programs_that_execute_others(tool):
    with Trace() as trace:
        traced(tool, trace, "exec")
        events = [record[6] for record in trace.records() if record[6]]
        check(len(events) == 3, events)
        check([record[5] for record in trace.records() if record[3] == "VipCQDone"][0] == "VIP_NOT_DONE, times=2",
              "the polls before execve() are lost")
    with Trace() as trace:
        tool.run("--quiet", f"--trace={trace.path}", "sh", "-c", f"{TRACED} errors; exec {TRACED} errors")
        check(trace.calls() == ["VipOpenNic", "VipDestroyCQ", "VipCloseNic"] * 2, trace.calls())


def test_closed_descriptors(tool):
    """A program that closes the descriptor of the trace and uses its number does not get the trace in its file."""
    with Trace() as trace:
        victim = trace.path.with_name("victim")
        traced(tool, trace, "close", str(victim))
        check(victim.read_bytes() == b"", f"the program's file has the trace: {victim.read_bytes()[:200]}")
        check(trace.calls() == ["VipOpenNic", "VipCloseNic"] * 2, trace.calls())


def test_daemons(tool):
    """When vi-run has ended, nobody can open the trace again."""
    with Trace() as trace:
        victim = trace.path.with_name("victim")
        program = subprocess.Popen([tool.path, "--quiet", f"--trace={trace.path}", TRACED, "daemon", str(victim)],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        check(program.wait(PATIENCE_S) == 0, program.returncode)
        said = program.communicate(timeout=PATIENCE_S)
        check(said == ("done\n", "vi-run: cannot write the trace: No such file or directory; "
                       "the program goes on untraced\n"), said)
        check(victim.read_bytes() == b"", f"the program's file has the trace: {victim.read_bytes()[:200]}")
        check(trace.calls() == ["VipOpenNic", "VipCloseNic"], trace.calls())


def test_the_program_notices_nothing(tool):
    for mode in "polls", "threads", "errors", "fork":
        with Trace() as trace:
            check(traced(tool, trace, mode).stdout == "done\n", mode)


def test_traces_that_cannot_be_written(tool):
    with Trace() as trace:
        result = tool.run("--quiet", f"--trace={trace.path}/no/such", TRACED, "polls")
        check(result.stdout == "done\n" and result.stderr.count("\n") == 1
              and "No such file or directory; the program runs untraced" in result.stderr, f"{result}")
        for mode in "threads", "fork", "exec":
            result = tool.run("--quiet", "--trace=/dev/full", TRACED, mode)
            check(result.stdout == "done\n" and result.stderr.count("\n") == 1, f"{mode}: {result}")
            check("cannot write the trace: No space left on device; the program goes on untraced" in result.stderr,
                  result.stderr)


def test_memory_that_cannot_be_shared(tool):
    command = ["sh", "-c", f"ulimit -f 4; exec {tool.path} --quiet --trace echo done"]
    result = run(command)
    check(result.stdout == "done\n", f"{result}")
    check(result.stderr.count("\n") == 1 and "cannot trace: File too large" in result.stderr, result.stderr)


def test_closed_pipe(tool):
    for options in "--trace", "--trace=/dev/stderr":
        program = subprocess.Popen([tool.path, "--quiet", options, TRACED, "threads"], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        program.stderr.close()
        check(program.communicate(timeout=PATIENCE_S)[0] == "done\n" and program.returncode == 0, program.returncode)


def test_trace_to_a_pipe(tool):
    said = tool.run("--quiet", "--trace", TRACED, "polls").stderr
    check("VipOpenNic" in said and "exited with 0" in said, said)


def test_trace_to_the_file_of_standard_error(tool):
    """Nothing overwrites anything, although the tracer opens the file again."""
    with Trace() as trace, open(trace.path, "w") as file:
        script = 'echo before >&2; exec "$0" --quiet --trace "$1" polls'
        subprocess.run(["sh", "-c", script, tool.path, TRACED], stdout=file, stderr=file, check=True)
        lines = trace.lines()
    check(lines[0] == "before" and "+++ started" in lines[1] and "exited with 0" in lines[-1], f"{lines}")
    check("done" in lines and any("VipOpenNic" in line for line in lines), f"{lines}")


def test_stock_libraries(tool):
    """Traced, but not replaced."""
    stock = BUILD / "tests/conformance/rpma/stock/peer"
    if not stock.exists():
        return
    with Trace() as trace:
        script = f"{stock} >/dev/null 2>&1; echo $LD_LIBRARY_PATH"
        said = tool.run("--stock", f"--trace={trace.path}", "sh", "-c", script)
        check(said.stdout == "\n" and said.stderr == "", f"{said}")
        text = trace.path.read_text()
        check("rpma_utils_get_ibv_context" in text or "rpma_peer_new" in text, text)


def test_bad_options(tool):
    tool.refuses([
        (["--trace", "--trace-format", "xml", "x"], "unknown trace format 'xml': choose one of text, json, perfetto"),
        (["--trace-format", "json", "true"], "--trace-format is for --trace"),
        (["--dry-run", "--trace", "true"], "cannot be used together"),
        (["--dry-run", "--summary", "true"], "cannot be used together"),
    ])


if __name__ == "__main__":
    finish(dict(globals()), Tool("VI_RUN"))
