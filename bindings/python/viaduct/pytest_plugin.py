# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures for pytest: devices, and connected endpoints in one process or in two.

`pytest -p viaduct.pytest_plugin`, or in a conftest.py `pytest_plugins = ["viaduct.pytest_plugin"]`. Then a test is as
short as this:

    def test_greeting(device, pair):
        memory = device.register(bytearray(b"hello") + bytearray(5))
        pair.server.post_receive(memory[5:])
        pair.client.post_send(memory[:5])
        assert pair.server.wait_receive(timeout=5).nbytes == 5

    backend         the name of the backend in force; without a device of it the test is skipped
    device          an open core.Device
    free_service    free_service() gives the number of a service that no other test uses
    pair            two connected core.Endpoint of the device: pair.client and pair.server
    peer_process    peer_process(function, ...) runs function(link, ...) in a second process
    remote_pair     remote_pair(function, ...) connects an endpoint with one in a second process, which runs
                    function(device, endpoint, ...)

`--viaduct-backend=verbs`, or in pytest.ini `viaduct_backend = verbs`, chooses the backend; else VIADUCT_BACKEND does.

Second processes are new interpreters, so that they share nothing with the test: their functions are functions of a
module, found by name, and all that is passed has to be pickled. They end with the test: what a function raised is part
of the report where the test failed, too, and else makes the test's end an error.
"""
from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import multiprocessing.connection
import os
import random
import signal
import socket
import traceback
import typing

import pytest

from viaduct import core

__all__ = ["PATIENCE", "Pair", "Peer", "PeerFailed", "RemotePair", "connected"]

PATIENCE = 60.0  # seconds that fixtures wait before they call it a failure
_GRACE = 1.0  # seconds that a peer of a failed test has to end by itself

_T = typing.TypeVar("_T")
_new_interpreter = multiprocessing.get_context("spawn")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the option and the line of pytest.ini."""
    about = "the backend of viaduct: loopback or verbs"
    parser.getgroup("viaduct").addoption("--viaduct-backend", metavar="NAME", help=about)
    parser.addini("viaduct_backend", about)


def pytest_configure(config: pytest.Config) -> None:
    """Chooses the backend before anything of it is used, for second processes, too."""
    chosen = config.getoption("--viaduct-backend") or config.getini("viaduct_backend")
    if chosen:
        os.environ["VIADUCT_BACKEND"] = str(chosen)


# ---- In one process --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def backend() -> str:
    """The name of the backend in force: "loopback" or "verbs". Skips where it has no device."""
    name = core.backend()
    if not core.devices():
        pytest.skip(f"the backend {name} finds no device")
    return name


@pytest.fixture
def device(backend: str) -> typing.Iterator[core.Device]:
    """The first device, or that of VIADUCT_DEVICE. All that the test made of it is closed with it."""
    with core.Device() as opened:
        yield opened


_candidates = itertools.cycle(range(10000, 20000))  # below the ports that systems give away
for _ in range(random.randrange(10000)):
    next(_candidates)


@contextlib.contextmanager
def _claimed_service() -> typing.Iterator[int]:
    """A number that nobody else who asks here has, which a socket without any other use makes sure of."""
    with socket.socket(socket.AF_UNIX) as claim:
        for number in _candidates:
            with contextlib.suppress(OSError):
                claim.bind(f"\0viaduct-pytest-{number}")
                break
        yield number


@pytest.fixture
def free_service() -> typing.Iterator[typing.Callable[[], int]]:
    """free_service() gives the number of a service which no other test on this host has until this one ends."""
    with contextlib.ExitStack() as claims:
        yield lambda: claims.enter_context(_claimed_service())


class Pair(typing.NamedTuple):
    """Two endpoints that are connected with each other."""
    client: core.Endpoint
    server: core.Endpoint


def connected(device: core.Device, client: core.Endpoint | None = None, server: core.Endpoint | None = None) -> Pair:
    """Connects two idle endpoints of a device, of which new ones are made where none are given."""
    pair = Pair(client or device.endpoint(), server or device.endpoint())
    with _claimed_service() as service, device.listen(service) as listener:
        pair.client.start_connect(device.host, service, timeout=PATIENCE)
        listener.accept(pair.server, timeout=PATIENCE)
        event = pair.client.next_event(PATIENCE)
        assert event is not None and event.kind == core.ConnectionEventKind.ESTABLISHED, event
    return pair


@pytest.fixture
def pair(device: core.Device) -> Pair:
    """Two connected endpoints of the device: pair.client and pair.server."""
    return connected(device)


# ---- In two processes ------------------------------------------------------------------------------------------------


class PeerFailed(Exception):
    """The function of a peer process raised something, whose traceback this is, or its process ended in another way."""


class _Outcome(typing.NamedTuple):
    value: object
    problem: str | None = None


def _run(link: multiprocessing.connection.Connection, report: multiprocessing.connection.Connection,
         function: typing.Callable[..., object], arguments: tuple[object, ...]) -> None:
    """The whole life of the second process."""
    try:
        outcome = _Outcome(function(link, *arguments))
    except BaseException:  # the interruption of a peer that does not end is shown, too
        outcome = _Outcome(None, traceback.format_exc())
    report.send(outcome)


class Peer:
    """A second process. `link` is this end of its pipe, a multiprocessing.Connection; `pid` its process."""

    def __init__(self, function: typing.Callable[..., object], arguments: tuple[object, ...]) -> None:
        self.link, link = multiprocessing.Pipe()
        self._report, report = multiprocessing.Pipe(duplex=False)
        self._process = _new_interpreter.Process(target=_run, args=(link, report, function, arguments), daemon=True)
        self._outcome: _Outcome | None = None
        self._killed = False
        self._told = False  # whether somebody knows of the problem
        try:
            self._process.start()
        finally:
            link.close()
            report.close()
        self.pid = typing.cast(int, self._process.pid)

    def send(self, message: object) -> None:
        """Sends what the function gets from link.recv()."""
        self.link.send(message)

    def receive(self, timeout: float | None = PATIENCE) -> typing.Any:
        """What the function sends with link.send(). Raises PeerFailed where it ends instead, and TimeoutError."""
        __tracebackhide__ = True
        ready = multiprocessing.connection.wait([self.link, self._report], timeout)
        if not ready:
            raise TimeoutError(f"the peer process {self.pid} sends nothing")
        with contextlib.suppress(EOFError):
            if self.link in ready:
                return self.link.recv()
        self.result(timeout)
        raise PeerFailed(f"the peer process {self.pid} has returned instead of sending something")

    def result(self, timeout: float | None = PATIENCE) -> typing.Any:
        """What the function returned, waiting for it. Raises PeerFailed where it raised something, and TimeoutError."""
        __tracebackhide__ = True
        outcome = self._reap(timeout)
        if outcome is None:
            raise TimeoutError(f"the peer process {self.pid} does not end")
        if outcome.problem:
            self._told = True
            raise PeerFailed(outcome.problem)
        return outcome.value

    def kill(self) -> None:
        """Kills it, as kill -9 does, and waits for its end. That is no failure."""
        self._killed = True
        self._process.kill()
        self._process.join()

    def _reap(self, timeout: float | None) -> _Outcome | None:
        """How it ended; None where it did not."""
        if self._outcome is None and multiprocessing.connection.wait([self._report], timeout):
            try:
                outcome = typing.cast(_Outcome, self._report.recv())
            except EOFError:
                outcome = _Outcome(None)
            self._process.join(PATIENCE)
            code = self._process.exitcode
            if code is None:
                self._process.kill()
                self._process.join()
                outcome = _Outcome(None, "the process had to be killed: it did not end after its function")
            elif code != 0:
                how = signal.Signals(-code).name if code < 0 else f"the exit code {code}"
                outcome = _Outcome(None, outcome.problem or f"the process ended with {how}")
            self._outcome = outcome
        return self._outcome

    def end(self, patience: float) -> str | None:
        """Sees to it that it ends: by itself, or interrupted, or killed. What went wrong, if that is news."""
        late = self._reap(patience) is None
        if late:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGINT)  # it tells where it was
        if self._reap(PATIENCE) is None:
            self._process.kill()
        outcome = self._reap(None)
        self.link.close()
        if self._killed or self._told or outcome is None or outcome.problem is None:
            return None
        self._told = True
        return f"interrupted because it did not end:\n{outcome.problem}" if late else outcome.problem


_PEERS = pytest.StashKey[typing.List[Peer]]()
_Hook = typing.Callable[[pytest.Item], typing.Iterator[None]]
_wrapper = typing.cast(typing.Callable[[_Hook], _Hook], pytest.hookimpl(hookwrapper=True))  # not typed by all versions


@_wrapper
def pytest_runtest_makereport(item: pytest.Item) -> typing.Iterator[None]:
    """Shows what the peers of a failed test raised."""
    outcome: typing.Any = yield
    report: pytest.TestReport = outcome.get_result()
    if report.failed:
        for peer in item.stash.get(_PEERS, []):
            if problem := peer.end(_GRACE):
                report.sections.append((f"peer process {peer.pid}", problem))


@pytest.fixture
def peer_process(backend: str, request: pytest.FixtureRequest) -> typing.Iterator[typing.Callable[..., Peer]]:
    """peer_process(function, ...) runs function(link, ...) in a second process, and gives a Peer.

    Its send(), receive(), result() and kill() are for the test; link.recv() and link.send() for the function. At the
    end of the test it has a minute to end, too."""
    peers = request.node.stash.setdefault(_PEERS, [])

    def start(function: typing.Callable[..., object], *arguments: object) -> Peer:
        peers.append(Peer(function, arguments))
        return typing.cast(Peer, peers[-1])

    yield start
    problems = [problem for peer in peers if (problem := peer.end(PATIENCE))]
    if problems:
        pytest.fail("\n".join(["a peer process failed:", *problems]), pytrace=False)


class RemotePair(typing.NamedTuple):
    """An endpoint here, and the process with the other end."""
    endpoint: core.Endpoint
    peer: Peer


def _serve(link: multiprocessing.connection.Connection, name: str, service: int,
           function: typing.Callable[..., _T], arguments: tuple[object, ...]) -> _T:
    with core.Device(name) as device:
        endpoint = device.endpoint()
        with device.listen(service) as listener:
            link.send("listening")
            listener.accept(endpoint, timeout=PATIENCE)
        result = function(device, endpoint, *arguments)
        if endpoint.state == core.State.CONNECTED:
            endpoint.next_event(PATIENCE)
    return result


@pytest.fixture
def remote_pair(device: core.Device, free_service: typing.Callable[[], int],
                peer_process: typing.Callable[..., Peer]) -> typing.Iterator[typing.Callable[..., RemotePair]]:
    """remote_pair(function, ...) gives a RemotePair: an `endpoint` of the device that is connected with one of a second
    process, the `peer`, which runs function(device, endpoint, ...) and then waits until this end disconnects."""
    with contextlib.ExitStack() as endpoints:
        def connect(function: typing.Callable[..., object], *arguments: object) -> RemotePair:
            service = free_service()
            peer = peer_process(_serve, device.name, service, function, arguments)
            assert peer.receive() == "listening"
            endpoint = endpoints.enter_context(device.endpoint())
            endpoint.connect(device.host, service, timeout=PATIENCE)
            return RemotePair(endpoint, peer)

        yield connect
