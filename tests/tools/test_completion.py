#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Completes command lines with bash: test_completion.py COMPLETION TOOL..."""
import os
import re
import sys

from command_line import check, run

SCRIPT = """
source "$1"
shift
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
complete -p "${1##*/}" >/dev/null || exit
_viaduct "$1" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""


def complete(tool, *words):
    """Returns what the last word may become."""
    done = run(["bash", "-c", SCRIPT, "bash", sys.argv[1], tool, *words])
    check(done.stderr == "", done.stderr)
    return done.stdout.split()


def expect(expected, tool, *words):
    found = complete(tool, *words)
    check(found == expected.split(), f"{words}: {found}")


def test_every_option(tool):
    text = run([tool, "--help"]).stdout
    described = re.findall(r"^  (?:-. \[ )?(--[a-z-]+)", text, re.MULTILINE)
    check(len(described) > 5, text)
    expect(" ".join(described), tool, "--")
    if "--json" in described:
        expect("--json", tool, "--js")
        expect("--json", tool, "localhost", "--js")


def test_values(tool):
    if os.path.basename(tool) == "vi-port":
        expect("scan explain rewrite", tool, "")
        expect("rewrite", tool, "rew")
        expect("rewrite", tool, "--json", "rew")
        expect("", tool, "scan", "rew")  # a file
        expect("vipl dat rpma core", tool, "scan", "--to", "")
        expect("auto libclang tokenizer", tool, "scan", "--parser", "")
        expect("", tool, "scan", "--trace", "")
        expect("scan explain rewrite", tool, "--to", "dat", "")
        expect("scan explain rewrite", tool, "--to", "=", "dat", "")
        return
    if os.path.basename(tool) == "vi-info":
        expect("vipl dat dat1 rpma", tool, "--error", "")
        expect("dat dat1", tool, "-e", "d")
        expect("--json", tool, "--error", "dat", "--js")
        return
    if os.path.basename(tool) == "vi-run":
        expect("", tool, "--adapter", "")
        expect("loopback verbs tcp", tool, "--backend", "")
        expect("error warning info debug", tool, "--log", "=", "")
        expect("text json perfetto", tool, "--trace-format", "")
        expect("", tool, "--trace", "=", "")  # a file
        return
    expect("vipl dat rpma core", tool, "--api", "")
    expect("rpma", tool, "--api", "r")
    expect("rpma", tool, "--api", "=", "r")
    expect("vipl dat rpma core", tool, "--api", "=")
    expect("loopback verbs tcp", tool, "--backend", "")
    if os.path.basename(tool) == "vi-ping":
        expect("send write read", tool, "--op", "")
    if os.path.basename(tool) == "vi-perf":
        expect("send send-immediate", tool, "--op", "se")
        expect("atomic-write", tool, "--op", "a")
        expect("delivery reception unreliable", tool, "--reliability", "")
        expect("latency bandwidth rate connect", tool, "--test", "")
        expect("latency bandwidth rate connect", tool, "-t", "")
        expect("polling blocking", tool, "--mode", "")
    expect("", tool, "--count", "")
    expect("", tool, "-c", "")


def test_programs(tool):
    """The options of vi-run end with the program."""
    if os.path.basename(tool) != "vi-run":
        return
    given = [[], ["--adapter", "ib0"], ["--adapter", "=", "ib0"], ["--backend", "tcp"], ["--log", "info"],
             ["-I", "lo"], ["--trace-format", "json"], ["-q"], ["--summary", "--adapter", "ib0", "--stock"]]
    for options in given:
        check("bash" in complete(tool, *options, "bas"), f"{options}: bash")
        expect("--dry-run", tool, *options, "--dr")
        expect("", tool, *options, "bash", "--dr")
        expect("", tool, *options, "bash", "--log", "in")


def test_hosts(tool):
    if os.path.basename(tool) in ("vi-port", "vi-run"):
        return
    if os.path.basename(tool) == "vi-info":
        for options in [], ["--json"], ["--processes"], ["--error", "dat"], ["localhost"]:
            expect("", tool, *options, "local")
        for option in ["--why"], ["-w"], ["--json", "--why"], ["--why", "="]:
            check("localhost" in complete(tool, *option, "local"), "localhost")
        return
    check("localhost" in complete(tool, "local"), "localhost")
    check("localhost" in complete(tool, "--json", "local"), "localhost")


def test_a_tool_that_fails(tool):
    expect("", os.path.join("/nonexistent", os.path.basename(tool)), "--")


if __name__ == "__main__":
    for path in sys.argv[2:]:
        for test in test_every_option, test_values, test_programs, test_hosts, test_a_tool_that_fails:
            test(path)
            print(f"ok {test.__name__} {os.path.basename(path)}")
