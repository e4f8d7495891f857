# SPDX-License-Identifier: BSD-3-Clause
"""Numbers of services for the tests of the three APIs: ports, qualifiers, discriminators."""
import itertools
import os

_counter = itertools.count()


def free_number():
    """One that no other process of the tests uses, for a while. Processes that run at once have ids that are close to
    each other. Below the numbers of viaduct.pytest_plugin and of the programs in C."""
    return 1024 + (os.getpid() * 1409 + next(_counter)) % 8976
