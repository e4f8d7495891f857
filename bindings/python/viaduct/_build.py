# SPDX-License-Identifier: BSD-3-Clause
"""Checks that the extension modules were built for this version of Python."""
from __future__ import annotations

import importlib.machinery
import pathlib
import re
import sys


def _check(directory: pathlib.Path) -> None:
    """Raises ImportError if there are extension modules, but only for other versions."""
    built = [path.name[len("_core"):] for path in directory.glob("_core.*.so")]
    if not built or set(built) & set(importlib.machinery.EXTENSION_SUFFIXES):
        return
    versions = [re.sub(r"^\.cpython-(\d)(\d+)\w*-.*", r"Python \1.\2", suffix) for suffix in built]
    own = f"{sys.implementation.name} {sys.version_info.major}.{sys.version_info.minor}"
    raise ImportError(f"viaduct was built for {' and '.join(sorted(versions))}; this is {own}")


_check(pathlib.Path(__file__).parent)
