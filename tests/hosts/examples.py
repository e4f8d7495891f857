#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""examples.py BUILD: builds examples of upstream's librpma with the stock headers and runs them on the two hosts with
our library. RPMA_EXAMPLES is the directory examples/ of a copy of https://github.com/pmem/rpma; without it, the exit
status is 77, for "skipped". CPPFLAGS, CFLAGS and LDFLAGS are used; one example needs protobuf-c."""
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

from hosts import ADDRESSES, FAR, NEAR, Failed, Hosts, Program, await_port, check, enter, skip

SERVICE = 7350
DIRECTORY = "RPMA_EXAMPLES"
HELLO = "common/common-conn.c", "common/common-hello.c"
GPSPM = "common/gpspm/GPSPM_flush.pb-c.c"
# Of each example: its directory, the sources of both ends, those of the server and of the client, libraries, arguments
# of the client, and what the two print.
EXAMPLES = (
    ("05-flush-to-persistent", HELLO, (), ("common/common-utils.c",), [], [],
     r"New value: .", r"Translation: ."),
    ("09-flush-to-persistent-GPSPM", (*HELLO, GPSPM), (), ("common/common-utils.c",), ["-lprotobuf-c"], [],
     r"New value: .", r"Translation: ."),
    ("13-messages-ping-pong-with-srq", ("common/common-conn.c",), ("common/common-epoll.c",),
     ("common/common-messages-ping-pong.c", "common/common-utils.c"), [], [7, 50],
     r"value sent: 57\b", r"value received: 57\b"),
)


def flags(name):
    return shlex.split(os.environ.get(name, ""))


def compile_end(sources, example, end, files, libraries, target):
    command = ["cc", "-std=gnu99", "-D_GNU_SOURCE", f"-I{sources / 'common'}", *flags("CPPFLAGS"), *flags("CFLAGS"),
               sources / example / f"{end}.c", *(sources / file for file in files), *flags("LDFLAGS"),
               "-lrpma", "-libverbs", *libraries, "-o", target]
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False)
    check(done.returncode == 0, f"{example} cannot be built: {done.stdout}")


def run(hosts, library, binaries, arguments, said_by_server, said_by_client):
    settings = {"LD_LIBRARY_PATH": ":".join([str(library), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])])}
    place = ADDRESSES[FAR], SERVICE
    with Program(hosts, FAR, "stdbuf", "-oL", binaries / "server", *place, **settings) as server:
        await_port(server.process, SERVICE)
        said = hosts.run(NEAR, binaries / "client", *place, *arguments, **settings)
        check(re.search(said_by_client, said), f"the client says {said}")
        said = server.finish()
        check(re.search(said_by_server, said), f"the server says {said}")
        check(str(library) in hosts.run(FAR, "ldd", binaries / "server", **settings), "this is not our librpma")


def main():
    if DIRECTORY not in os.environ:
        skip(f"{DIRECTORY} is not set")
    enter()
    sources, library = pathlib.Path(os.environ[DIRECTORY]), pathlib.Path(sys.argv[1]) / "api/rpma"
    with Hosts() as hosts, tempfile.TemporaryDirectory() as directory:
        for example, both, of_server, of_client, libraries, arguments, *said in EXAMPLES:
            binaries = pathlib.Path(directory, example)
            binaries.mkdir()
            for end, files in ("server", of_server), ("client", of_client):
                compile_end(sources, example, end, (*both, *files), libraries, binaries / end)
            run(hosts, library, binaries, arguments, *said)
            print(f"ok {example}", flush=True)


if __name__ == "__main__":
    try:
        main()
    except Failed as failure:
        sys.exit(f"FAILED: {failure}")
