#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs a server of one example with a client of each API, with a short and with a long text.

    run.py PROGRAM SERVER API BUILD SOURCES      BUILD contains the programs, SOURCES the scripts

API lists those of the clients, separated by commas.
"""
import contextlib
import pathlib
import socket
import subprocess
import sys
import tempfile

HOST = "127.0.0.1"
TIMEOUT = 60
# Short enough for one slot of the loopback backend, and too long for it.
TEXTS = ["hello, receiver", "a longer one; " * 250]


BUILD, SOURCES = (pathlib.Path(directory) for directory in sys.argv[4:])


def command(api: str, program: str) -> list[str]:
    if api == "python":
        return ["/usr/bin/python3", str(SOURCES / api / f"{program}.py")]
    return [str(BUILD / api / program)]


class Pair:
    """A server and its clients; each client is given by its API and its arguments."""

    def __init__(self, program: str, server: str) -> None:
        self.program, self.server = program, server

    def run(self, clients: list[tuple[str, list[str]]], server_arguments: list[str]) -> tuple[str, list[str]]:
        """Returns the output of the server and those of the clients."""
        with contextlib.ExitStack() as stack:
            # The port of a socket that others do not get meanwhile. On loopback, it is free for the backend.
            holder = stack.enter_context(socket.socket())
            holder.bind((HOST, 0))
            address = [HOST, str(holder.getsockname()[1])]

            def start(api: str, role: str, arguments: list[str]) -> subprocess.Popen[str]:
                process = subprocess.Popen([*command(api, self.program), role, *address, *arguments],
                                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                stack.callback(process.kill)
                return process

            server = start(self.server, "server", server_arguments)
            ends = [start(api, "client", arguments) for api, arguments in clients]
            outputs = []
            for name, process in zip([f"{api} client" for api, _ in clients] + ["server"], [*ends, server]):
                try:
                    output = process.communicate(timeout=TIMEOUT)[0]
                except subprocess.TimeoutExpired:
                    states = [end.poll() for end in [*ends, server]]
                    for end in [*ends, server]:
                        end.kill()
                    said = [end.communicate()[0] for end in [*ends, server]]
                    raise AssertionError(f"{self.server} server: {name} hangs; clients and server returned {states} and"
                                         f" said {said}") from None
                assert process.returncode == 0, f"{self.server} server: {name} returned {process.returncode}: {output}"
                outputs.append(output)
            return outputs[-1], outputs[:-1]


def hello(pair: Pair, apis: list[str]) -> None:
    for api in apis:
        for text in TEXTS:
            server, (client,) = pair.run([(api, [text])], [])
            assert server == text + "\n", f"{api}: the server printed {server!r}"
            assert client == text + "\n", f"{api}: the client printed {client!r}"


def echo(pair: Pair, apis: list[str]) -> None:
    """All clients at once."""
    for text in TEXTS:
        server, clients = pair.run([(api, [text]) for api in apis], [str(len(apis))])
        assert server == f"{len(apis)} clients\n", f"the server printed {server!r}"
        assert clients == ["100 echoes\n"] * len(apis), f"the clients printed {clients!r}"


def rdma(pair: Pair, apis: list[str]) -> None:
    for api in apis:
        for text in TEXTS:
            server, (client,) = pair.run([(api, [text])], [])
            assert server.rstrip("\0\n") == text, f"{api}: the server printed {server!r}"
            assert client.rstrip("\0\n") == "read from the server", f"{api}: the client printed {client!r}"


def log(pair: Pair, apis: list[str]) -> None:
    """All clients append to the same file."""
    with tempfile.NamedTemporaryFile() as file:
        lines = ""
        for api in apis:
            for text in TEXTS:
                lines += text + "\n"
                server, (client,) = pair.run([(api, [text])], [file.name])
                assert server == lines, f"{api}: the server printed {server!r}"
                assert client == f"{len(lines)} bytes\n", f"{api}: the client printed {client!r}"
                stored = len(lines).to_bytes(8, "little") + lines.encode()
                assert pathlib.Path(file.name).read_bytes().startswith(stored), f"{api}: the file differs"


def main() -> None:
    program, server, clients = sys.argv[1:4]
    {"hello": hello, "echo": echo, "rdma": rdma, "log": log}[program](Pair(program, server), clients.split(","))


if __name__ == "__main__":
    main()
