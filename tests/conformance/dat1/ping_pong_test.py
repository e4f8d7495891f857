#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""ping_pong_test.py PROGRAM: runs the ping-pong of DAT 1.2 in two processes, with small and with large messages.

CONFORMANCE_IA names the adapter; the default is viaduct-lo.
"""
import os
import subprocess
import sys

LENGTHS = (1, 4096, 300000)


def play(program, rounds, length):
    adapter = os.environ.get("CONFORMANCE_IA", "viaduct-lo")
    qualifier = str(61000 + os.getpid() % 4500)  # above those of other tests
    command = [program, "-d", adapter, "-q", qualifier, "-n", str(rounds), "-l", str(length)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        announced = server.stdout.readline().split()
        if announced[:2] != ["listening", "at"]:
            return [server.wait(timeout=30)]
        client = subprocess.run([*command, announced[2]], timeout=100, check=False)
        return [client.returncode, server.wait(timeout=30)]
    finally:
        server.kill()


def main():
    patient = int(os.environ.get("CONFORMANCE_PATIENCE", "1")) > 1  # an emulated machine
    codes = [play(sys.argv[1], 5 if patient else 300, length) for length in LENGTHS]
    print("exit codes of the client, then of the server, for each length:", *codes)
    return any(code for pair in codes for code in pair) or any(len(pair) != 2 for pair in codes)


sys.exit(main())
