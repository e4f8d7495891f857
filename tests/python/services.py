# SPDX-License-Identifier: BSD-3-Clause
"""Service numbers for the tests of the three APIs: ports, qualifiers, discriminators."""
import itertools
import os

_counter = itertools.count()


def free_number():
    """Returns a number that no other test process uses for some time. Concurrent processes have similar ids. The
    numbers are below those of viaduct.pytest_plugin and of the C programs."""
    return 1024 + (os.getpid() * 1409 + next(_counter)) % 8976
