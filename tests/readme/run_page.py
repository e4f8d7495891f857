#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs the commands of a page in order, as a reader would, and compares what they print.

    run_page.py PAGE PREFIX SOURCES

Commands are the lines of ```console blocks that begin with `$ `. All run in one shell, in an empty directory. The lines
after a command are what it prints on both outputs; `[...]` stands for anything. $HOME/viaduct is PREFIX, and
$HOME/src/viaduct is SOURCES. The port 7471 is replaced by one that is free.
"""
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile

PORT = "7471"
MARK = "@@ command"
TIMEOUT = 100


def free_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def steps(page: str) -> list[tuple[str, str]]:
    """Returns the commands, each with what it prints."""
    lines = "\n".join(re.findall(r"^```console\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)).splitlines()
    found: list[tuple[str, list[str]]] = []
    for line in filter(None, lines):
        if line.startswith("$ "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return [(command, "\n".join(output)) for command, output in found]


def matches(expected: str, actual: str) -> bool:
    pattern = ".*".join(map(re.escape, expected.split("[...]")))
    return re.fullmatch(pattern, actual, re.DOTALL) is not None


def run(commands: list[str], directory: str, environment: dict[str, str]) -> list[tuple[str, str]]:
    """Returns what each command that was begun printed, and its exit status, which is empty if it did not end."""
    script = "".join(f"echo '{MARK}'\n{command}\nstatus=$?; echo \"{MARK} $status\"; [ $status = 0 ] || exit\n"
                     for command in commands)
    output = pathlib.Path(directory, "output")
    with output.open("w") as file, subprocess.Popen(["bash", "-c", script], cwd=directory + "/empty", env=environment,
                                                    stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT,
                                                    start_new_session=True) as shell:
        try:
            shell.wait(TIMEOUT)
        except subprocess.TimeoutExpired:
            print(f"the commands take longer than {TIMEOUT} s")
        finally:
            try:
                os.killpg(shell.pid, signal.SIGKILL)  # also servers that still wait
            except ProcessLookupError:
                pass
    found = []
    for part in output.read_text().split(f"{MARK}\n")[1:]:
        text, _, status = part.partition(f"{MARK} ")
        found.append((text.rstrip("\n"), status.strip()))
    return found


def main() -> int:
    page, prefix, sources = map(pathlib.Path, sys.argv[1:])
    port = free_port()
    wanted = steps(page.read_text().replace(PORT, port))
    assert len(wanted) > 5, f"{page} has {len(wanted)} commands"
    with tempfile.TemporaryDirectory() as directory:
        home = pathlib.Path(directory, "home")
        for link, target in ("viaduct", prefix), ("src/viaduct", sources):
            (home / link).parent.mkdir(parents=True, exist_ok=True)
            (home / link).symlink_to(target.resolve())
        pathlib.Path(directory, "empty").mkdir()
        environment = {name: value for name, value in os.environ.items() if not name.startswith("VIADUCT_")}
        environment |= {"HOME": str(home), "LC_ALL": "C.UTF-8"}
        done = run([command for command, _ in wanted], directory, environment)
    for (command, expected), (actual, status) in zip(wanted, done):
        if status != "0" or not matches(expected, actual):
            print(f"$ {command}\n{actual}\n-- status {status or 'none: it did not end'}; the page says:\n{expected}")
            return 1
    print(f"{len(done)} of {len(wanted)} commands did what the page says")
    return 0 if len(done) == len(wanted) else 1


if __name__ == "__main__":
    sys.exit(main())
