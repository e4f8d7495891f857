#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs the commands of README.md, as a reader would, with an installed tree.

    run_readme.py PREFIX SOURCES

Each ```sh block is a script that has to succeed. What it takes for granted, such as a program of the reader or a server
on another host, is below. All are run in one directory, with PREFIX as $HOME/viaduct and free ports. The exit status is
77, for "skipped", if a block was left out because something is missing here.
"""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

from run_page import free_port

SKIPPED = 77
TIMEOUT = 60
PORTS = "7204", "7471"  # the second is that of vi-ping
# The tests run these themselves, and there is no RDMA device.
LEFT_OUT = "./dev demo", "./dev package", "python3 -m venv", "vi-perf --listen --backend verbs"
DONE_BEFORE = r"(?m)^(\./dev build|cmake --install).*\n"

# vi-ping goes on until the reader stops it.
COMMON = r"""set -e
vi-ping() {
    case " $* " in *" --listen "*) command vi-ping "$@" ;; *) command vi-ping --count 2 "$@" ;; esac
}
until_it_listens() { until ss -ltn | grep -q ":$1"; do sleep 0.1; done }
"""
EXAMPLE = """cp $SOURCES/examples/common.h . && cp $SOURCES/examples/hello.c program.c && rm -f program
sed 's,\\.\\./,,' $SOURCES/examples/{}/end.h > end.h
"""
TRACED = r"""printf '%s\n' '#include <vipl.h>' 'int main(void) { VIP_NIC_HANDLE nic;' \
    '    return VipOpenNic("VINIC", &nic) || VipCloseNic(nic); }' > program.c
cc program.c $(pkg-config --cflags --libs vipl) -o program
"""
# Run before the blocks that begin so, and behind them.
BEFORE = {
    "cc program.c $(pkg-config --cflags --libs dat2)": EXAMPLE.format("dat"),
    "cc program.c $(pkg-config --cflags --libs librpma)": EXAMPLE.format("rpma") + """{
    until [ -x program ]; do sleep 0.1; done
    VIADUCT_CONNECT_RETRY_MS=50000 ./program client 127.0.0.1 7204 "hello, receiver"
} &
""",
    "vi-run --power-cut": "echo true > append.sh\n",
    "vi-run": "vi-run --adapter ib0 dtest -P ib0 & until_it_listens 15828\n" + TRACED,
    # The trace of the block before, which Debian 13 has no dtest for.
    "vi-port": TRACED + """vi-run --trace=calls.txt ./program
mkdir src && cp $SOURCES/examples/hello.c $SOURCES/examples/vipl/end.h src
""",
    "vi-info": "vi-ping --listen 7471 & until vi-info --listeners | grep -q 7471; do sleep 0.1; done\n",
}
BEHIND = {"./dev build": "wait $!\n", "dtest": "wait $!\n", "c++": "./program\n", "export PYTHONPATH": "wait $!\n"}
# What both ends print, whatever their exit status.
PRINTED = {"dtest": ["DAPL Test Complete. PASSED"] * 2}
NEEDED = {"dtest": ("dtest", "ss"), "vi-run": ("dtest", "ss")}


def of(block: str, table: dict):
    return next((value for begin, value in table.items() if block.startswith(begin)), None)


def extract(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)


def joined(blocks: list[str]) -> list[str]:
    """What is run on the second host needs what runs on the first: two blocks in one script."""
    server, client = (block for block in blocks if block.startswith("export VIADUCT_TCP_KEY_FILE"))
    server = re.sub(r"(?m)^(vi-ping --listen [\w -]*\w).*", r"\1 > listening & until grep on listening; do :; done",
                    server)
    client = client.replace("HOST", "$(sed 's/.*on \\(.*\\):.*/\\1/' listening)")
    rest = [block for block in blocks if not block.startswith("export VIADUCT_TCP_KEY_FILE")]
    return [*rest, server + client]


def run(script: str, printed: list[str], directory: pathlib.Path, environment: dict[str, str]) -> str:
    """Returns an empty string, or what went wrong."""
    with subprocess.Popen(["bash", "-c", script], cwd=directory, env=environment, text=True, start_new_session=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as shell:
        timer = f"it takes longer than {TIMEOUT} s"
        try:
            status = shell.wait(TIMEOUT)
            timer = f"status {status}"
        except subprocess.TimeoutExpired:
            status = 1
        try:
            os.killpg(shell.pid, signal.SIGKILL)  # also servers that still wait
        except ProcessLookupError:
            pass
        output, _ = shell.communicate()
    complete = all(output.count(text) == printed.count(text) for text in printed)
    return "" if status == 0 and complete else f"{output}-- {timer}\n"


def main() -> int:
    prefix, sources = (pathlib.Path(name).resolve() for name in sys.argv[1:])
    page = (sources / "README.md").read_text()
    exports, = re.findall(r"(?m)^export PATH=.*\n", page)
    missing = failed = 0
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        (directory / "viaduct").symlink_to(prefix)
        for language, file in ("c", "hello.c"), ("python", "hello.py"), ("cpp", "program.cpp"):
            (directory / file).write_text(extract(page, language)[0])
        environment = {key: value for key, value in os.environ.items() if not key.startswith("VIADUCT_")}
        environment |= {"HOME": name, "SOURCES": str(sources), "LC_ALL": "C.UTF-8", "VIADUCT_BACKEND": "loopback"}
        for block in joined(extract(page, "sh")):
            if block.startswith(LEFT_OUT):
                continue
            if any(not shutil.which(program) for program in of(block, NEEDED) or ()):
                missing += 1
                continue
            script = COMMON + exports + (of(block, BEFORE) or "") + re.sub(DONE_BEFORE, "", block)
            script = script.replace("HOST:SERVICE", "127.0.0.1:7471").replace("./program 127", "./program server 127")
            script += of(block, BEHIND) or ""
            for port in PORTS:
                script = script.replace(port, free_port())
            if problem := run(script, of(block, PRINTED) or [], directory, environment):
                print(f"{block}--\n{problem}")
                failed += 1
    return 1 if failed else SKIPPED if missing else 0


if __name__ == "__main__":
    sys.exit(main())
