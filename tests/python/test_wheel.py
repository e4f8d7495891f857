# SPDX-License-Identifier: BSD-3-Clause
"""The wheel that pip builds from a checkout and installs in virtual environments, without network."""
import os
import pathlib
import re
import subprocess
import sys
import zipfile

import programs
import pytest
from programs import ROOT
from services import free_number

BUILD = pathlib.Path(os.environ["BUILD"])
OTHER_LIBRARIES = ":".join(str(BUILD / directory) for directory in ("core", "api/vipl", "api/udat", "api/rpma"))
VERSION = re.search(r"^project\(\S+ VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text(encoding="utf-8"), re.M)[1]
CORE = f"libviaduct.so.{VERSION}"
LIBRARIES = {CORE, "libvipl.so.1", "libdat2.so.2", "libdaplviaduct.so.2", "librpma.so.0"}
MODULES = {"_core", "_vipl", "_dat", "_rpma"}
ENVIRONMENT = {**{name: value for name, value in os.environ.items()
                  if not name.startswith(("PYTHON", "LD_", "VIADUCT_"))},
               "PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "VIADUCT_CONNECT_RETRY_MS": "20000"}

MAPPED = """
print({line.split()[-1] for line in open("/proc/self/maps") if ".so" in line})
"""
SERVER = """
import sys
from viaduct import vipl

with vipl.open_nic() as nic:
    vi = nic.create_vi()
    region = nic.register_mem(64)
    vi.post_recv(region[:])
    nic.connect_wait(int(sys.argv[1]), timeout=60).accept(vi)
    received = vi.recv_wait(timeout=60)
    vi.post_send(region[:received.length])
    vi.send_wait(timeout=60)
""" + MAPPED
CLIENT = """
import sys
from viaduct import dat

with dat.ia_open() as ia:
    evd = ia.evd_create(16)
    pz = ia.pz_create()
    lmr = ia.lmr_create(bytearray(b"there and back" + bytes(14)), pz)
    ep = ia.ep_create(pz, evd, evd, evd)
    ep.post_recv(lmr[14:], cookie=1)
    ep.connect("127.0.0.1", int(sys.argv[1]), timeout=60)
    assert evd.wait(timeout=60).established
    ep.post_send(lmr[:14], cookie=2)
    while evd.wait(timeout=60).user_cookie != 1:
        pass
    assert lmr.view[14:] == b"there and back"
""" + MAPPED


def run(*command, **options):
    return programs.run(*command, env=ENVIRONMENT, timeout=None, **options)


def environment_in(directory, *options):
    """Returns the interpreter of a new virtual environment."""
    run(sys.executable, "-m", "venv", *options, directory)
    return directory / "bin/python"


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    return environment_in(tmp_path_factory.mktemp("isolated"))


@pytest.fixture(scope="module")
def wheel(python, tmp_path_factory):
    """Built and installed in the environment."""
    directory = tmp_path_factory.mktemp("wheel")
    run(python, "-m", "pip", "wheel", "--wheel-dir", directory, ".", cwd=ROOT)
    made, = directory.iterdir()
    run(python, "-m", "pip", "install", made)
    return made


def test_it_contains_what_the_modules_need(wheel):
    with zipfile.ZipFile(wheel) as archive:
        assert archive.testzip() is None
        names = {pathlib.PurePath(name) for name in archive.namelist()}
    binaries = {name.name.partition(".cpython-")[0] for name in names if ".so" in name.name}
    assert binaries == LIBRARIES | MODULES
    sources = {path.relative_to(ROOT / "bindings/python") for path in ROOT.glob("bindings/python/viaduct/**/*.py")}
    assert sources < names
    for stub in "_core", "_vipl", "_dat", "_rpma":
        assert pathlib.PurePath(f"viaduct/{stub}.pyi") in names


def test_pip_knows_it(wheel, python):
    shown = run(python, "-m", "pip", "show", "--files", "viaduct")
    assert f"\nVersion: {wheel.name.split('-')[1]}\n" in shown and "\nLicense: BSD-3-Clause\n" in shown
    assert ".dist-info/LICENSE\n" in shown
    assert "No broken requirements" in run(python, "-m", "pip", "check")


def test_two_processes_use_its_own_libraries(wheel, python, tmp_path):
    service = str(free_number())
    (tmp_path / "server.py").write_text(SERVER, encoding="utf-8")
    (tmp_path / "client.py").write_text(CLIENT, encoding="utf-8")
    environment = {**ENVIRONMENT, "LD_LIBRARY_PATH": OTHER_LIBRARIES}
    ends = [subprocess.Popen([python, tmp_path / script, service], env=environment, text=True, stdout=subprocess.PIPE)
            for script in ("server.py", "client.py")]
    mapped = [end.communicate(timeout=120)[0] for end in ends]
    assert [end.returncode for end in ends] == [0, 0]
    for paths, libraries in zip(mapped, ({"libvipl.so.1"}, {"libdat2.so.2", "libdaplviaduct.so.2"})):
        used = {path for path in map(pathlib.Path, re.findall("'([^']*)'", paths)) if path.name in LIBRARIES}
        assert {path.name for path in used} == libraries | {CORE}
        assert all(python.parents[1] in path.parents for path in used)


def test_the_same_files_make_the_same_wheel(wheel, tmp_path):
    """Without isolation, with the packages of the system."""
    python = environment_in(tmp_path / "system", "--system-site-packages")
    run(python, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "--wheel-dir", tmp_path, ".", cwd=ROOT)
    assert (tmp_path / wheel.name).read_bytes() == wheel.read_bytes()


def test_pytest_of_another_project_finds_the_plugin(tmp_path):
    python = environment_in(tmp_path / "environment", "--system-site-packages")
    run(python, "-m", "pip", "install", ".", cwd=ROOT)
    project = tmp_path / "project"
    project.mkdir()
    (project / "test_user.py").write_text(programs.EXAMPLE_FOR_PYTEST, encoding="utf-8")
    (project / "pytest.ini").write_text("[pytest]\nviaduct_backend = loopback\n", encoding="utf-8")
    said = run(python, "-m", "pytest", "-p", "no:cacheprovider", cwd=project)
    assert re.search(r"plugins: .*viaduct-\d", said) and "2 passed" in said
    # A project may still name it.
    (project / "conftest.py").write_text('pytest_plugins = ["viaduct.pytest_plugin"]\n', encoding="utf-8")
    assert "2 passed" in run(python, "-m", "pytest", "-p", "no:cacheprovider", cwd=project)
    assert "2 passed" in run(python, "-m", "pytest", "-p", "no:cacheprovider", "-p", "viaduct.pytest_plugin",
                             cwd=project)
