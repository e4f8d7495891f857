# SPDX-License-Identifier: BSD-3-Clause
"""Numbers of services, and the modules that these tests share with others."""
import pathlib
import sys

import pytest

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path += [str(TESTS / "matrix"), str(TESTS / "python")]
from services import free_number  # noqa: E402: in tests/python


@pytest.fixture
def service():
    return free_number()
