#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""interop.py PROGRAM SERVER_LIBRARY CLIENT_LIBRARY [SERVER_CONF CLIENT_CONF]: runs PROGRAM as the server on host 2 and
as the client on host 1, with different libraries. The libraries are given as directories of shared libraries and,
for DAT, a dat.conf for each side.

For the guest of tests/vm. The exit status is 77, for "skipped", if there is no RDMA device."""
import os
import subprocess
import sys

ADDRESS, PORT = "10.0.0.2", "7230"
NO_DEVICE = 77


def start(program, role, library, configuration, **streams):
    environment = {**os.environ, "LD_LIBRARY_PATH": library, "DAT_OVERRIDE": configuration, "VIADUCT_BACKEND": "verbs"}
    return subprocess.Popen([program, role, ADDRESS, PORT, library], env=environment, text=True, **streams)


def main():
    program, server_library, client_library, *configurations = sys.argv[1:]
    server_conf, client_conf = configurations or ("", "")
    if not os.path.isdir("/sys/class/infiniband") or not os.listdir("/sys/class/infiniband"):
        print("no RDMA device")
        return NO_DEVICE
    with start(program, "server", server_library, server_conf, stdout=subprocess.PIPE) as server:
        for line in server.stdout:
            print(line, end="", flush=True)
            if line == "listening\n":
                break
        else:
            return 1
        with start(program, "client", client_library, client_conf) as client:
            client.wait()
        if client.returncode != 0:
            server.kill()
        server.wait()
    print(f"the client ends with {client.returncode}, the server with {server.returncode}")
    return int((client.returncode, server.returncode) != (0, 0))


if __name__ == "__main__":
    sys.exit(main())
