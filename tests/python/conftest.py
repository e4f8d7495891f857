# SPDX-License-Identifier: BSD-3-Clause
"""Records which calls of the raw modules the tests make, and provides fixtures for the tests of all APIs."""
import importlib
import sys
import types

import pytest

pytest_plugins = ["viaduct.pytest_plugin"]


def functions_of(module):
    return [name for name, value in vars(module).items()
            if isinstance(value, types.BuiltinFunctionType) and not name.startswith("__")]


class Calls:
    """Records the calls made in the raw module of an API."""

    def __init__(self, api):
        self.module = importlib.import_module(f"viaduct._{api}")
        self.names = functions_of(self.module)
        self.called = set()
        for name in self.names:
            setattr(self.module, name, self.noting(name, getattr(self.module, name)))

    def noting(self, name, function):
        def call(*arguments, **options):
            self.called.add(name)
            return function(*arguments, **options)
        return call

    def uncalled(self):
        return sorted(set(self.names) - self.called)


@pytest.fixture(scope="session", autouse=True)
def watched():
    """Watches the raw module of each API from the first test on."""
    return {api: Calls(api) for api in ("vipl", "dat", "rpma")}


@pytest.fixture
def uncalled(watched):
    """uncalled("vipl"): the calls of the API that no test of this run has made."""
    return lambda api: watched[api].uncalled()


@pytest.fixture
def eager_threads():
    """Makes Python switch threads so often that their calls overlap."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(usual)
