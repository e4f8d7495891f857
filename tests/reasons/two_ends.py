# SPDX-License-Identifier: BSD-3-Clause
"""Runs the two ends of a connection, of any API, and returns what each logs.

An end is a function that gets a Wire. It runs in a process of its own, which must be the one that loads the libraries:
they read VIADUCT_LOG once.
"""
import contextlib
import ctypes
import os
import select
import signal
import socket
import tempfile
import traceback

import pytest

PATIENCE_S = 20
NOBODY = 65534
CLONE_NEWNET = 0x40000000

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="requires the privileges of root")


class Wire:
    """Lets the ends wait for each other."""

    def __init__(self, stream):
        self.stream = stream

    def tell(self, word="go on"):
        """Says a word to the other end, which may have finished."""
        with contextlib.suppress(BrokenPipeError):
            self.stream.sendall(f"{word}\n".encode())

    def has_word(self):
        """Whether hear() would not wait."""
        return bool(select.select([self.stream], [], [], 0)[0])

    def hear(self):
        """Waits for the other end's word. Empty if that end has finished."""
        word = b""
        while not word.endswith(b"\n"):
            if not select.select([self.stream], [], [], PATIENCE_S)[0]:
                raise TimeoutError("the other end says nothing")
            byte = self.stream.recv(1)
            if not byte:
                return ""
            word += byte
        return word.decode().strip()


def become_nobody():
    """Continues as another user."""
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)


def enter_network_namespace():
    """Continues in a new network namespace."""
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "unshare")


def die():
    """Ends this process as a crash would."""
    os.kill(os.getpid(), signal.SIGKILL)


class _End:
    def __init__(self, run, stream, other, level):
        self.log = tempfile.TemporaryFile()
        self.pid = os.fork()
        if self.pid == 0:
            other.close()
            self._live(run, stream, level)
        stream.close()

    def _live(self, run, stream, level):
        status = 1
        try:
            os.dup2(self.log.fileno(), 2)
            os.environ["VIADUCT_LOG"] = level
            run(Wire(stream))
            status = 0
        except BaseException:  # pytest must not see it in this process
            os.write(2, traceback.format_exc().encode())
        finally:
            os._exit(status)

    def finish(self):
        """Returns what the end has logged."""
        descriptor = os.pidfd_open(self.pid)
        ended = select.select([descriptor], [], [], PATIENCE_S)[0]
        if not ended:
            os.kill(self.pid, signal.SIGKILL)
        os.close(descriptor)
        status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        self.log.seek(0)
        text = self.log.read().decode()
        assert ended, f"hangs:\n{text}"
        assert status in (0, -signal.SIGKILL), text
        return text


def run(server, client, level="info"):
    """Runs both ends and returns their logs."""
    near, far = socket.socketpair()
    ends = _End(server, near.dup(), far, level), _End(client, far.dup(), near, level)
    near.close()
    far.close()
    return tuple(end.finish() for end in ends)


def run_alone(end, level="info"):
    """Runs an end that has no other one, and returns its log."""
    return run(lambda wire: None, end, level)[1]


def said_once(log, *parts):
    """Checks that exactly one line of a log has all parts, and returns the line."""
    lines = [line for line in log.splitlines() if all(part in line for part in parts)]
    assert len(lines) == 1, f"{len(lines)} lines with {parts} in:\n{log}"
    return lines[0]


class NobodyListens:
    """Tests why a client of an API finds no listener. The test file of the API has

    client_of(service, event)    an end that connects and expects this event
    listener_at(service)         an end that only listens; at another device, or after some preparation
    event, words                 what the client is told, and what is in the line of its log
    another_device               the argument for listener_at
    """

    def check(self, server, service, reason=""):
        _, log = run(server, self.client_of(service, self.event))
        said_once(log, *self.words, f": port {service} of 127.0.0.1 has no listener", reason)

    def test_no_listener(self, service):
        self.check(lambda wire: None, service)

    @needs_root
    def test_listener_of_another_user(self, service):
        self.check(self.listener_at(service, prepare=become_nobody), service,
                   "the listener belongs to user 65534, this process to user 0")

    def test_listener_of_another_device(self, service):
        self.check(self.listener_at(service, self.another_device), service,
                   "it has a listener at another device of this host")

    @needs_root
    def test_listener_in_another_network_namespace(self, service):
        def server(wire):
            enter_network_namespace()
            self.listener_at(service)(wire)
        self.check(server, service, "in another network namespace")
