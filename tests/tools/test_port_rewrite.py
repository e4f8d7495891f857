#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Rewrites the examples or the conformance programs, and compiles the results:

    test_port_rewrite.py examples|programs VI_PORT COMPILER SOURCE_DIRECTORY LIBRARY...

The programs use every call in every way that C knows, so what compiles afterwards shows that replacements fit. The
examples also work as before: nothing is handed to a call of the other API that this did not make.
"""
import json
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile

WHAT, TOOL, COMPILER, ROOT, LIBRARIES = *sys.argv[1:4], pathlib.Path(sys.argv[4]), sys.argv[5:]
# These need definitions of their build.
LEFT_OUT = {"header_alone.c", "registry.c"}
# Replacements that at least must have been made, so that the test notices if nothing is replaced any more.
LEAST_REPLACED = {("vipl", "rpma"): 400, ("udat", "rpma"): 300, ("dat1", "rpma"): 60,
                  ("vipl", "dat"): 400, ("udat", "vipl"): 300, ("rpma", "dat"): 0, ("rpma", "vipl"): 0}
EXAMPLES = "hello", "echo", "rdma", "log"
LEAST_REPLACED_IN_EXAMPLES = {("vipl", "rpma"): 20, ("vipl", "dat"): 20, ("vipl", "core"): 0,
                              ("dat", "rpma"): 5, ("dat", "vipl"): 5, ("dat", "core"): 0,
                              ("rpma", "dat"): 0, ("rpma", "vipl"): 0, ("rpma", "core"): 0}
PATIENCE_S = 300


# What mistakes in replacements lead to. Nothing else of the programs matters here.
ERRORS = [f"-Werror={fault}" for fault in ("implicit-function-declaration", "incompatible-pointer-types",
                                           "int-conversion", "discarded-qualifiers")]


def compile_fault(sources, *directories, options=("-fsyntax-only",)):
    """Returns what the compiler says about the sources, unless it accepts all of them."""
    include = [f"-I{ROOT / 'api' / api / 'include'}" for api in ("vipl", "udat", "rpma")]
    include += [f"-I{directory}" for directory in directories]
    done = subprocess.run([COMPILER, "-std=gnu11", "-D_GNU_SOURCE", *ERRORS, *include, *sources, *options],
                          capture_output=True, text=True, timeout=PATIENCE_S)
    return "" if done.returncode == 0 else done.stderr


def rewritten(sources, target, *options):
    """Returns the reports of the sources, which one process rewrites: libclang takes long to load."""
    done = subprocess.run([TOOL, "rewrite", "--json", "--to", target, *options, *sources],
                          capture_output=True, text=True, timeout=PATIENCE_S)
    if done.returncode != 0:
        sys.exit(f"{sources[0]} and others: {done.stderr}")
    reports = json.loads(done.stdout)
    if len(reports) != len(sources):
        sys.exit(f"{len(sources)} sources, but reports of {len(reports)}")
    return reports


def outputs_and_replaced(sources, target):
    """Returns the new sources and the number of replacements; checks that the reports and the new sources have the same
    TODOs, and that rewriting the new sources changes nothing."""
    reports = rewritten(sources, target)
    outputs = [pathlib.Path(report["output"]) for report in reports]
    for report, output in zip(reports, outputs):
        listed = {todo["name"] for todo in report["todos"]}
        written = set(re.findall(r"TODO\(vi-port\):\s+([\w.]+):", output.read_text()))
        if listed != written:
            sys.exit(f"{output}: the report and the comments differ: {listed ^ written}")
    for output, again in zip(outputs, rewritten(outputs, target, "--parser", "tokenizer")):
        if pathlib.Path(again["output"]).read_text() != output.read_text():
            sys.exit(f"{output}: rewriting the result again changes it")
    return outputs, sum(report["replaced"] for report in reports)


def fault_of_hello(program):
    """Lets two processes of a program talk."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        command = [program, "{}", "127.0.0.1", str(probe.getsockname()[1])]
    server, client = ([word.format(role) for word in map(str, command)] for role in ("server", "client"))
    with subprocess.Popen(server, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as waiting:
        try:
            done = subprocess.run([*client, "a message"], capture_output=True, text=True, timeout=PATIENCE_S)
            said, _ = waiting.communicate(timeout=PATIENCE_S)
        finally:
            waiting.kill()
    works = done.stdout == said == "a message\n"
    return "" if works else f"{program}: {done.stdout}{done.stderr}, the server: {said}"


def faults_of_examples(tree):
    shutil.copytree(ROOT / "examples", tree / "examples")
    for (api, target), least in LEAST_REPLACED_IN_EXAMPLES.items():
        end = tree / "examples" / api / "end.h"
        (output,), replaced = outputs_and_replaced([end], target)
        print(f"example {api} to {target}: {replaced} replacements")
        if replaced < least:
            yield "these are too few"
        directory = tree / "examples" / f"{api}_to_{target}"
        directory.mkdir()
        output.rename(directory / "end.h")
        if fault := compile_fault([tree / "examples" / f"{program}.c" for program in EXAMPLES], directory):
            yield fault
        hello = directory / "hello"
        search = [f"-Wl,-rpath,{pathlib.Path(library).parent}" for library in LIBRARIES]
        if fault := compile_fault([tree / "examples/hello.c"], directory,
                                  options=("-o", hello, *search, *LIBRARIES)) or fault_of_hello(hello):
            yield fault


def faults_of_programs(tree):
    for name in "conformance", "support":
        shutil.copytree(ROOT / "tests" / name, tree / "tests" / name)
    for (suite, target), least in LEAST_REPLACED.items():
        sources = [path for path in sorted((tree / "tests/conformance" / suite).glob("*.c"))
                   if path.name not in LEFT_OUT and path.name.count(".") == 1]
        outputs, replaced = outputs_and_replaced(sources, target)
        print(f"{suite} to {target}: {len(sources)} programs, {replaced} replacements")
        if replaced < least or len(sources) < 10:
            yield "these are too few"
        if fault := compile_fault(outputs, tree / "tests/conformance" / suite, tree):
            yield fault


def main():
    with tempfile.TemporaryDirectory() as directory:
        find = {"examples": faults_of_examples, "programs": faults_of_programs}[WHAT]
        faults = list(find(pathlib.Path(directory)))
    print(*faults, sep="\n")
    return 1 if faults else 0


sys.exit(main())
