# SPDX-License-Identifier: BSD-3-Clause
"""The package is fully typed, and its stubs match the extension modules."""
import os
import pathlib
import shutil
import subprocess
import sys

import pytest
import viaduct

PACKAGE = pathlib.Path(viaduct.__file__).parent
RAW = sorted(path.stem for path in PACKAGE.glob("_*.pyi"))


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """With one cache for all, because mypy reads the standard library's stubs for seconds."""
    built = pathlib.Path(viaduct.__file__).parent.parent
    return {**os.environ, "MYPYPATH": str(built), "MYPY_CACHE_DIR": str(tmp_path_factory.mktemp("cache"))}


def run(environment, *command):
    done = subprocess.run([sys.executable, "-m", *command], env=environment, text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.returncode, done.stdout


def test_package_is_typed(environment):
    code, output = run(environment, "mypy", "--strict", "-p", "viaduct")
    assert code == 0, output


@pytest.mark.skipif(shutil.which("pyright") is None, reason="pyright is missing")
def test_pyright_accepts_the_package(tmp_path):
    shutil.copytree(PACKAGE, tmp_path / "viaduct")
    done = subprocess.run(["pyright", "--pythonpath", sys.executable, "viaduct"], cwd=tmp_path, text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout


def test_misspelt_options_are_found(environment, tmp_path):
    program = tmp_path / "program.py"
    program.write_text("""
from viaduct import core
endpoint = core.Device().endpoint(reliability=core.Reliability.UNRELIABLE)
endpoint = core.Device().endpoint(relaibility=3)
endpoint.connect("localhost", 1, timeout=1)
endpoint.connect("localhost", 1, patience=1)
""")
    _, output = run(environment, "mypy", "--strict", str(program))
    lines = [line for line in output.splitlines() if "error" in line and "Unexpected keyword" in line]
    assert [line.split(":")[1] for line in lines] == ["4", "6"], output


def test_stubs_are_true(environment):
    modules = [f"viaduct.{module}" for module in RAW]
    _, output = run(environment, "mypy.stubtest", "--concise", "--ignore-missing-stub", *modules)
    # The metaclass of pybind11 is not part of the API.
    wrong = [line for line in output.splitlines() if "metaclass" not in line]
    assert not wrong, "\n".join(wrong)
