#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""interop.py [--trace VI_RUN] PROGRAM SERVER_LIBRARY CLIENT_LIBRARY [SERVER_CONF CLIENT_CONF]: runs PROGRAM as the
server on host 2 and as the client on host 1, with different libraries. The libraries are given as directories of shared
libraries and, for DAT, a dat.conf for each side. With --trace, vi-run traces both, and the traces must contain each
function of the API that PROGRAM is linked with.

For the guest of tests/vm. The exit status is 77, for "skipped", if there is no RDMA device."""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ADDRESS, PORT = "10.0.0.2", "7230"
NO_DEVICE = 77
FOR_FAILURES = {"dat_strerror", "rpma_err_2str"}  # called only if another call fails


def start(command, role, library, configuration, **streams):
    environment = {**os.environ, "LD_LIBRARY_PATH": library, "DAT_OVERRIDE": configuration, "VIADUCT_BACKEND": "verbs"}
    return subprocess.Popen([*command, role, ADDRESS, PORT, library], env=environment, text=True, **streams)


def run(client_command, server_command, options):
    """Returns whether both succeed."""
    server_conf, client_conf = options.configurations or ("", "")
    with start(server_command, "server", options.server_library, server_conf, stdout=subprocess.PIPE) as server:
        for line in server.stdout:
            print(line, end="", flush=True)
            if line == "listening\n":
                break
        else:
            return False
        with start(client_command, "client", options.client_library, client_conf) as client:
            client.wait()
        if client.returncode != 0:
            server.kill()
        server.wait()
    print(f"the client ends with {client.returncode}, the server with {server.returncode}")
    return (client.returncode, server.returncode) == (0, 0)


def functions_of(program):
    symbols = subprocess.run(["nm", "-D", "--undefined-only", program], check=True, text=True, stdout=subprocess.PIPE)
    return set(re.findall(r"\b(?:rpma|dat)_\w+", symbols.stdout)) - FOR_FAILURES


def run_traced(options):
    with tempfile.TemporaryDirectory() as directory:
        traces = [pathlib.Path(directory, role) for role in ("client", "server")]
        commands = [[options.trace, "--stock", "--quiet", f"--trace={trace}", options.program] for trace in traces]
        if not run(*commands, options):
            return False
        texts = [trace.read_text(encoding="utf-8") for trace in traces]
    missing = {name for name in functions_of(options.program) if not any(f"{name}(" in text for text in texts)}
    for text in texts:
        print(text if missing else f"{text.count(chr(10))} lines of trace")
    print("not in the traces:", *sorted(missing))
    return not missing and all("exited with 0" in text for text in texts)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--trace", metavar="VI_RUN")
    parser.add_argument("program")
    parser.add_argument("server_library")
    parser.add_argument("client_library")
    parser.add_argument("configurations", nargs="*")
    options = parser.parse_args()
    if not os.path.isdir("/sys/class/infiniband") or not os.listdir("/sys/class/infiniband"):
        print("no RDMA device")
        return NO_DEVICE
    passed = run_traced(options) if options.trace else run([options.program], [options.program], options)
    return int(not passed)


if __name__ == "__main__":
    sys.exit(main())
