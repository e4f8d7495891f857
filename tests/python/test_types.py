# SPDX-License-Identifier: BSD-3-Clause
"""The package is fully typed, and its stubs match the extension modules."""
import os
import pathlib
import shutil
import sys

import pytest
import viaduct
from programs import python, run

PACKAGE = pathlib.Path(viaduct.__file__).parent
RAW = sorted(path.stem for path in PACKAGE.glob("_*.pyi"))


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """With one cache for all, because mypy reads the standard library's stubs for seconds."""
    built = pathlib.Path(viaduct.__file__).parent.parent
    return {**os.environ, "MYPYPATH": str(built), "MYPY_CACHE_DIR": str(tmp_path_factory.mktemp("cache"))}


def test_package_is_typed(environment):
    python("-m", "mypy", "--strict", "-p", "viaduct", env=environment)


@pytest.mark.skipif(shutil.which("pyright") is None, reason="pyright is missing")
def test_pyright_accepts_the_package(tmp_path):
    shutil.copytree(PACKAGE, tmp_path / "viaduct")
    run("pyright", "--pythonpath", sys.executable, "viaduct", cwd=tmp_path)


def test_misspelt_options_are_found(environment, tmp_path):
    program = tmp_path / "program.py"
    program.write_text("""
from viaduct import core
endpoint = core.Device().endpoint(reliability=core.Reliability.UNRELIABLE)
endpoint = core.Device().endpoint(relaibility=3)
endpoint.connect("localhost", 1, timeout=1)
endpoint.connect("localhost", 1, patience=1)
""")
    output = python("-m", "mypy", "--strict", program, status=1, env=environment)
    lines = [line for line in output.splitlines() if "error" in line and "Unexpected keyword" in line]
    assert [line.split(":")[1] for line in lines] == ["4", "6"], output


def test_stubs_are_true(environment):
    modules = [f"viaduct.{module}" for module in RAW]
    output = python("-m", "mypy.stubtest", "--concise", "--ignore-missing-stub", *modules, status=None, env=environment)
    # The metaclass of pybind11 is not part of the API.
    wrong = [line for line in output.splitlines() if "metaclass" not in line]
    assert not wrong, "\n".join(wrong)
