# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of all APIs expect: errors, and that nothing leaks."""
import contextlib
import gc
import os

import pytest
import viaduct


@contextlib.contextmanager
def fails(code, subtype=None):
    """The block must raise the error with this code, which tells the API. Only errors of DAT have a subtype."""
    with pytest.raises(viaduct.Error) as raised:
        yield raised
    assert raised.value.code is code, raised.value
    assert subtype is None or raised.value.subtype is subtype, raised.value


def resources():
    """Returns how many descriptors, mappings and Python objects this process has."""
    gc.collect()
    with open("/proc/self/maps", encoding="ascii") as maps:
        return len(os.listdir("/proc/self/fd")), sum(1 for _ in maps), len(gc.get_objects())


def leak_nothing(cycle, cycles, more_mappings=8, more_objects=100):
    """Calls cycle() repeatedly, after which the process must have no more resources than after the first calls. Arenas
    of the allocator vary, and Python keeps some objects."""
    for _ in range(20):
        cycle()
    before = resources()
    for _ in range(cycles):
        cycle()
    descriptors, mappings, objects = (now - then for now, then in zip(resources(), before))
    assert descriptors <= 0
    assert mappings <= more_mappings
    assert objects <= more_objects
