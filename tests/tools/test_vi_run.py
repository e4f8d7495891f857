#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs programs with vi-run as a user would: test_vi_run.py PATH_OF_VI_RUN"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from command_line import Terminal, Tool, check, finish

BUILD = pathlib.Path(sys.argv[1]).resolve().parents[1]
LIBRARIES = {"vipl": "libvipl.so.1", "udat": "libdat2.so.2", "dat1": "libdat.so.1", "rpma": "librpma.so.0"}
PROGRAMS = {"vipl": "disconnect", "udat": "cno", "dat1": "ping_pong", "rpma": "peer"}
SHOW = ("echo LIBRARIES=$LD_LIBRARY_PATH CONF=$DAT_OVERRIDE ON=$VIADUCT_BACKEND,$VIADUCT_DEVICE,$VIADUCT_LOG "
        "FAULTS=$VIADUCT_FAULTS")
SOURCE = """
#include <stdio.h>
extern int {function}();
int main(int count, char** words) {{ if (count > 9) {function}(); puts(words[1]); return 7; }}
"""


class Scratch:
    """A directory of the test, which is also the directory for generated files."""

    def __enter__(self):
        self.temporary = tempfile.TemporaryDirectory()
        os.environ["XDG_RUNTIME_DIR"] = self.temporary.name
        return pathlib.Path(self.temporary.name)

    def __exit__(self, *_):
        del os.environ["XDG_RUNTIME_DIR"]
        self.temporary.cleanup()


def compile_program(directory, function, *options):
    source = directory / "program.c"
    source.write_text(SOURCE.format(function=function))
    program = directory / "program"
    subprocess.run(["cc", "-o", program, source, *options], check=True)
    return str(program)


def fake_library(directory, name, function):
    """A library with the name of another one."""
    source = directory / "library.c"
    source.write_text(f"int {function}(void) {{ return 0; }}")
    directory.mkdir(exist_ok=True)
    library = directory / name
    subprocess.run(["cc", "-shared", "-fPIC", f"-Wl,-soname,{name}", "-o", library, source], check=True)
    return library


def test_information(tool):
    check(tool.run("--version").stdout.startswith("vi-run (Viaduct) "), "version")
    check("--adapter" in tool.run("--help").stdout, "help")


def test_bad_options(tool):
    tool.refuses([
        ([], "no program given"),
        (["--no-such-option", "true"], "no-such-option"),
        (["--backend", "ether", "true"], "unknown backend 'ether': choose one of loopback, verbs, tcp"),
        (["--log", "loud", "true"], "unknown log level 'loud': choose one of error, warning, info, debug"),
        (["--faults", "drop=1%;loss=1%", "true"], "unknown fault 'loss=1%': expected a list of delay=50us+-20us (ns, "),
        (["--device", "abc", "true"], "unknown device 'abc': choose one of viaduct-lo0, "),
        (["--adapter", "", "true"], "bad adapter name ''"),
        (["--adapter", "x" * 256, "true"], "expected 1 to 255 characters"),
        (["--backend"], "backend"),
        (["--power-cut=0", "true"], "bad power cut '0': expected N, N:SEED or random:SEED"),
        (["--power-cut=random", "true"], "bad power cut 'random'"),
        (["--power-cut=1", "--trace", "true"], "--power-cut and --trace cannot be used together"),
        (["--power-cut=1", "--stock", "true"], "--power-cut and --stock cannot be used together"),
        (["--check=sends,luck", "true"], "unknown check 'luck': expected 1, or a list of sends, receives, "),
        (["--check", "--summary", "true"], "--check and --summary cannot be used together"),
    ])


# A device that the process ends with.
UNCLOSED = """
import ctypes, sys
sys.path.insert(0, sys.argv[1])
from viaduct import core
device = core.Device()
ctypes.CDLL(None).exit(int(sys.argv[2]))
"""


def test_checks(tool):
    done = tool.run("--check", "sh", "-c", "exit 7", status=7)
    check("vi-run: the checker has found nothing\n" in done.stderr, done.stderr)
    tool.run("--check", "sh", "-c", "kill -TERM $$", status=-15)
    program = "/usr/bin/python3", "-c", UNCLOSED, str(BUILD / "bindings/python")
    done = tool.run("--check=objects", *program, "5", status=91)
    check("check objects: the process ends with 1 device (created at " in done.stderr, done.stderr)
    check("vi-run: the checker has found 1 mistake: 1 objects\n" in done.stderr, done.stderr)
    tool.run("--check=sends", *program, "5", status=5)
    with tempfile.TemporaryDirectory() as name:
        file = pathlib.Path(name, "file")
        environment = {"VIADUCT_CHECK": "1", "VIADUCT_CHECK_FILE": str(file)}
        subprocess.run(program + ("0",), check=True, env=os.environ | environment, stderr=subprocess.DEVNULL)
        check(json.loads(file.read_text())["check"] == "objects", file.read_text())
        # A relative name is that of a file in the directory of vi-run.
        file.unlink()
        moving = ["/usr/bin/python3", "-c", "import os\nos.chdir('/')" + UNCLOSED, *program[3:], "0"]
        done = subprocess.run([os.path.abspath(tool.path), "--check=objects", *moving], cwd=name, capture_output=True,
                              text=True, env=os.environ | {"VIADUCT_CHECK_FILE": "file"})
        check(done.returncode == 91 and file.read_text().startswith('{"check":"objects"'), done)
        refused = subprocess.run([tool.path, "--check", "true"], capture_output=True, text=True,
                                 env=os.environ | {"VIADUCT_CHECK_FILE": f"{name}/missing/file"})
        check(refused.returncode == 2 and "missing/file': No such file" in refused.stderr, refused)
    settings = tool.run("--check=order", "--dry-run").stdout
    check("export VIADUCT_CHECK='order'" in settings and "libviaduct-release.so" in settings, settings)


PAGE, PAGES = 4096, 3
FLUSHES = """
import mmap, os, sys
sys.path.insert(0, sys.argv[1])
from viaduct import core
with open(sys.argv[2], "r+b") as file:
    memory = mmap.mmap(file.fileno(), 3 * 4096)
with core.Device() as device:
    region = device.register(memory)
    for i in range(int(sys.argv[3])):
        memory[i * 4096:(i + 1) * 4096] = b"x" * 4096
        memory.flush(i * 4096, 4096)
        print(i + 1, "flushed", flush=True)
"""


def test_power_cuts(tool):
    """The program makes its pages persistent with msync, one after the other."""
    with tempfile.TemporaryDirectory() as name:
        file = pathlib.Path(name, "file")
        program = ["/usr/bin/python3", "-c", FLUSHES, str(BUILD / "bindings/python"), str(file)]
        for seed in range(12):
            file.write_bytes(bytes(PAGES * PAGE))
            cut = tool.run(f"--power-cut=2:{seed}", *program, "3", status=90)
            check("vi-run: power cut at flush " in cut.stderr, cut.stderr)
            pages = [file.read_bytes()[i * PAGE:(i + 1) * PAGE] for i in range(PAGES)]
            flushed = cut.stdout.count("flushed")
            check(1 <= flushed <= 2, cut.stdout)
            check(pages[:flushed] == flushed * [b"x" * PAGE], f"{flushed} pages: {pages}")
            for page in pages[flushed:]:
                check({page[i:i + 8] for i in range(0, PAGE, 8)} <= {bytes(8), b"x" * 8}, f"words: {page}")
        file.write_bytes(bytes(PAGES * PAGE))
        tool.run("--power-cut=2", *program, "1", status=0)  # ends before
        seed = tool.run("--power-cut", "true").stderr
        check("vi-run: --power-cut=random:" in seed, seed)
        settings = tool.run("--power-cut=7", "--dry-run").stdout
        check("export VIADUCT_PMEM='strict:7'" in settings and "libviaduct-msync.so" in settings, settings)


def test_power_cuts_on_a_terminal(tool):
    """The program reads from it, and then what started vi-run."""
    command = '"$0" -q --power-cut=1 sh -c "read word; echo first \\$word"; read word; echo second $word'
    with Terminal(["/bin/sh", "-c", command, os.path.abspath(tool.path)], 80) as terminal:
        terminal.write("a\n")
        terminal.read_until("first a")
        terminal.write("b\n")
        terminal.read_until("second b")


def test_power_cuts_in_the_background(tool):
    """The shell gives vi-run the terminal after the program has tried to read from it, or before."""
    with Scratch() as directory:
        script, go = directory / "script", directory / "go"
        os.mkfifo(go)
        for before_reading, said in (":", "Stopped"), (f"read go <{go}", "started"):
            script.write_text(f"echo started; {before_reading}; read word; echo got $word\n")
            with Terminal(["/bin/bash", "--norc", "--noediting", "-bi"], 200) as terminal:
                terminal.write(f"{os.path.abspath(tool.path)} -q --power-cut=1 sh {script} &\n")
                terminal.read_until(said)
                terminal.write("fg\n")
                if said == "started":
                    while os.tcgetpgrp(terminal.fd) == terminal.process.pid:
                        os.sched_yield()
                    go.write_text("\n")
                terminal.write("word\n")
                terminal.read_until("got word")


def test_what_power_cuts_end(tool):
    check(tool.run("--power-cut=1", "sh", "-c", "exit 7", status=7), "its status")
    tool.run("--power-cut=1", "sh", "-c", "kill -TERM $$", status=128 + 15)
    # The pipe ends when nobody has it any more.
    tool.run("--power-cut=1", "sh", "-c", "sleep 1000 & exit 0")
    with subprocess.Popen([tool.path, "--power-cut=1", "sh", "-c", "echo here; sleep 1000; echo"], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        process.stdout.readline()
        process.terminate()
        check(process.communicate()[0] == "", "what it wrote after a signal")
        check(process.returncode == 128 + 15, f"status {process.returncode}")


def test_programs_that_cannot_run(tool):
    check("no program 'no-such-program' in PATH" in tool.run("no-such-program", status=127).stderr, "PATH")
    check("'./nothing': there is no such file" in tool.run("./nothing", status=127).stderr, "file")
    check("it is not executable" in tool.run("/etc/passwd", status=126).stderr, "permission")
    check(": File name too long" in tool.run("./" + "x" * 300, status=126).stderr, "another reason")


def test_path_as_execvp(tool):
    """An empty directory in PATH is the current one."""
    with Scratch() as directory:
        program = directory / "of-this-directory"
        program.write_text("#!/bin/sh\necho here\n")
        program.chmod(0o755)
        for path, found in (("/nonexistent:", True), ("", True), (":/nonexistent", True), ("/nonexistent", False)):
            done = subprocess.run([os.path.abspath(tool.path), "-q", program.name], cwd=directory,
                                  env=os.environ | {"PATH": path}, capture_output=True, text=True)
            check((done.stdout, done.returncode) == (("here\n", 0) if found else ("", 127)), f"{path}: {done}")


def test_started_with_signals_ignored(tool):
    """As by some daemons; the program gets them as they were."""
    show = "grep -E '^Sig(Ign|Blk)' /proc/self/status"
    ignore = ("import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN);"
              "os.execv(sys.argv[1], sys.argv[1:])")
    start = [sys.executable, "-c", ignore]
    expected = subprocess.run([*start, "/bin/sh", "-c", show], stdout=subprocess.PIPE, text=True).stdout
    for option in "--summary", "--check", "--power-cut=1", "--trace=/dev/null":
        done = subprocess.run([*start, os.path.abspath(tool.path), "-q", option, "sh", "-c", show],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=60)
        check(done.returncode == 0 and done.stdout == expected, f"{option}: {done}, not {expected}")


def test_arguments_belong_to_the_program(tool):
    for options in [], ["--"], ["-q"], ["--log=debug", "--quiet"], ["--log", "debug"], ["-I", "viaduct-lo0", "--"], \
            ["-qI", "viaduct-lo0"], ["-qIviaduct-lo0"]:
        said = tool.run(*options, "echo", "--log", "-V", "--", "a b").stdout
        check(said == "--log -V -- a b\n", f"{options}: {said}")
    tool.run("sh", "-c", "exit 42", status=42)
    tool.run("sh", "-c", "kill -9 $$", status=-9)


def test_settings_reach_the_program(tool):
    said = tool.run("--backend", "loopback", "--device", "viaduct-lo2", "--log", "info", "sh", "-c", SHOW).stdout
    check(f"LIBRARIES={BUILD}/api/vipl:" in said, said)
    check("CONF= ON=loopback,viaduct-lo2,info FAULTS=\n" in said, said)
    said = tool.run("--faults", "drop=1%,delay=2us±1us;seed=7", "sh", "-c", SHOW).stdout
    check("FAULTS=drop=1%,delay=2us±1us;seed=7\n" in said, said)
    os.environ["LD_LIBRARY_PATH"] = "/one:/two"
    try:
        check(f"{BUILD}/core:/one:/two CONF" in tool.run("sh", "-c", SHOW).stdout, "the path of before is gone")
    finally:
        del os.environ["LD_LIBRARY_PATH"]


def test_dry_run_sets_up_a_shell(tool):
    with Scratch() as scratch:
        options = '--backend loopback --log debug --adapter "it\'s \\$HOME" --dry-run'
        for command in (f'eval "$("$0" {options})"; {SHOW}', f'eval $("$0" {options}); {SHOW}'):
            said = subprocess.run(["sh", "-c", command, tool.path], capture_output=True, text=True, check=True).stdout
            check(f"LIBRARIES={BUILD}/api/vipl:" in said and "ON=loopback,,debug" in said, said)
            conf = pathlib.Path(said.split("CONF=")[1].split()[0])
            check(conf.parent == scratch / "viaduct", conf)
            check("\"it's $HOME\" u2.0 nonthreadsafe default " in conf.read_text(), conf.read_text())
        check(len(list((scratch / "viaduct").iterdir())) == 1, "several files for the same adapters")
        conf.unlink()
        conf.mkdir()
        done = subprocess.run(["sh", "-c", f'"$0" {options}', tool.path], capture_output=True, text=True, check=False)
        check(done.returncode == 2 and f"cannot write '{conf}': Is a directory" in done.stderr, done)


def test_adapters_of_any_name(tool):
    if not shutil.which("dtestx"):
        return
    with Scratch():
        for name in "ofa-v2-ib0", "with blank", 'quote"d':
            said = tool.run("--backend", "loopback", "--adapter", "other", "--adapter", name,
                            "dtestx", "-q", "-P", name).stdout
            check(f"Open_Query: {name}" in said, said)


def test_directory_of_another_user(tool):
    with Scratch() as scratch:
        (scratch / "viaduct").mkdir()
        (scratch / "viaduct").chmod(0o777)
        result = tool.run("--adapter", "a", "true", status=2)
        check("is not a directory that only this user can write to" in result.stderr, result.stderr)


def test_names_what_it_replaces(tool):
    for api, library in LIBRARIES.items():
        program = BUILD / "tests/conformance" / api / PROGRAMS[api]
        said = tool.run("--dry-run", str(program)).stderr
        check(f"'{program}' runs with " in said and library in said, f"{api}: {said}")
        check(tool.run("--dry-run", "--quiet", str(program)).stderr == "", "not quiet")
    said = tool.run("--dry-run", "/bin/true").stderr
    check("'/bin/true' is linked with none of the libraries" in said, said)


def test_scripts_are_followed(tool):
    with Scratch() as scratch:
        script = scratch / "script"
        for line in "#!/bin/sh", "#! /usr/bin/env sh":
            script.write_text(f"{line}\n{SHOW}\nexit 3\n")
            script.chmod(0o755)
            result = tool.run(str(script), status=3)
            check(f"LIBRARIES={BUILD}" in result.stdout, result.stdout)
            check("sh' is linked with none of the libraries" in result.stderr, result.stderr)
        script.write_text("#!/usr/bin/env -S -u NAME sh\nexit 3\n")
        check("cannot tell which libraries" in tool.run(str(script), status=3).stderr, "an option with a value")


def test_libraries_loaded_later_are_replaced(tool):
    script = "import ctypes; ctypes.CDLL('libdat2.so.2'); print(open('/proc/self/maps').read())"
    check(f"{BUILD}/api/udat/libdat2.so.2" in tool.run("python3", "-c", script).stdout, "another libdat2")


def test_warns_of_what_is_not_replaced(tool):
    with Scratch() as scratch:
        def warning_for(*options, function="dat_strerror"):
            program = compile_program(scratch, function, *options)
            said = tool.run(program, "out", status=7)
            check(said.stdout == "out\n", said.stdout)
            return said.stderr

        other = scratch / "the others"
        other.mkdir()
        stock = fake_library(other, "libdat2.so.2", "dat_strerror")
        check("warning" not in warning_for(stock), "a warning for nothing")
        rpath = f"-Wl,--disable-new-dtags,-rpath,{other}"
        check(f"gets '{stock}': its RPATH '{other}' has precedence" in warning_for(stock, rpath), "RPATH")
        newer = fake_library(other, "libdat2.so.3", "dat_strerror")
        check("libdat2.so.3, a version that this installation does not have" in warning_for(newer, rpath), "version")
        verbs = fake_library(other, "libibverbs.so.9", "ibv_open")
        said = warning_for(verbs, f"-Wl,-rpath,{other}", function="ibv_open")
        check("calls libibverbs.so.9 itself" in said, said)
        check("is linked statically" in warning_for("-static", function="getpid"), "static")


if __name__ == "__main__":
    finish(dict(globals()), Tool("VI_RUN"))
