# SPDX-License-Identifier: BSD-3-Clause
"""Service numbers for the tests of the three APIs: ports, qualifiers, discriminators."""
import itertools
import os
import socket
import threading

# The numbers are below those of viaduct.pytest_plugin and of the C programs.
FIRST, END, BLOCK = 1024, 10000, 256
_lock = threading.Lock()
_numbers, _owner, _holder = None, 0, None


def _take_block():
    """Takes a block of numbers that no other process on this host has, as long as this process lives."""
    global _numbers, _owner, _holder
    blocks = (END - FIRST) // BLOCK
    for attempt in range(blocks):
        block = (os.getpid() + attempt) % blocks
        holder = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            holder.bind(f"\0viaduct-test-services-{block}")
        except OSError:
            holder.close()
            continue
        _owner, _holder = os.getpid(), (holder, _holder)  # a parent's block is taken as long as its children live
        _numbers = itertools.cycle(range(FIRST + block * BLOCK, FIRST + (block + 1) * BLOCK))
        return
    raise RuntimeError("other processes use all service numbers")


def free_number():
    """Returns a number that no other test process uses, and that this one has not used for some time."""
    with _lock:
        if _owner != os.getpid():  # a forked child has numbers of its own
            _take_block()
        return next(_numbers)
