# SPDX-License-Identifier: BSD-3-Clause
"""Programs that the tests run: commands, scripts of Python, and those of bindings/python/examples."""
import contextlib
import pathlib
import signal
import subprocess
import sys

TESTS = pathlib.Path(__file__).resolve().parent
ROOT = TESTS.parents[1]
EXAMPLES = ROOT / "bindings/python/examples"
MANUAL = ROOT / "docs/python.md"
# The example for pytest in the manual, verbatim.
EXAMPLE_FOR_PYTEST = MANUAL.read_text(encoding="utf-8").split("## pytest")[1].split("```python")[1].split("```")[0]


def run(*command, status=0, timeout=300, **options):
    """Runs a command, which must exit with this status (None: any). Returns its output, with that for errors."""
    done = subprocess.run(list(map(str, command)), timeout=timeout, text=True, check=False, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, **options)
    assert status in (None, done.returncode), done.stdout
    return done.stdout


def python(*arguments, **options):
    """Like run(), for this interpreter."""
    return run(sys.executable, *arguments, **options)


@contextlib.contextmanager
def serving(script, *arguments):
    """Starts an example as a server and waits until it listens. It is stopped at the end of the block at the latest."""
    command = [sys.executable, EXAMPLES / script, *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout.readline().startswith("listening")
            yield server
        finally:
            server.send_signal(signal.SIGINT)
