# SPDX-License-Identifier: BSD-3-Clause
"""The fixture power_cuts, with the remote log of examples/log.c: right, and with one flush left out."""
import os
import pathlib
import re

import pytest
from viaduct import pytest_plugin

BUILD = pathlib.Path(os.environ.get("BUILD", "build/release"))
CUTS = int(os.environ.get("VIADUCT_TEST_CUTS", "60"))
# A server and a client that appends a line. All words of the lines differ, because the log may have the remains of a
# line that was lost.
APPEND = """
line=
for i in 01 02 03 04 05 06 07 08 09 10 11 12; do line="$line$i-$$ "; done
"$0" server 127.0.0.1 $1 "$2" >/dev/null &
"$0" client 127.0.0.1 $1 "$line" && wait $!
"""
WRONG = "(not a line|the log ends within)"
LINE = re.compile(r"(?:\d\d-(\d+) )(?:\d\d-\1 ){11}")
FULL = 1 << 16

pytestmark = pytest.mark.skipif(os.environ.get("VIADUCT_BACKEND") == "verbs",
                                reason="the target's CPU does not see what peers write with RDMA devices")


class Log:
    """The file of a log, with the check of all that its program promises."""

    def __init__(self, path, program, service):
        self.path = path
        path.touch()
        self.command = ["sh", "-c", APPEND, BUILD / "tests/python" / program, str(service), path]

    def prepare(self):
        """Starts a new log when the old one is long, which takes time to check."""
        if int.from_bytes(self.path.read_bytes()[:8], "little") > FULL:
            self.path.write_bytes(b"")

    def check(self, cut):
        content = self.path.read_bytes()
        tail = int.from_bytes(content[:8], "little")
        lines = content[8:8 + tail].split(b"\n")
        assert lines.pop() == b"", "the log ends within a line"
        for line in lines:
            assert LINE.fullmatch(line.decode()), f"not a line that was appended: {line}"
        if confirmed := re.search(r"^(\d+) bytes$", cut.output, re.MULTILINE):
            assert tail >= int(confirmed[1]), "the log lacks a line that the client has reported"


@pytest.fixture
def log(tmp_path, free_service):
    return lambda program: Log(tmp_path / "log", program, free_service())


@pytest.mark.parametrize("program", ["log_rpma", "log_vipl"])
def test_the_right_log_survives(power_cuts, log, program):
    right = log(program)
    power_cuts(right.command, right.check, prepare=right.prepare, cuts=CUTS)


@pytest.mark.parametrize("program", ["log_rpma", "log_vipl"])
def test_a_flush_that_was_left_out_is_found(power_cuts, log, program):
    wrong = log(f"{program}_wrong")
    with pytest.raises(pytest_plugin.PowerCutFailed, match=rf"--power-cut=\d+:\d+: AssertionError: {WRONG}"):
        power_cuts(wrong.command, wrong.check)


def test_over_tcp(power_cuts, log, monkeypatch):
    monkeypatch.setenv("VIADUCT_BACKEND", "tcp")
    right = log("log_rpma")
    power_cuts(right.command, right.check, cuts=20)
    wrong = log("log_rpma_wrong")
    with pytest.raises(pytest_plugin.PowerCutFailed, match=WRONG):
        power_cuts(wrong.command, wrong.check)


def test_a_program_without_flushes(power_cuts):
    with pytest.raises(pytest_plugin.PowerCutFailed, match="does it flush to persistence"):
        power_cuts(["true"], lambda cut: None)


def test_a_program_that_fails(power_cuts):
    with pytest.raises(pytest_plugin.PowerCutFailed, match="returned 3: a reason"):
        power_cuts(["sh", "-c", "echo a reason >&2; exit 3"], lambda cut: None)


def test_a_check_that_fails_without_a_cut(power_cuts):
    def check(cut):
        assert cut.output == "two\n" and cut.was_cut, "neither"
    with pytest.raises(pytest_plugin.PowerCutFailed, match="AssertionError: neither"):
        power_cuts(["echo", "one"], check)
