#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Clients of each API with servers of each API: what each end is told in each situation.

pairs.py test CLIENT SERVER [SITUATION]...   runs the situations and compares the words with expected.json
pairs.py page [--write]                      compares docs/migration/pairs.md with expected.json, or writes it

The backend is that of VIADUCT_BACKEND. CONFORMANCE_PATIENCE multiplies the times after which an end is said to hang.
"""
import argparse
import importlib
import itertools
import json
import os
import pathlib
import select
import signal
import socket
import sys
import tempfile
import traceback

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "reasons")]

import expectations  # noqa: E402
import two_ends  # noqa: E402
from ends import PATIENCE_S  # noqa: E402

two_ends.PATIENCE_S = PATIENCE_S

LIMIT_S = 3 * PATIENCE_S  # for a situation
RETRY_S = 3  # how long a client looks for a listener
DIES, HANGS = ["dies"], ["hangs"]


class End:
    """A process with an end of each situation."""

    def __init__(self, api, role, peer, wire, others):
        self.name = f"{role}, {api}"
        near, far = socket.socketpair()
        self.log = tempfile.TemporaryFile()
        self.pid = os.fork()
        if self.pid == 0:
            for other in (near, *others):
                other.close()
            self._live(api, role, peer, wire, far)
        far.close()
        self.control = near

    def _live(self, api, role, peer, wire, control):
        status = 1
        try:
            os.dup2(self.log.fileno(), 2)
            os.environ["VIADUCT_LOG"] = "info"
            os.environ["VIADUCT_CONNECT_RETRY_MS"] = str(1000 * RETRY_S)  # VIPL servers listen a moment later
            from situations import SITUATIONS
            kind = importlib.import_module(f"{api}_end").End
            for line in control.makefile():
                name, service = line.split()
                words = getattr(SITUATIONS[name], role)(kind, two_ends.Wire(wire), int(service), peer)
                control.sendall(f"{json.dumps(words)}\n".encode())
            status = 0
        except BaseException:  # the driver must not continue here
            os.write(2, traceback.format_exc().encode())
        finally:
            os._exit(status)

    def begin(self, name, service):
        self.control.sendall(f"{name} {service}\n".encode())

    def words(self):
        """The words of the situation."""
        text = b""
        while not text.endswith(b"\n"):
            if not select.select([self.control], [], [], LIMIT_S)[0]:
                return HANGS
            part = self.control.recv(65536)
            if not part:
                return DIES
            text += part
        return json.loads(text)

    def stop(self):
        """Ends the process, and returns what it wrote."""
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        self.control.close()
        self.log.seek(0)
        return self.log.read().decode(errors="replace")


class Pair:
    """A client and a server that live through situations."""

    def __init__(self, client, server):
        self.apis = client, server
        self.ends = None
        self._services = itertools.count(28200 + os.getpid() % 150 * 30)

    def run(self, name, deadly):
        """Returns the words of the client and of the server, and what they wrote if it may tell why."""
        if self.ends is None:
            self._start()
        service = next(self._services)
        for end in self.ends:
            end.begin(name, service)
        words = [end.words() for end in self.ends]
        if deadly or HANGS in words or DIES in words:
            return words, self.stop()
        return words, ""

    def _start(self):
        near, far = socket.socketpair()
        client, server = self.apis
        self.ends = [End(client, "client", server, near, [far])]
        self.ends.append(End(server, "server", client, far, [near, self.ends[0].control]))
        near.close()
        far.close()

    def stop(self):
        texts = [f"-- {end.name}\n{end.stop()}" for end in self.ends or ()]
        self.ends = None
        return "".join(texts)


def test(client, server, chosen):
    from situations import SITUATIONS
    pair = Pair(client, server)
    failed = 0
    backend = os.environ.get("VIADUCT_BACKEND", "loopback")
    for name, situation in SITUATIONS.items():
        if not situation.applies(client, server) or (chosen and name not in chosen):
            continue
        words, log = pair.run(name, situation.deadly)
        expected = expectations.words(name, client, server, backend)
        ok = expectations.fit(name, client, server, backend, words)
        print(f"{'ok' if ok else 'FAILED'}: {name}: client {words[0]}, server {words[1]}", flush=True)
        if not ok:
            failed += 1
            print(f"    expected: client {expected[0]}, server {expected[1]}\n{log or pair.stop()}", flush=True)
    pair.stop()
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("test")
    run.add_argument("client")
    run.add_argument("server")
    run.add_argument("situation", nargs="*")
    page = commands.add_parser("page")
    page.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    if arguments.command == "page":
        return expectations.check_page(arguments.write)
    if os.environ.get("VIADUCT_BACKEND") == "verbs":
        os.environ.setdefault("VIADUCT_DEVICE", "rxe3")  # which reaches itself: see tests/vm
    return int(test(arguments.client, arguments.server, arguments.situation) != 0)


if __name__ == "__main__":
    sys.exit(main())
