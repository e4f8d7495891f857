# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures for pytest: devices, and connected endpoints in one process or in two.

pytest finds this plugin if pip has installed the package. Otherwise use `pytest -p viaduct.pytest_plugin`, or
`pytest_plugins = ["viaduct.pytest_plugin"]` in a conftest.py or a test module. A test:

    def test_greeting(device, pair):
        memory = device.register(bytearray(b"hello") + bytearray(5))
        pair.server.post_receive(memory[5:])
        pair.client.post_send(memory[:5])
        assert pair.server.wait_receive(timeout=5).nbytes == 5

The fixtures:

    backend         the name of the backend; skips the test if the backend has no device
    device          an open core.Device
    free_service    free_service() returns the number of a service that no other test uses
    pair            two connected endpoints of the device: pair.client and pair.server
    peer_process    peer_process(function, ...) runs function(link, ...) in a second process
    remote_pair     remote_pair(function, ...) connects an endpoint with one in a second process, which runs
                    function(device, endpoint, ...)
    viaduct_faults  viaduct_faults("drop=1%;seed=7") injects faults into the programs and second processes that the
                    test starts afterwards, which log them
    viaduct_check   viaduct_check() looks for mistakes in the programs and second processes that the test starts
                    afterwards; the test fails if there are any
    power_cuts      power_cuts(command, check, ...) runs a program repeatedly, each time until a simulated power cut

`--viaduct-backend=verbs`, or `viaduct_backend = verbs` in pytest.ini, selects the backend; the default is
VIADUCT_BACKEND. Both need the installed package, `-p viaduct.pytest_plugin` or the conftest.py, because pytest reads
options before it loads test modules.

A second process is a new interpreter, which shares nothing with the test. Its function must be a function of a
module, and arguments and results must be picklable. The process ends with the test. An exception of its function is
included in the report of a failed test, and makes a successful test fail.

Fixtures and Peer fail if an expected event does not occur within PATIENCE seconds (60).
"""
from __future__ import annotations

import contextlib
import itertools
import json
import multiprocessing
import multiprocessing.connection
import os
import pathlib
import random
import shlex
import shutil
import signal
import socket
import subprocess
import traceback
import typing

import pytest

from viaduct import core

__all__ = ["PATIENCE", "Checker", "Pair", "Peer", "PeerFailed", "PowerCut", "PowerCutFailed", "RemotePair",
           "Report", "connected"]

PATIENCE = 60.0  # seconds that fixtures wait before they fail
_GRACE = 1.0  # seconds that the peer of a failed test has to end

_T = typing.TypeVar("_T")
_new_interpreter = multiprocessing.get_context("spawn")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the option, and the setting of pytest.ini."""
    about = "the backend of viaduct: loopback, verbs or tcp"
    parser.getgroup("viaduct").addoption("--viaduct-backend", metavar="NAME", help=about)
    parser.addini("viaduct_backend", about)


def pytest_configure(config: pytest.Config) -> None:
    """Chooses the backend before it is used, for second processes, too."""
    try:
        chosen = config.getoption("--viaduct-backend") or config.getini("viaduct_backend")
    except ValueError:  # loaded by a test module, when options have been read already
        return
    if chosen:
        os.environ["VIADUCT_BACKEND"] = str(chosen)


# ---- In one process --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def backend() -> str:
    """The name of the backend: "loopback", "verbs" or "tcp". Skips the test if the backend has no device."""
    name = core.backend()
    if not core.devices():
        pytest.skip(f"the backend {name} finds no device")
    return name


@pytest.fixture
def device(backend: str) -> typing.Iterator[core.Device]:
    """An open core.Device: the first one, or that of VIADUCT_DEVICE. It is closed at the end of the test, with
    everything created from it."""
    with core.Device() as opened:
        yield opened


_candidates = itertools.cycle(range(10000, 20000))  # below the ephemeral ports of systems
for _ in range(random.randrange(10000)):
    next(_candidates)


@contextlib.contextmanager
def _claimed_service() -> typing.Iterator[int]:
    """Yields a number that is unique on this host meanwhile. A socket in the abstract namespace reserves it."""
    with socket.socket(socket.AF_UNIX) as claim:
        while True:
            number = next(_candidates)
            with contextlib.suppress(OSError):
                claim.bind(f"\0viaduct-pytest-{number}")
                break
        yield number


@pytest.fixture
def free_service() -> typing.Iterator[typing.Callable[[], int]]:
    """free_service() returns the number of a service that no other test on this host uses until this test ends."""
    with contextlib.ExitStack() as claims:
        yield lambda: claims.enter_context(_claimed_service())


class Pair(typing.NamedTuple):
    """Two endpoints that are connected with each other: client and server."""
    client: core.Endpoint
    server: core.Endpoint


def connected(device: core.Device, client: core.Endpoint | None = None, server: core.Endpoint | None = None) -> Pair:
    """Connects two endpoints of a device, and returns them as a Pair. None means a new endpoint.

    Waits until they are connected, at most PATIENCE seconds. Raises core.TimeoutError then, and core.Error if the
    endpoints cannot be connected.
    """
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


def _vi_run() -> str:
    """The tool that belongs to this package: installed, or of the build tree; else the one in PATH."""
    for directory in pathlib.Path(core.__file__).parents:
        for place in "bin", "tools":
            if os.access(tool := directory / place / "vi-run", os.X_OK):
                return str(tool)
    tool_in_path = shutil.which("vi-run")
    assert tool_in_path, "vi-run is not installed"
    return tool_in_path


# ---- Faults ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def viaduct_faults(monkeypatch: pytest.MonkeyPatch) -> typing.Callable[[str], None]:
    """viaduct_faults("drop=1%;seed=7") injects these faults into the programs and second processes that the test starts
    afterwards, which log them on standard error. The test's own process is not affected.

    The last call counts, and "" ends the faults. docs/faults-on-demand.md lists them.
    """
    core.backend()  # this process looks for the setting when it first uses a backend

    def inject(faults: str) -> None:
        monkeypatch.setenv("VIADUCT_FAULTS", faults)
        if os.environ.get("VIADUCT_LOG") != "debug":
            monkeypatch.setenv("VIADUCT_LOG", "info")

    return inject


# ---- Mistakes --------------------------------------------------------------------------------------------------------


class Report(typing.NamedTuple):
    """A mistake that the checker has found.

    check     what it has looked for: "sends", "receives" ...
    object    the VI, endpoint or connection; "" for what concerns the whole process
    text      what is wrong, with the call and the values
    posted    where the program has posted the request, such as "program+0x11f3"; "": no request
    found     where the program was when this was found; "": at no place in particular
    program   the name of the program
    process   the number of its process
    """
    check: str
    object: str
    text: str
    posted: str
    found: str
    program: str
    process: str

    def __str__(self) -> str:
        places = [f"{word} {place}" for word, place in (("posted at", self.posted), ("found at", self.found)) if place]
        return f"{self.program}: check {self.check}: " + "; ".join([self.text, *places])


class Checker:
    """Looks for mistakes in the programs that a test starts."""

    def __init__(self, file: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._file = file
        self._monkeypatch = monkeypatch

    def __call__(self, checks: str = "1") -> None:
        """Checks the programs and second processes that the test starts afterwards; "0" ends that."""
        core.backend()  # this process looks for the setting when it first uses a backend
        lines = subprocess.run([_vi_run(), f"--check={checks}", "--dry-run"], check=True, stdout=subprocess.PIPE,
                               text=True).stdout
        for line in lines.splitlines():
            name, _, value = shlex.split(line.rstrip(";"))[1].partition("=")
            self._monkeypatch.setenv(name, value)
        self._monkeypatch.setenv("VIADUCT_CHECK_FILE", str(self._file))

    def reports(self) -> list[Report]:
        """Returns what was found since the last call. The test does not fail because of these."""
        lines = self._file.read_text(errors="replace").splitlines() if self._file.exists() else []
        self._file.unlink(missing_ok=True)
        return [Report(**json.loads(line)) for line in lines]


@pytest.fixture
def _checker(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> typing.Iterator[Checker]:
    """What viaduct_check returns. The fixture of second processes depends on it, so that they end before."""
    checker = Checker(tmp_path / "viaduct-check.json", monkeypatch)
    yield checker
    if reports := checker.reports():
        pytest.fail("\n".join(["the checker has found mistakes:", *map(str, reports)]), pytrace=False)


@pytest.fixture
def viaduct_check(_checker: Checker) -> Checker:
    """viaduct_check() checks the programs and second processes that the test starts afterwards for mistakes that do no
    harm here. The test fails at its end if there are reports that it has not taken with viaduct_check.reports(). The
    test's own process is not checked.

    docs/checker.md lists the checks; viaduct_check("sends,order") chooses some.
    """
    return _checker


# ---- In two processes ------------------------------------------------------------------------------------------------


class PeerFailed(Exception):
    """The function of a second process raised an exception, or the process ended abnormally. Contains the traceback."""


class _Outcome(typing.NamedTuple):
    """The outcome of the function of a second process."""
    value: object
    problem: str | None = None


def _run(link: multiprocessing.connection.Connection, report: multiprocessing.connection.Connection,
         function: typing.Callable[..., object], arguments: tuple[object, ...]) -> None:
    """The main function of the second process."""
    try:
        outcome = _Outcome(function(link, *arguments))
    except BaseException:  # including KeyboardInterrupt, which end() causes
        outcome = _Outcome(None, traceback.format_exc())
    report.send(outcome)


class Peer:
    """A second process.

    link    this end of its pipe, a multiprocessing.Connection
    pid     its process id
    """

    def __init__(self, function: typing.Callable[..., object], arguments: tuple[object, ...]) -> None:
        self.link, link = multiprocessing.Pipe()
        self._report, report = multiprocessing.Pipe(duplex=False)
        self._process = _new_interpreter.Process(target=_run, args=(link, report, function, arguments), daemon=True)
        self._outcome: _Outcome | None = None
        self._killed = False
        self._told = False  # whether the problem was reported
        try:
            self._process.start()
        finally:
            link.close()
            report.close()
        self.pid = typing.cast(int, self._process.pid)

    def send(self, message: object) -> None:
        """Sends an object, which the function gets from link.recv()."""
        self.link.send(message)

    def receive(self, timeout: float | None = PATIENCE) -> typing.Any:
        """Waits for an object that the function sends with link.send(), and returns it.

        Raises PeerFailed if the function ends instead, the TimeoutError of Python after `timeout` seconds (None:
        waits forever).
        """
        __tracebackhide__ = True
        ready = multiprocessing.connection.wait([self.link, self._report], timeout)
        if not ready:
            raise TimeoutError(f"the peer process {self.pid} sends nothing")
        with contextlib.suppress(EOFError, ConnectionResetError):  # the latter if it has not read everything
            if self.link in ready:
                return self.link.recv()
        self.result(timeout)
        raise PeerFailed(f"the peer process {self.pid} has returned instead of sending something")

    def result(self, timeout: float | None = PATIENCE) -> typing.Any:
        """Waits until the function has returned, and returns its result.

        Raises PeerFailed if it raised an exception, the TimeoutError of Python after `timeout` seconds (None: waits
        forever).
        """
        __tracebackhide__ = True
        outcome = self._reap(timeout)
        if outcome is None:
            raise TimeoutError(f"the peer process {self.pid} does not end")
        if outcome.problem:
            self._told = True
            raise PeerFailed(outcome.problem)
        return outcome.value

    def kill(self) -> None:
        """Kills the process with SIGKILL, and waits for its end. The test does not fail because of that."""
        self._killed = True
        self._process.kill()
        self._process.join()

    def _reap(self, timeout: float | None) -> _Outcome | None:
        """Returns how the process ended; None if it has not ended within `timeout` seconds."""
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
        """Ends the process: waits `patience` seconds, then interrupts it, then kills it. Returns what went wrong,
        unless it has already been reported."""
        late = self._reap(patience) is None
        if late:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGINT)  # its traceback shows what it was doing
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
_wrapper = typing.cast(typing.Callable[[_Hook], _Hook], pytest.hookimpl(hookwrapper=True))  # untyped in some versions


@_wrapper
def pytest_runtest_makereport(item: pytest.Item) -> typing.Iterator[None]:
    """Adds the exceptions of second processes to the report of a failed test."""
    outcome: typing.Any = yield
    report: pytest.TestReport = outcome.get_result()
    if report.failed:
        for peer in item.stash.get(_PEERS, []):
            if problem := peer.end(_GRACE):
                report.sections.append((f"peer process {peer.pid}", problem))


@pytest.fixture
def peer_process(backend: str, request: pytest.FixtureRequest,
                 _checker: Checker) -> typing.Iterator[typing.Callable[..., Peer]]:
    """peer_process(function, ...) runs function(link, ...) in a second process, and returns its Peer.

    The test uses send(), receive(), result() and kill() of the Peer, the function link.recv() and link.send(). At the
    end of the test the process has PATIENCE seconds to end.
    """
    peers = request.node.stash.setdefault(_PEERS, [])

    def start(function: typing.Callable[..., object], *arguments: object) -> Peer:
        peers.append(Peer(function, arguments))
        return typing.cast(Peer, peers[-1])

    yield start
    problems = [problem for peer in peers if (problem := peer.end(PATIENCE))]
    peers.clear()  # their descriptors: pytest keeps the test
    if problems:
        pytest.fail("\n".join(["a peer process failed:", *problems]), pytrace=False)


class RemotePair(typing.NamedTuple):
    """An endpoint of this process, and the second process, which has the other end."""
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
    """remote_pair(function, ...) connects an endpoint of the device with one of a second process, and returns a
    RemotePair.

    The second process runs function(device, endpoint, ...), and then waits until this end disconnects.
    """
    with contextlib.ExitStack() as endpoints:
        def connect(function: typing.Callable[..., object], *arguments: object) -> RemotePair:
            service = free_service()
            peer = peer_process(_serve, device.name, service, function, arguments)
            assert peer.receive() == "listening"
            endpoint = endpoints.enter_context(device.endpoint())
            endpoint.connect(device.host, service, timeout=PATIENCE)
            return RemotePair(endpoint, peer)

        yield connect


# ---- Losing power ----------------------------------------------------------------------------------------------------


_POWER_WAS_CUT = 90  # the exit status of vi-run
_RUNS_WITHOUT_CUT = 50  # in a row, until there seems to be nothing to cut
_EXCERPT = 2000  # characters of output in a report


class PowerCut(typing.NamedTuple):
    """A run of a command.

    when      what repeats it, for vi-run --power-cut
    was_cut   False: the command ended before, with the exit status 0
    output    what it wrote to standard output
    """
    when: str
    was_cut: bool
    output: str


class PowerCutFailed(AssertionError):
    """A check failed after a power cut, or the command failed without one."""


def _run_until_cut(command: typing.Sequence[str | os.PathLike[str]], when: str) -> PowerCut:
    with subprocess.Popen([_vi_run(), "--quiet", f"--power-cut={when}", "--", *command], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, errors="replace") as process:
        try:
            output, errors = process.communicate(timeout=PATIENCE)
        except BaseException:
            process.terminate()  # vi-run ends the processes of the command, too
            raise
    if process.returncode not in (0, _POWER_WAS_CUT):
        raise PowerCutFailed(f"vi-run --power-cut={when}: the command returned {process.returncode}: "
                             f"{(errors + output)[-_EXCERPT:]}")
    return PowerCut(when, process.returncode == _POWER_WAS_CUT, output)


@pytest.fixture
def power_cuts() -> typing.Callable[..., None]:
    """power_cuts(command, check, cuts=200, seed=1, prepare=None) runs a command until its power was cut `cuts` times.

    The command is a list of words; vi-run(1) runs it with --power-cut. prepare() is called before each run,
    check(cut) after it, with a PowerCut: it raises an exception if what is in the files is wrong. Files stay from run
    to run unless prepare() replaces them, so that the program also has to recover. The cuts are at random flushes, of
    all that the command makes; `seed` selects them.

    Raises PowerCutFailed, which says how to repeat the run.
    """
    def run(command: typing.Sequence[str | os.PathLike[str]], check: typing.Callable[[PowerCut], object], *,
            cuts: int = 200, seed: int = 1, prepare: typing.Callable[[], object] | None = None) -> None:
        __tracebackhide__ = True
        numbers = random.Random(seed)
        most = 1  # flushes that the command is known to make
        limit = 1 << 30  # with a cut at this flush, the command once ended before
        done = without = 0
        while done < cuts:
            when = f"{numbers.randint(1, min(2 * most, limit))}:{numbers.getrandbits(32)}"
            if prepare:
                prepare()
            cut = _run_until_cut(command, when)
            try:
                check(cut)
            except Exception as error:
                raise PowerCutFailed(f"after {done} power cuts, vi-run --power-cut={when}: "
                                     f"{type(error).__name__}: {error}\n{cut.output[-_EXCERPT:]}") from error
            flush = int(when.split(":")[0])
            if cut.was_cut:
                most = max(most, flush)
                done, without = done + 1, 0
            else:
                limit = max(most, min(limit, flush))
                without += 1
            if without == _RUNS_WITHOUT_CUT:
                raise PowerCutFailed(f"in {without} runs, the command ended before any power cut: does it flush to "
                                     "persistence, in a mapped file?")

    return run
