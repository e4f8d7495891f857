# SPDX-License-Identifier: BSD-3-Clause
"""Service numbers for the tests of the three APIs: ports, qualifiers, discriminators."""
import os
import socket
import threading

# The numbers are below those of viaduct.pytest_plugin and of the C programs.
FIRST, END, BLOCK = 1024, 10000, 64
_lock = threading.Lock()
_held = []  # the sockets by which other processes know which blocks are taken, as long as this one lives
_numbers, _owner = iter(()), 0


def _new_block():
    """Returns the numbers of a block that no other process on this host has. Begins somewhere else in each process, so
    that numbers are not used again soon."""
    blocks = (END - FIRST) // BLOCK
    for attempt in range(blocks):
        block = (os.getpid() * 17 + attempt) % blocks
        holder = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            holder.bind(f"\0viaduct-test-services-{block}")
        except OSError:
            holder.close()
            continue
        _held.append(holder)
        return iter(range(FIRST + block * BLOCK, FIRST + (block + 1) * BLOCK))
    raise RuntimeError("other processes use all service numbers")


def free_number():
    """Returns a number that no other test process uses meanwhile."""
    global _numbers, _owner
    with _lock:
        if _owner != os.getpid():  # a forked child has numbers of its own
            _numbers, _owner = iter(()), os.getpid()
        number = next(_numbers, None)
        if number is None:
            _numbers = _new_block()
            number = next(_numbers)
        return number
