#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs vi-port as a user would: test_vi_port.py PATH_OF_VI_PORT"""
import html.parser
import json
import os
import pathlib
import random
import re
import tempfile
import time

from command_line import Tool, check, finish, run

HELLO = """\
#include <vipl.h>
/* VipOpenNic(nothing) */
int main(void) {
    VIP_NIC_HANDLE nic;
    VIP_RETURN r = VipOpenNic("VINIC", &nic);
    if (r != VIP_SUCCESS) return 1;
    const char *text = "VipCloseNic(nic)";
    VipDisconnect(vi);
    return VipCloseNic(nic) != VIP_SUCCESS;
}
"""


class Files:
    """A directory with files for a test."""

    def __init__(self, **files):
        self.directory = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.directory.name)
        for name, content in files.items():
            self.write(name.replace("__", "."), content)

    def write(self, name, content):
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.directory.cleanup()


def scanned(tool, files, *options, status=0):
    return json.loads(tool.run("scan", "--json", *options, files.path, status=status).stdout)


def uses_of(report):
    return [(use["line"], use["column"], use["name"]) for file in report["files"] for use in file.get("uses", [])]


def rules_of(report):
    return [warning["rule"] for file in report["files"] for warning in file.get("warnings", [])]


def test_information(tool):
    check(tool.run("--version").stdout.startswith("vi-port (Viaduct) "), "version")
    check("Usage: vi-port scan" in tool.run("--help").stdout, "help")


def test_bad_options(tool):
    tool.refuses([
        ([], "no command given"),
        (["jump"], "unknown command 'jump'"),
        (["scan"], "no path given"),
        (["explain"], "no name given"),
        (["rewrite", "--to", "rpma"], "no file given"),
        (["scan", "--to", "mpi", "."], "unknown API 'mpi'"),
        (["scan", "--no-such-option", "."], "no-such-option"),
        (["--%canonical_option%"], "contains %canonical_option%"),
        (["scan", "--parser", "yacc", "."], "unknown parser 'yacc': choose one of auto, libclang, tokenizer"),
        (["scan", "-p", "/no/such", "."], "cannot read /no/such/compile_commands.json"),
        (["scan", "--trace", "/no/such", "."], "cannot use the trace /no/such: No such file"),
        (["explain", "--trace", "x", "VipOpenNic"], "--trace cannot be used with explain"),
        (["scan", "--in-place", "."], "--in-place cannot be used with scan"),
        (["explain", "--html", "x", "VipOpenNic"], "--html cannot be used with explain"),
        (["rewrite", "x.c"], "rewrite needs --to"),
        (["rewrite", "--to", "rpma", "-o", "y", "-i", "x.c"], "cannot be used together"),
        (["rewrite", "--to", "rpma", "-o", "y", "x.c", "z.c"], "--output is for one file"),
    ])
    result = tool.run_redirected(">/dev/full", "explain", "VipOpenNic", status=2)
    check("cannot write to standard output" in result.stderr, result.stderr)


def test_explain(tool):
    text = tool.run("explain", "VipConnectRequest").stdout
    for word in "dat_ep_connect", "rpma_conn_req_connect", "Endpoint::connect", "microseconds":
        check(word in text, f"{word} is not in {text}")
    check("dat_ep_connect" not in tool.run("explain", "--to", "rpma", "VipConnectRequest").stdout, "--to has no effect")
    entries = json.loads(tool.run("explain", "--json", "DAT_EP_FIELD_ALL", "IN").stdout)
    check([entry["name"] for entry in entries] == ["DAT_EP_PARAM", "IN", "IN"], entries)
    check("1.2" in tool.run("explain", "dat_rmr_bind").stdout, "nothing is said of DAT 1.2")
    result = tool.run("explain", "VipConectRequest", "\x1b[2J", status=1)
    check("VipConnectRequest" in result.stderr and "\x1b" not in result.stderr, result.stderr)
    check("name of VIPL 1.0 already" in tool.run("explain", "--to", "vipl", "VipDisconnect").stdout, "nothing is said")
    result = tool.run("explain", "--", "", "-", "Vip", "INOU", status=1)
    check(result.stderr.count("Similar:") == 1 and result.stderr.endswith("Similar: INOUT, IN\n"), result.stderr)


def test_scan_finds_uses_and_nothing_else(tool):
    with Files(hello__c=HELLO) as files:
        report = scanned(tool, files, "--to", "rpma")
        check(uses_of(report) == [(1, 10, "vipl.h"), (4, 5, "VIP_NIC_HANDLE"), (5, 5, "VIP_RETURN"),
                                  (5, 20, "VipOpenNic"), (6, 14, "VIP_SUCCESS"), (8, 5, "VipDisconnect"),
                                  (9, 12, "VipCloseNic"), (9, 32, "VIP_SUCCESS")], uses_of(report))
        check(rules_of(report) == ["device-name"], rules_of(report))
        use = report["files"][0]["uses"][3]
        check(use["counterpart"]["names"] == ["rpma_utils_get_ibv_context", "rpma_peer_new"], use)
        check(report["totals"]["apis"]["vipl"]["estimate"] == {"one to one": 5, "by pattern": 3, "by hand": 0},
              report["totals"])
        check(report["files"][0]["parser"] == "tokenizer", report)
        changes = {change["topic"]: change["changes"] for change in report["changes"]}
        check("Flushes" in changes["Ending a connection"]["order"]["from"], changes)
        check(scanned(tool, files)["changes"] == [], "something changes although nothing is moved")
        text = tool.run("scan", "--to", "rpma", files.path).stdout
        check("hello.c:5:20: VipOpenNic: by pattern: rpma_utils_get_ibv_context" in text, text)
        check("What changes" in text and "hello.c:5:31: warning:" in text, text)
        summary = tool.run("scan", "--summary", files.path).stdout
        check("VIPL 1.0: 8 uses" in summary and "hello.c:5" not in summary, summary)
        summary = scanned(tool, files, "--to", "rpma", "--summary")
        check(summary == {"target": "rpma", "totals": report["totals"]}, summary)


def test_scan_of_all_apis_and_kinds_of_files(tool):
    with Files(a__cpp="auto x = dat_ia_close(ia, DAT_CLOSE_DEFAULT);", b__h="struct rpma_conn *c;",
               Makefile="LIBS = -lgnivipl\n", notes__txt="VipOpenNic(a, b)") as files:
        files.write("sub/c.cc", "#include <librpma.h>\nint f() { return ibv_open_device(d) ? IBV_WC_SUCCESS : 0; }\n")
        files.write(".git/d.c", "VipOpenNic(a, b);")
        report = scanned(tool, files)
        check([use[2] for use in uses_of(report)] ==
              ["dat_ia_close", "DAT_CLOSE_DEFAULT", "rpma_conn", "librpma.h", "IBV_WC_SUCCESS"], report)
        check(sorted(rules_of(report)) == ["link-line", "verbs-call"], rules_of(report))
        check(set(report["totals"]["apis"]) == {"dat", "rpma"}, report["totals"])
        explicit = json.loads(tool.run("scan", "--json", files.path / "notes.txt").stdout)
        check(len(uses_of(explicit)) == 1, explicit)


def test_lines_are_counted(tool):
    with Files(two__c="int x;\nint y;\n", open__c="int x;\nint y;", empty__c="", Makefile="a:\nb:") as files:
        report = scanned(tool, files)
        lines = {pathlib.Path(file["path"]).name: file["lines"] for file in report["files"]}
        check(lines == {"two.c": 2, "open.c": 2, "empty.c": 0, "Makefile": 2}, lines)


def test_names_of_makefiles(tool):
    names = "Makefile.inc", "make.inc", "makefile.linux", "Make.config", "GNUmakefile", "makefile"
    with Files(code__inc="int f() { return VipCloseNic(n); }", Makefile__c="VIP_UINT8 x;") as files:
        for name in names:
            files.write(f"{name}.d/{name}", "LIBS = -lvipl\n")
        report = scanned(tool, files)
        check(len(uses_of(report)) == 2 and rules_of(report) == ["link-line"] * len(names), report)


def test_files_count_once(tool):
    with Files(a__c="VIP_UINT8 x;") as files:
        (files.path / "b.c").symlink_to("a.c")
        (files.path / "d").symlink_to(".")
        paths = [files.path, files.path / "a.c", f"{files.path}/./a.c", files.path / "d/a.c",
                 os.path.relpath(files.path)]
        report = json.loads(tool.run("scan", "--json", *paths).stdout)
        check(len(report["files"]) == 1 and len(uses_of(report)) == 1, report)
        path = report["files"][0]["path"]
        check(len(json.loads(tool.run("scan", "--json", path, path).stdout)["files"]) == 1, path)


def test_headers_are_uses(tool):
    with Files(a__c="#include <vipl.h>\n") as files:
        use, = scanned(tool, files, "--to", "rpma")["files"][0]["uses"]
        check((use["name"], use["use"], use["kind"]) == ("vipl.h", "include", "header"), use)
        check(use["counterpart"]["names"] == ["librpma.h"], use)
        tool.run("rewrite", "--to", "dat", "--in-place", files.path / "a.c")
        check((files.path / "a.c").read_text() == "#include <dat2/udat.h>\n", (files.path / "a.c").read_text())
    check("librpma.h" in tool.run("explain", "--to", "rpma", "dat_error.h").stdout, "headers are not explained")


def test_a_header_of_the_program(tool):
    with Files(a__c='#include "dat.h"\nDAT_UINT32 x;\n', dat__h="#include <dat2/udat.h>\n") as files:
        tool.run("rewrite", "--to", "rpma", "--in-place", files.path / "a.c")
        new = (files.path / "a.c").read_text()
        check('#include "dat.h"\n' in new and "uint32_t x" in new, new)


def test_unknown_names(tool):
    with Files(a__c="int f() { return VipFly(1) + VipWalk(2) + dat_file(3) + rpma_own(4) + dat_ep_fly(5); }",
               b__c="int VipWalk(int x) { return x; }\nstatic int rpma_own(int x) { return x; }\n") as files:
        warnings = [w["text"].split()[0] for file in scanned(tool, files)["files"] for w in file["warnings"]]
        check(warnings == ["VipFly", "dat_ep_fly"], warnings)
    with Files(a__c="int f() { return VIP_SUCCESS + VIP_MINE + VIP_OWN; }", b__h="#define VIP_OWN 1\n") as files:
        warnings = [w["text"].split()[0] for file in scanned(tool, files)["files"] for w in file["warnings"]]
        check(warnings == ["VIP_MINE"], warnings)


def test_calls_of_members(tool):
    source = """\
struct table { int (*VipPostSend)(int); };
int f(struct table *p) { return p->VipPostSend(1); }
"""
    with Files(a__c=source) as files:
        use = scanned(tool, files, "--to", "rpma")["files"][0]["uses"][-1]
        check((use["name"], use["use"], use["line"]) == ("VipPostSend", "member call", 2), use)
        text = tool.run("scan", "--to", "rpma", files.path).stdout
        check("a.c:2:36: VipPostSend (called through a member): by pattern: rpma_send" in text, text)
        tool.run("rewrite", "--to", "rpma", files.path / "a.c")
        new = (files.path / "a.rpma.c").read_text()
        check(new.endswith(source.splitlines()[-1] + "\n") and "TODO(vi-port): VipPostSend" in new, new)


def test_retries(tool):
    client = "int f() { VipConnectRequest(v, a, b, 1, &r); dat_ep_connect(e); rpma_conn_req_new(p); }\n"
    with Files(a__c=client) as files:
        check(rules_of(scanned(tool, files)) == ["no-retry"] * 3, scanned(tool, files))
        files.write("b.c", "x = VIP_NO_MATCH + DAT_CONNECTION_EVENT_NON_PEER_REJECTED + RPMA_CONN_REJECTED;")
        check(rules_of(scanned(tool, files)) == [], scanned(tool, files))


TRACE = """\
12:04:07.571600 [4711] +++ started ./hello +++
12:04:07.571648 [4711] VipOpenNic(DeviceName="VIPL, times=7 <0.1>", NicHandle=nic#1) = VIP_SUCCESS <0.000012>
12:04:07.571830 [4711.4712] VipCQDone(CQHandle=cq#1) = VIP_NOT_DONE, times=60215 <0.004127>
12:04:07.571831 [4711] VipDisconnect(ViHandle=vi#1) = VIP_SUCCESS <0.000012>
12:04:07.571832 [4711] VipDisconnect(ViHandle=vi#2) = VIP_SUCCESS <0.000012>
12:04:07.572100 [4711] dat_ia_openv(ia_name_ptr="x") = DAT_SUCCESS <0.000012>
12:04:07.572101 [4711] dat_extension_op(handle=ep#1, operation=DAT_IB_FETCH_AND_ADD_OP) = DAT_SUCCESS <0.000012>
12:04:07.572102 [4711] dat_extension_op(handle=ep#1, operation=DAT_IB_UD_SEND_OP) = DAT_SUCCESS <0.000012>
12:04:07.572206 [4711] VipConnectWait(NicHandle=nic#1, Timeout=VIP_INFINITE <unfinished after 2.118730 s>
12:04:09.572206 [4711] +++ killed by SIGKILL +++
"""
RAN = """\
void f(void) { VipResizeCQ(cq, 1); VipDisconnect(a); VipDisconnect(b); open = VipOpenNic; close = VipCloseNic; }
int g(void) { return dat_ia_open(n, 8, &e, &ia) || dat_ib_post_fetch_and_add(ep, 1, &l, c, &r, 0); }
"""


def test_trace(tool):
    with Files(ran__c=RAN) as files:
        trace = files.write("trace", TRACE)
        report = scanned(tool, files, "--trace", trace)["trace"]
        functions = [(function["name"], function["calls"], len(function["uses"])) for function in report["functions"]]
        check(functions == [("VipDisconnect", 2, 2), ("VipOpenNic", 1, 1), ("dat_ia_open", 1, 1),
                            ("dat_ib_post_fetch_and_add", 1, 1), ("VipResizeCQ", 0, 1)], functions)
        missing = [(call["name"], call["calls"]) for call in report["not_in_sources"]]
        check(missing == [("VipCQDone", 60215), ("VipConnectWait", 1), ("dat_extension_op(DAT_IB_UD_SEND_OP)", 1)],
              missing)
        text = tool.run("scan", "--to", "rpma", "--trace", trace, files.path).stdout
        order = [text.index(words) for words in ("2  VipDisconnect: one to one: rpma_conn_disconnect", "1  VipOpenNic",
                                                 "Never called", "0  VipResizeCQ", "not in these sources",
                                                 "60215  VipCQDone", "60222 calls in the trace; 1 of 5 functions")]
        check(order == sorted(order), text)
        twice = scanned(tool, files, "--trace", trace, "--trace", trace)["trace"]
        check(twice["functions"][0]["calls"] == 4, twice)
        sarif, page = files.path / "x.sarif", files.path / "x.html"
        tool.run("scan", "--to", "rpma", "--trace", trace, "--sarif", sarif, "--html", page, files.path)
        results = json.loads(sarif.read_text())["runs"][0]["results"]
        check([result["message"]["text"].split(":")[0] for result in results[:2]] == ["VipDisconnect"] * 2, results)
        check(results[0]["properties"]["calls"] == 2, results[0])
        check("Calls in the trace" in page.read_text() and "60215" in page.read_text(), page.read_text())


def test_all_calls_of_an_extension(tool):
    with Files(ran__c="int f(void) { return dat_extension_op(ep, op); }") as files:
        report = scanned(tool, files, "--trace", files.write("trace", TRACE))["trace"]
        check([function["calls"] for function in report["functions"]] == [2], report)
        check(not any("extension" in call["name"] for call in report["not_in_sources"]), report)


def test_bad_traces(tool):
    with Files(ran__c=RAN) as files:
        for content in "", "VipOpenNic(a, b)\n", RAN, b"\0\xff[]] (", "{}\n{\"cat\": 1}\n[\n", "{" * 100000:
            result = tool.run("scan", "--trace", files.write("trace", content), files.path, status=2)
            check("no call in it" in result.stderr, result.stderr)
        lines = [*TRACE.splitlines()[:5], "12:04:07.571832 [47", '{"call": "VipDisconnect", "times": 3, "args": []}',
                 '{"cat']
        report = scanned(tool, files, "--trace", files.write("trace", "\n".join(lines)))["trace"]
        check(report["functions"][0]["name"] == "VipDisconnect" and report["functions"][0]["calls"] == 5, report)


def test_sarif(tool):
    with Files(**{"hello world__c": HELLO}) as files:
        files.write("zero.c", b"\0")
        output = files.path / "x.sarif"
        tool.run("scan", "--to", "dat", "--parser", "tokenizer", "--sarif", output, files.path, status=1)
        sarif = json.loads(output.read_text())
        check(sarif["version"] == "2.1.0" and "sarif-2.1.0" in sarif["$schema"], sarif)
        run, = sarif["runs"]
        rules = {rule["id"] for rule in run["tool"]["driver"]["rules"]}
        check(len(run["results"]) == 9, run["results"])
        for result in run["results"]:
            check(result["ruleId"] in rules and result["message"]["text"], result)
            check(result["level"] in ("note", "warning"), result)
            place = result["locations"][0]["physicalLocation"]
            check(place["artifactLocation"]["uri"].endswith("hello%20world.c"), place)
            check(place["region"]["startLine"] >= 1 and place["region"]["startColumn"] >= 1, place)
        check([artifact["properties"]["parser"] for artifact in run["artifacts"]] == ["tokenizer"], run["artifacts"])
        check("zero.c" in run["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"], run)


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.text, self.tags = "", []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.text += data


def test_html(tool):
    with Files(**{"<b>&__c": HELLO + "// <script>alert(1)</script>\n"}) as files:
        output = files.path / "x.html"
        tool.run("scan", "--to", "rpma", "--html", output, files.path)
        page = Page(output.read_text())
        check("What changes" in page.text and "Ending a connection" in page.text, page.text)
        check("rpma_utils_get_ibv_context" in page.text and "<script>alert(1)" in page.text, page.text)
        names = {tag for tag, _ in page.tags}
        check(not names & {"script", "b>&.c", "link", "img", "iframe"}, names)
        check(not any({"src", "href"} & set(attributes) for _, attributes in page.tags), "the page needs other files")


def test_html_is_utf8(tool):
    with Files() as files:
        files.write(os.fsdecode(b"\xe4.c"), b"/* \xfc \xc3\xbc */ int x = VIP_SUCCESS;\n")
        output = files.path / "x.html"
        tool.run("scan", "--json", "--html", output, files.path)
        text = output.read_bytes().decode()
        check("/* \ufffd \xfc */" in text and "\ufffd.c" in text, text)


def test_output_that_cannot_be_written(tool):
    with Files(hello__c=HELLO) as files:
        for option in "--sarif", "--html":
            result = tool.run("scan", option, "/dev/full", files.path, status=2)
            check("cannot write /dev/full: No space left on device" in result.stderr, result.stderr)
            result = tool.run("scan", option, files.path / "no/such/directory", files.path, status=2)
            check("directory: No such file or directory" in result.stderr, result.stderr)
        output = files.path / "no/such.c"
        result = tool.run("rewrite", "--to", "rpma", "--output", output, files.path / "hello.c", status=2)
        check(f"cannot write {output}: No such file or directory" in result.stderr, result.stderr)


def test_reports_are_written_as_a_whole(tool):
    with Files(src__c=HELLO * 1000) as files:
        for option in "--sarif", "--html":
            report = files.write("report", "before")
            report.chmod(0o640)
            command = [tool.path, "scan", "--parser", "tokenizer", "--summary", option, report, files.path / "src.c"]
            done = run(["sh", "-c", 'ulimit -f 10; exec "$0" "$@"', *command], status=2)
            check("cannot write" in done.stderr and report.read_text() == "before", done)
            run(command)
            check(report.read_text() != "before" and report.stat().st_mode & 0o777 == 0o640, "no new report")
            report.unlink()
            run(["sh", "-c", 'umask 027; exec "$0" "$@"', *command])
            check(report.stat().st_mode & 0o777 == 0o640, f"mode {report.stat().st_mode:o}")
        check({path.name for path in files.path.iterdir()} == {"src.c", "report"}, list(files.path.iterdir()))


def test_output_that_is_a_source(tool):
    with Files(a__c=HELLO, b__c=HELLO, Makefile="all:\n") as files:
        for option in "--sarif", "--html":
            for name in "a.c", "Makefile":
                content = (files.path / name).read_text()
                result = tool.run("scan", option, files.path / name, files.path, status=2)
                check("is a source" in result.stderr and (files.path / name).read_text() == content, result.stderr)
        output = files.path / "x"
        for page in output, files.path / ".." / files.path.name / "x":
            result = tool.run("scan", "--sarif", output, "--html", page, files.path, status=2)
            check("need different files" in result.stderr and not output.exists(), result.stderr)
        command = ["rewrite", "--to", "rpma", "--force"]
        tool.run(*command, "-o", files.path / "a.c", files.path / "a.c", status=2)
        (files.path / "a.rpma.c").write_text(HELLO)
        tool.run(*command, files.path / "b.c", files.path / "a.rpma.c", files.path / "a.c", status=2)
        check((files.path / "a.rpma.c").read_text() == HELLO, "a source was overwritten")
        check(not (files.path / "b.rpma.c").exists(), "changed files although the command is wrong")


def test_text_of_sources_in_reports(tool):
    with Files() as files:
        files.write("a.c", 'const char *name = "nic\x1b[2J"; VipOpenNic("\x1b[2J[a](b){0}", &nic);\n')
        text = tool.run("scan", files.path).stdout
        check("\x1b" not in text and "?[2J" in text, repr(text))
        output = files.path / "x.sarif"
        tool.run("scan", "--to", "rpma", "--sarif", output, files.path)
        message = json.loads(output.read_text())["runs"][0]["results"][-1]["message"]["text"]
        check("\x1b\\[2J\\[a\\](b){{0}}" in message, message)


def test_compile_commands_that_are_no_file(tool):
    with Files(a__c=HELLO) as files:
        os.mkfifo(files.path / "compile_commands.json")
        for parser in "auto", "tokenizer":
            scanned(tool, files, "--parser", parser)
        result = tool.run("scan", "-p", files.path, files.path, status=2)
        check("cannot read" in result.stderr, result.stderr)
        (files.path / "compile_commands.json").unlink()
        (files.path / "compile_commands.json").touch()
        os.truncate(files.path / "compile_commands.json", 1 << 40)
        scanned(tool, files)


def test_directory_that_is_read_in_part(tool):
    with Files() as files:
        files.write("a/" * 40 + "a.c", HELLO)
        done = run(["sh", "-c", 'ulimit -n 20; exec "$0" "$@"', tool.path, "scan", files.path], status=1)
        check("skipped: Too many open files" in done.stdout, done)


def test_hostile_files(tool):
    with Files() as files:
        files.write("binary.c", b"VipOpenNic(a, b);\0\1\2")
        files.write("utf16.c", "VipOpenNic(a, b);".encode("utf-16"))
        files.write("empty.c", "")
        files.write("latin1.c", b"/* \xfc */ int \xe4; x = VipCloseNic(n); /* \xff")
        files.write("open.c", 'x = VipCloseNic(n); "never closed\n R"(never closed /* #if 0 \\')
        files.write("kr.c", "main(argc, argv)\nint argc;\nchar **argv;\n{\n\tVipCloseNic(n);\n}\n")
        files.write("deep.c", "#if 0\n" * 20000 + "VipCloseNic(n);" + "(" * 100000 + "{" * 100000)
        files.write("long.c", "VipOpenNic(" * 100000 + "a" * 1000000)
        (files.path / "huge.c").touch()
        os.truncate(files.path / "huge.c", 1 << 40)
        os.mkfifo(files.path / "fifo.c")
        (files.path / "broken.c").symlink_to("nowhere.c")
        (files.path / "loop").symlink_to(".")
        (files.path / "loop.c").symlink_to("loop.c")
        files.write("strange\n\x1b[2J.c", "x = VipCloseNic(n);")
        skipped = {"binary.c", "utf16.c", "huge.c", "fifo.c", "broken.c", "loop.c"}
        if os.geteuid() != 0:  # root reads everything
            files.write("secret.c", "VipCloseNic(n);").chmod(0)
            (files.path / "closed").mkdir(mode=0)
            skipped |= {"secret.c", "closed"}
            check("closed: skipped" in tool.run("scan", files.path / "closed", status=1).stdout, "a closed directory")
        report = scanned(tool, files, "--to", "rpma", status=1)
        found = {pathlib.Path(file["path"]).name for file in report["files"] if "skipped" in file}
        check(found == skipped, f"skipped {found}")
        by_name = {pathlib.Path(file["path"]).name: file for file in report["files"]}
        for name in "latin1.c", "open.c", "kr.c", "strange\n\x1b[2J.c":
            check([use["name"] for use in by_name[name]["uses"]] == ["VipCloseNic"], by_name[name])
        check(by_name["deep.c"]["uses"] == [] and by_name["deep.c"]["disabled_uses"] == 1, by_name["deep.c"])
        text = tool.run("scan", files.path, status=1).stdout
        check("\x1b" not in text, "a file name controls the terminal")
        tool.run("scan", "--html", files.path / "x.html", "--sarif", files.path / "x.sarif", files.path, status=1)
        if os.geteuid() != 0:
            (files.path / "closed").chmod(0o700)
    check("No such file" in tool.run("scan", "/no/such/file.c", status=1).stdout, "a missing file is not reported")


def test_sources_of_random_bytes(tool):
    random.seed(1)
    pieces = [b"VipOpenNic", b"(", b")", b"\"", b"'", b"/*", b"*/", b"//", b"\\\n", b"\n", b"#if 0\n", b"#endif\n",
              b"R\"(", b"dat_ep_free(ep)", b"{",
              b"}", b"VIP_PVOID p;", b"\xff", b"#define A(x) #x\n", b"&", b"="]
    with Files() as files:
        for number in range(200):
            files.write(f"{number}.c", b"".join(random.choices(pieces, k=200)))
        scanned(tool, files, "--to", "rpma")
        tool.run("rewrite", "--to", "rpma", "--in-place", *sorted(files.path.glob("*.c")))


HEADER = """\
typedef void *VIP_NIC_HANDLE;
typedef enum { VIP_SUCCESS, VIP_NOT_DONE } VIP_RETURN;
enum { VIP_STATE_IDLE };
VIP_RETURN VipOpenNic(const char *name, VIP_NIC_HANDLE *nic);
VIP_RETURN VipCloseNic(VIP_NIC_HANDLE nic);
"""
# What a compiler knows: 3 names are the program's own, and a macro makes a call that nothing spells.
SHADOWS = """\
#include "nic/vipl.h"
static int rpma_read(int x) { return x; }
int f(int VIP_STATE_IDLE) {
    int VIP_NOT_DONE = rpma_read(VIP_STATE_IDLE);
    return VIP_NOT_DONE == VIP_SUCCESS;
}
#define V(name) Vip##name
#define CLOSE VipCloseNic(nic)
#ifdef OTHER
VIP_RETURN h(void) { return VIP_NOT_DONE; }
#endif
VIP_RETURN g(VIP_NIC_HANDLE nic) { if (V(OpenNic)("x", &nic) != VIP_SUCCESS) return VIP_SUCCESS; return CLOSE; }
"""


def test_libclang(tool):
    with Files(shadows__c=SHADOWS) as files:
        files.write("nic/vipl.h", HEADER)
        by_tokens = scanned(tool, files, "--parser", "tokenizer")
        by_compiler = scanned(tool, files)
        parsers = [[file["parser"] for file in report["files"]] for report in (by_tokens, by_compiler)]
        check(parsers == [["tokenizer"] * 2, ["libclang"] * 2], parsers)
        found, meant = set(uses_of(by_tokens)), set(uses_of(by_compiler))
        own = {(line, name) for line, _, name in found - meant}
        check(own == {(2, "rpma_read"), (3, "VIP_STATE_IDLE"), (4, "VIP_NOT_DONE"), (4, "rpma_read"),
                      (4, "VIP_STATE_IDLE"), (5, "VIP_NOT_DONE")}, own)
        check(meant - found == {(12, 40, "VipOpenNic")}, meant - found)
        check((10, 29, "VIP_NOT_DONE") in meant, "a name in a part that is not compiled is lost")
        check((8, 15, "VipCloseNic") in meant, "a name in a macro is lost")
        text = tool.run("rewrite", "--to", "rpma", "--json", "--output", files.path / "new.c", files.path / "shadows.c")
        report, = json.loads(text.stdout)
        new = (files.path / "new.c").read_text()
        check(report["parser"] == "libclang" and "static int rpma_read" in new, new)
        check("VipOpenNic" in [todo["name"] for todo in report["todos"]] and "V(OpenNic)" in new, report)


def test_libclang_reads_headers_alone(tool):
    """A header that relies on others declares their structures again."""
    with Files(end__h="int wait_for(struct rpma_cq *queue, enum rpma_conn_event *event);\n") as files:
        file, = scanned(tool, files)["files"]
        names = [use["name"] for use in file["uses"]]
        check(file["parser"] == "libclang" and names == ["rpma_cq", "rpma_conn_event"], file)


def test_libclang_needs_what_compilers_need(tool):
    with Files(**{"src/shadows__c": SHADOWS, "include/nic/vipl__h": HEADER}) as files:
        file = scanned(tool, files)["files"][1]
        check(file["parser"] == "tokenizer" and "nic/vipl.h" in file["parser_reason"], file)
        text = tool.run("scan", files.path).stdout
        check("tokenizer (libclang: line 1: 'nic/vipl.h' file not found)" in text, text)
        command = {"directory": str(files.path / "build"), "file": "../src/shadows.c",
                   "command": "cc -fplugin=evil.so -march=none -DOTHER='1 2' -I ../include -o x -c ../src/shadows.c"}
        for form in command, {**command, "command": "", "arguments": command["command"].split()}:
            files.write("compile_commands.json", json.dumps([1, form]))
            report = scanned(tool, files, "-p", files.path)
            check(report["files"][1]["parser"] == "libclang", report["files"][1])
            check(uses_of(report) == uses_of(scanned(tool, files)), "the file in the scanned directory is not found")
        files.write("compile_commands.json", "[")
        result = tool.run("scan", "-p", files.path, files.path, status=2)
        check("no compilation database" in result.stderr, result.stderr)


def test_libclang_reads_headers_of_cpp(tool):
    header = "namespace n { inline int VipOpenNic() { return 0; } }\nint VipCloseNic(int);\n"
    with Files(a__cpp='#include "a.h"\n', a__h=header, a__inc=header) as files:
        command = {"directory": str(files.path), "file": "a.cpp", "command": "c++ -std=c++20 -c a.cpp"}
        files.write("compile_commands.json", json.dumps([command]))
        for file in scanned(tool, files)["files"][1:]:
            names = [use["name"] for use in file["uses"]]
            check(file["parser"] == "libclang" and names == ["VipCloseNic"], file)


def test_libclang_survives(tool):
    """Sources that make compilers fail or work forever are read by the tokenizer. A lower limit than that of vi-port
    holds, and is reached soon."""
    bomb = "".join(f"#define A{i} A{i + 1} A{i + 1}\n" for i in range(40)) + "#define A40 1;\nint x = A0\n"
    sources = {"bomb.c": bomb, "deep.c": "int x = " + "(" * 100000 + ";", "endless.c": '#include "endless.c"\n',
               "zero.c": '#include "/dev/zero"\n', "wait.c": '#include "fifo"\n'}
    with Files() as files:
        os.mkfifo(files.path / "fifo")
        for name, text in sources.items():
            files.write(name, "int VipCloseNic(int); int f(int nic) { return VipCloseNic(nic); }\n" + text)
        done = run(["prlimit", "--cpu=1", tool.path, "scan", "--json", files.path])
        for file in json.loads(done.stdout)["files"]:
            check(file["parser"] == "tokenizer" and len(file["uses"]) == 2, file)


def test_rewrite_to_core(tool):
    with Files(hello__c=HELLO) as files:
        text = tool.run("rewrite", "--to", "core", files.path / "hello.c").stdout
        check("hello.core.c: 0 replaced, 8 left to do" in text, text)
        new = (files.path / "hello.core.c").read_text()
        comment = re.compile(r" */\* TODO\(vi-port\).*?\*/\n", re.S)
        check("Endpoint::disconnect" in new and comment.sub("", new) == HELLO, new)


def test_speed(tool):
    lines = HELLO.replace("main", "f").count("\n")
    with Files(many__c=HELLO * (100000 // lines + 1)) as files:
        start = time.monotonic()
        text = tool.run("scan", "--to", "rpma", "--summary", "--parser", "tokenizer", files.path).stdout
        seconds = time.monotonic() - start
        print(f"{seconds:.2f} s: {text.splitlines()[-1]}")
        check("VIPL 1.0: 80008 uses" in text and seconds < 10, f"{seconds} s: {text}")


def warnings_of(tool, path, rule, *options):
    files = json.loads(tool.run("scan", "--json", *options, path).stdout)["files"]
    return [f"{pathlib.Path(file['path']).name}:{warning['line']}: {warning['text']}"
            for file in files for warning in file["warnings"] if warning["rule"] == rule]


def test_names_of_devices_behind_macros(tool):
    with Files(via__h='#define NIC (OTHER)\n#define OTHER "qlogic0"\nstatic const char device[] = "ib9";\n',
               a__c='#include "via.h"\nint f(void) { return VipOpenNic(NIC, &nic); }\n',
               b__c="int f(void) { return dat_ia_open((DAT_NAME_PTR)device, 8, &evd, &ia); }\n",
               c__c="#define NAME getenv(x)\n"
                    "int f(char *name) { return VipOpenNic(name, &n) + VipOpenNic(NAME, &n); }\n",
               d__cpp='const char *mine = "clan9";\nint f() { return vipl.VipOpenNic(mine, &nic); }\n') as files:
        found = warnings_of(tool, files.path, "device-name")
        check(found == ['a.c:2: VipOpenNic opens NIC, "qlogic0", which is compiled into the program',
                        'b.c:1: dat_ia_open opens device, "ib9", which is compiled into the program',
                        'd.cpp:2: VipOpenNic opens mine, "clan9", which is compiled into the program'], str(found))


def test_a_copy_of_a_header(tool):
    header = (pathlib.Path(__file__).parents[2] / "api/vipl/include/vipl.h").read_text()
    own = "#include <dat/udat.h>\nstruct mine { DAT_EP_HANDLE ep; };\nvoid f(void);\n"
    with Files(include__vipl__h="", a__c='#include "vipl.h"\nVIP_NIC_HANDLE nic;\n', dat__h=own) as files:
        files.write("vipl.h", header)
        report = json.loads(tool.run("scan", "--json", "--to", "rpma", files.path).stdout)
        check(report["totals"]["apis"]["vipl"]["uses"] == 2 and report["totals"]["apis"]["dat"]["uses"] == 2, report)
        copies = [pathlib.Path(file["path"]).name for file in report["files"] if "copied_header_of" in file]
        check(copies == ["vipl.h"], str(copies))
        text = tool.run("scan", files.path).stdout
        check("vipl.h: a copy of a header of VIPL 1.0, whose names are not counted" in text, text)


def test_from_dat_1_2(tool):
    program = ("#include <dat{}/udat.h>\nint f(void) {{\n return dat_cr_reject(cr) + dat_pz_free(pz)\n"
               " + dat_cr_reject(cr); }}\n")
    with Files(a__c=program.format(""), b__h="DAT_EVENT event;\n") as files:
        found = warnings_of(tool, files.path, "dat-1.2", "--to", "dat")
        check(found == ["a.c:3: dat_cr_reject is different in DAT 2.0. In DAT 1.2: Takes no private data.",
                        "b.h:1: DAT_EVENT is different in DAT 2.0. In DAT 1.2: Smaller: without event_extension_data."],
              str(found))
        check(not warnings_of(tool, files.path, "dat-1.2", "--to", "rpma"), "to another API")
        files.write("a.c", program.format("2"))
        check(not warnings_of(tool, files.path, "dat-1.2", "--to", "dat"), "a program of DAT 2.0")


def test_decisions(tool):
    """They are counted once, however often they are used and by whatever of the names that have one counterpart."""
    source = "VIP_RETURN f(void) { VipPostSend(v, d, h); VipPostSend(v, e, h); VipOpenNic(n, &c); VipNSInit(c, 0); }\n"
    with Files(a__c=source, b__c="int g(void) { VipPostSend(v, d, h); VIP_DESCRIPTOR d, e; }\n") as files:
        report = json.loads(tool.run("scan", "--json", "--to", "rpma", files.path).stdout)
        vipl = report["totals"]["apis"]["vipl"]
        check(vipl["estimate"] == {"one to one": 1, "by pattern": 6, "by hand": 0}, str(vipl))
        check(vipl["decisions"] == {"by pattern": 4, "by hand": 0}, str(vipl))
        text = tool.run("scan", "--summary", "--to", "rpma", files.path).stdout
        check("7 uses: 1 one to one, 6 by pattern; to decide: 4 by pattern" in text, text)


def test_rewrite(tool):
    with Files(hello__c=HELLO) as files:
        source, output = files.path / "hello.c", files.path / "hello.rpma.c"
        text = tool.run("rewrite", "--to", "rpma", source).stdout
        check("hello.rpma.c: 3 replaced, 5 left to do" in text, text)
        check(source.read_text() == HELLO, "the source was changed")
        new = output.read_text()
        check("rpma_conn_disconnect(vi)) */" in new and "VipDisconnect(vi);" in new, new)
        check("int r = VipOpenNic" in new, new)
        check("#include <librpma.h>" in new and new.count("TODO(vi-port)") == 5, new)
        result = tool.run("rewrite", "--to", "rpma", source, status=2)
        check("exists" in result.stderr, result.stderr)
        report, = json.loads(tool.run("rewrite", "--to", "rpma", "--force", "--json", source).stdout)
        check([todo["name"] for todo in report["todos"]] == ["vipl.h", "VIP_NIC_HANDLE", "VipOpenNic", "VipDisconnect",
                                                             "VipCloseNic"], report)
        result = tool.run("rewrite", "--to", "rpma", "--force", "-o", source, source, status=2)
        check("--in-place" in result.stderr and source.read_text() == HELLO, result.stderr)
        tool.run("rewrite", "--to", "rpma", "--in-place", source)
        check(source.read_text() == new, source.read_text())
        check((files.path / "hello.c.orig").read_text() == HELLO, "the copy is wrong")
        tool.run("rewrite", "--to", "rpma", "--in-place", source, status=2)
        check(source.read_text() == new, "changed although the copy exists")
        result = tool.run("rewrite", "--to", "rpma", files.path / "none.c", files.write("b.c", b"\0"), status=1)
        check("none.c" in result.stderr and "a binary file" in result.stderr, result.stderr)
        check(not (files.path / "none.rpma.c").exists(), "a file was made of nothing")


def test_rewrite_to_standard_output(tool):
    with Files(hello__c=HELLO) as files:
        tool.run("rewrite", "--to", "rpma", files.path / "hello.c")
        result = tool.run("rewrite", "--to", "rpma", "-o", "-", files.path / "hello.c")
        check(result.stdout == (files.path / "hello.rpma.c").read_text(), result.stdout)
        check("3 replaced, 5 left to do" in result.stderr, result.stderr)
        result = tool.run("rewrite", "--to", "rpma", "--json", "-o", "-", files.path / "hello.c", status=2)
        check("--json cannot be used with --output -" in result.stderr, result.stderr)


def test_rewrite_of_what_need_not_be_moved(tool):
    with Files(hello__c=HELLO) as files:
        text = tool.run("rewrite", "--to", "vipl", files.path / "hello.c").stdout
        check("hello.vipl.c: unchanged" in text and (files.path / "hello.vipl.c").read_text() == HELLO, text)


def test_rewrite_goes_on(tool):
    with Files(a__c=HELLO, b__c=HELLO, c__c=HELLO) as files:
        files.write("b.rpma.c", "mine")
        paths = [files.path / name for name in ("a.c", "b.c", "c.c")]
        result = tool.run("rewrite", "--to", "rpma", "--json", *paths, status=2)
        reported = [pathlib.Path(report["source"]).name for report in json.loads(result.stdout)]
        check(reported == ["a.c", "c.c"] and "b.rpma.c exists" in result.stderr, result)
        check((files.path / "b.rpma.c").read_text() == "mine", "overwritten")


def test_rewrite_in_place_keeps_the_first_copy(tool):
    with Files(a__c=HELLO) as files:
        source, copy = files.path / "a.c", files.path / "a.c.orig"
        source.chmod(0o640)
        command = ["rewrite", "--to", "rpma", "--in-place", "--force", source]
        tool.run(*command)
        tool.run(*command)
        check(copy.read_text() == HELLO, "the copy is not the first one")
        check(source.stat().st_mode & 0o777 == 0o640, f"mode {source.stat().st_mode:o}")
        check({path.name for path in files.path.iterdir()} == {"a.c", "a.c.orig"}, "files were left")


def test_rewrite_that_cannot_be_written(tool):
    content = HELLO * 1000
    with Files(a__c=content) as files:
        command = [tool.path, "rewrite", "--to", "rpma", "--parser", "tokenizer", "--in-place", files.path / "a.c"]
        done = run(["sh", "-c", 'ulimit -f 10; exec "$0" "$@"', *command], status=2)
        check("cannot write" in done.stderr, done)
        check((files.path / "a.c").read_text() == content, "the source is damaged")
        check([path.name for path in files.path.iterdir()] == ["a.c"], list(files.path.iterdir()))


finish(globals(), Tool("vi-port"))
