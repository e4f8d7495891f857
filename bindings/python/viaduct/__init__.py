# SPDX-License-Identifier: BSD-3-Clause
"""Viaduct for Python: VIPL, uDAPL and librpma over one core, for scripts and tests.

    viaduct.vipl    the Virtual Interface Provider Library
    viaduct.dat     DAT 2.0 (uDAPL)
    viaduct.rpma    librpma
    viaduct.core    the model that the three APIs share; the shortest way to write a test

Peers are processes of one host, which communicate over shared memory, or processes of any hosts, over RDMA devices or
TCP. The environment variable VIADUCT_BACKEND chooses one of them for the whole process: loopback, verbs or tcp. Without
it, each name and each address has its own.

Conventions of all four packages:

  Timeouts     are in seconds. None waits forever, 0 does not wait.
  Waiting      A call waits for another process or thread only where its description says so.
  Signals      Ctrl-C ends every wait within 0.1 seconds, with KeyboardInterrupt.
  Errors       A call that fails raises a subclass of viaduct.Error.
  Threads      Several threads may use an object at the same time.
  Closing      An object that holds resources has close(). A `with` block closes it at its end, and the garbage
               collector when nothing refers to it any more. What was created from an object is closed before it.
"""
from viaduct import _build as _build  # first, because it checks the version of Python
from viaduct._version import __version__ as __version__
from viaduct.errors import Error, TimeoutError
from viaduct.memory import alloc

__all__ = ["Error", "TimeoutError", "alloc"]
