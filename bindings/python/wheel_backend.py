# SPDX-License-Identifier: BSD-3-Clause
"""The build backend of pyproject.toml (PEP 517): builds the package with CMake and packs it as a wheel.

It needs only the standard library, because pip builds in an environment in which the packages of the system cannot be
imported. CMake, a compiler and the libraries come from the system. The build tree remains in build/wheel-TAG.
"""
import base64
import csv
import fcntl
import hashlib
import io
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LICENSE = "LICENSE"


def version():
    """Returns the version that CMakeLists.txt gives to the project."""
    found = re.search(r"^project\(\S+ VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text(encoding="utf-8"), re.M)
    assert found, "CMakeLists.txt has no project() with a VERSION"
    return found[1]


def tag():
    """Returns for which interpreter, with which binary interface, and for which platform the wheel is."""
    # Such as cpython-311-x86_64-linux-gnu, or cpython-313t-... without the GIL.
    abi = "cp" + sysconfig.get_config_var("SOABI").split("-")[1]
    platform = re.sub(r"[-.]", "_", sysconfig.get_platform())
    return f"{abi.rstrip('dt')}-{abi}-{platform}"


def metadata_files():
    """Returns the files of the .dist-info directory, except RECORD: names with contents."""
    fields = [("Metadata-Version", "2.1"), ("Name", PROJECT["name"]), ("Version", version()),
              ("Summary", PROJECT["description"]), ("License", PROJECT["license"]["text"]), ("License-File", LICENSE),
              ("Requires-Python", PROJECT["requires-python"]),
              *(("Classifier", classifier) for classifier in PROJECT["classifiers"]),
              ("Description-Content-Type", "text/markdown; charset=UTF-8")]
    head = "".join(f"{name}: {value}\n" for name, value in fields)
    entry_points = "\n".join(f"[{group}]\n" + "".join(f"{name} = {target}\n" for name, target in members.items())
                             for group, members in PROJECT["entry-points"].items())
    return {
        "METADATA": head + "\n" + (ROOT / PROJECT["readme"]).read_text(encoding="utf-8"),
        "WHEEL": f"Wheel-Version: 1.0\nGenerator: viaduct\nRoot-Is-Purelib: false\nTag: {tag()}\n",
        "entry_points.txt": entry_points,
        LICENSE: (ROOT / LICENSE).read_text(encoding="utf-8"),
    }


def write_metadata(directory):
    """Writes the .dist-info directory, except RECORD, and returns its path."""
    info = pathlib.Path(directory) / f"{PROJECT['name']}-{version()}.dist-info"
    info.mkdir()
    for name, content in metadata_files().items():
        (info / name).write_text(content, encoding="utf-8")
    return info


def build_package(directory):
    """Builds the package and the libraries that it needs, and installs them in the directory viaduct of `directory`."""
    cmake = shutil.which("cmake")
    if cmake is None:
        sys.exit("cmake is missing; `./dev build` installs the packages that a build needs")
    build = ROOT / "build" / f"wheel-{tag()}"
    python = os.path.realpath(sys.executable)  # not that of a virtual environment, so that others can use the tree
    # The path in a library takes precedence over LD_LIBRARY_PATH as DT_RPATH: the modules need libraries of their own
    # version, and not those of another installation.
    linker = "-Wl,--disable-new-dtags"
    settings = ["-DCMAKE_BUILD_TYPE=Release", f"-DPython_EXECUTABLE={python}", f"-DPython3_EXECUTABLE={python}",
                "-DVIADUCT_TESTS=OFF", "-DVIADUCT_TOOLS=OFF", "-DVIADUCT_PYTHON=ON",
                "-DVIADUCT_PYTHON_INSTALLDIR=.", "-DCMAKE_INSTALL_LIBDIR=viaduct",
                f"-DCMAKE_SHARED_LINKER_FLAGS={linker}", f"-DCMAKE_MODULE_LINKER_FLAGS={linker}"]
    processors = os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL") or str(os.cpu_count() or 1)
    build.parent.mkdir(exist_ok=True)
    with open(f"{build}.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # until nobody else builds in this tree
        generator = ["-G", "Ninja"] if shutil.which("ninja") and not build.exists() else []
        for command in ([*generator, "-S", ROOT, "-B", build, *settings],
                        ["--build", build, "--parallel", processors],
                        *(["--install", build, "--prefix", directory, "--strip", "--component", component]
                          for component in ("libraries", "python"))):
            subprocess.run([cmake, *command], check=True)


def pack(directory, wheel):
    """Packs what is in a directory, whose metadata lack RECORD, as a wheel. The same files make the same wheel."""
    files = sorted(path for path in directory.rglob("*") if path.is_file())
    record = next(directory.glob("*.dist-info")) / "RECORD"
    table = io.StringIO()
    rows = csv.writer(table, lineterminator="\n")
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        def add(path, content):
            entry = zipfile.ZipInfo(str(path.relative_to(directory)))  # of 1980
            entry.external_attr = (0o100755 if path.suffix == ".so" or ".so." in path.name else 0o100644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
            return entry.filename
        for path in files:
            content = path.read_bytes()
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            rows.writerow([add(path, content), f"sha256={digest}", len(content)])
        rows.writerow([record.relative_to(directory), "", ""])
        add(record, table.getvalue())


# ---- The hooks -------------------------------------------------------------------------------------------------------

def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    return write_metadata(metadata_directory).name


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    name = f"{PROJECT['name']}-{version()}-{tag()}.whl"
    with tempfile.TemporaryDirectory() as directory:
        build_package(directory)
        write_metadata(directory)
        pack(pathlib.Path(directory), pathlib.Path(wheel_directory) / name)
    return name


def build_sdist(sdist_directory, config_settings=None):
    sys.exit("viaduct has no source distribution of its own: use a checkout, or an archive of one")
