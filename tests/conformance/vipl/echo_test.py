#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""echo_test.py SERVER CLIENT CLIENTS ITERATIONS: an echo server and several concurrent clients; all must succeed."""
import os
import subprocess
import sys


def main():
    server_program, client_program, count, iterations = sys.argv[1:]
    if int(os.environ.get("CONFORMANCE_PATIENCE", "1")) > 1:  # an emulated machine, where a reply takes milliseconds
        iterations = str(max(1, int(iterations) // 100))
    server = subprocess.Popen([server_program, "--max-clients", count, "--exit-after", count],
                              stdout=subprocess.PIPE, text=True)
    clients = []
    try:
        assert server.stdout.readline() == "listening\n"
        clients = [subprocess.Popen([client_program, "localhost", iterations]) for _ in range(int(count))]
        codes = [client.wait(timeout=500) for client in clients]
        if not any(codes):  # otherwise the server waits for the missing client
            codes.append(server.wait(timeout=30))
    finally:
        for process in [*clients, server]:
            process.kill()
    print("exit codes of the clients, then of the server:", *codes)
    return any(codes)


sys.exit(main())
