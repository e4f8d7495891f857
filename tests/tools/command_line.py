# SPDX-License-Identifier: BSD-3-Clause
"""Common code for tests of the command-line tools: starting, watching and stopping programs."""
import fcntl
import os
import pty
import signal
import socket
import struct
import subprocess
import sys
import termios
import time
import traceback

PATIENCE_S = 120
APIS = "vipl", "dat", "rpma", "core"
ON_DEVICES = os.environ.get("VIADUCT_BACKEND") == "verbs"  # emulated machines run only some of the combinations


def check(condition, text):
    if not condition:
        raise AssertionError(text)


def forget_settings():
    """Removes the settings of Viaduct, but not those of the tests, from the environment."""
    for name in list(os.environ):
        if name.startswith("VIADUCT_") and not name.startswith("VIADUCT_TEST_"):
            del os.environ[name]


def run(command, status=0, **settings):
    """Runs a program, with environment variables, to its end and checks its exit status."""
    result = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, env=os.environ | settings)
    check(result.returncode == status, f"{command}: ended with {result.returncode}: {result.stderr}{result.stdout}")
    return result


class Running:
    """A running program. Its output, including errors, is read line by line."""

    def __init__(self, command, **settings):
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, bufsize=1, env=os.environ | settings
        )
        self.log = ""

    def wait_for(self, text):
        """Reads until a line contains the text; returns the line."""
        for line in self.process.stdout:
            self.log += line
            if text in line:
                return line
        raise AssertionError(f"never said '{text}': {self.log}")

    def kill(self):
        self.process.kill()
        self.process.wait()

    def finish(self, status=0):
        self.log += self.process.stdout.read()
        result = self.process.wait(PATIENCE_S)
        check(result == status, f"ended with {result}, not {status}: {self.log}")
        return self.log

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        return self.finish(0 if self.catches_signals() else -number)

    def catches_signals(self):
        return "vi-ping" in os.path.basename(self.process.args[0])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.kill()
        self.process.stdout.close()


class Terminal:
    """A program whose terminal has a width."""

    def __init__(self, command, columns):
        self.fd, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        take_terminal = ("import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0);"
                         "os.execv(sys.argv[1], sys.argv[1:])")
        self.process = subprocess.Popen([sys.executable, "-c", take_terminal, *command], stdin=terminal,
                                        stdout=terminal, stderr=terminal, start_new_session=True)
        os.close(terminal)

    def read_until(self, text):
        log = ""
        while text not in log:
            log += os.read(self.fd, 65536).decode()
        return log

    def read(self):
        """Reads until the program has ended."""
        log = b""
        try:
            while more := os.read(self.fd, 65536):
                log += more
        except OSError:  # no process has the terminal any more
            pass
        return log.decode()

    def write(self, text):
        os.write(self.fd, text.encode())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self.fd)


def free_service():
    """Returns an unused service number: the number of a TCP port that the system has allocated."""
    port = socket.socket()
    port.bind(("", 0))
    reserved.append(port)
    return str(port.getsockname()[1])


reserved = []  # sockets that stay open until the script ends


class Server(Running):
    """Listens on the second device. Clients use the first one, so that data travel between two network cards, if there
    are any."""

    def __init__(self, command, service):
        super().__init__([*command, "--device", "1", "--listen", service])
        self.service = service
        self.target = self.wait_for("listening on").split()[2]


class Tool:
    def __init__(self, name):
        check(len(sys.argv) == 2, f"usage: {sys.argv[0]} PATH_OF_{name}")
        self.path = sys.argv[1]

    def run(self, *options, status=0, **settings):
        return run([self.path, *options], status, **settings)

    def run_redirected(self, redirection, *options, status):
        """Runs the program with streams set up by a shell; returns the output on the other streams."""
        return run(["sh", "-c", f'exec "$0" "$@" {redirection}', self.path, *options], status)

    def refuses(self, cases):
        """Checks that the program says the reason why it cannot use these options, and nothing else."""
        for options, reason in cases:
            result = self.run(*options, status=2)
            check(reason in result.stderr, f"{options}: {result.stderr}")
            check(result.stdout == "", f"{options} print to standard output: {result.stdout}")

    def start(self, *options, **settings):
        return Running([self.path, *options], **settings)

    def server(self, *options, service=None):
        """Starts a server on an unused service and waits until it listens."""
        service = service or free_service()
        return Server([self.path, *options], service)


def finish(names, *arguments):
    """Runs every function of the script whose name starts with test_."""
    failed = 0
    for name, test in list(names.items()):
        if not name.startswith("test_"):
            continue
        start = time.monotonic()
        try:
            test(*arguments)
            print(f"ok {name} ({time.monotonic() - start:.1f} s)")
        except Exception:
            failed += 1
            print(f"FAILED {name}\n{traceback.format_exc()}")
    sys.exit(1 if failed else 0)
