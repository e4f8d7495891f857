# SPDX-License-Identifier: BSD-3-Clause
"""Viaduct: VIPL, uDAPL and librpma over one core, for scripts and tests.

    viaduct.vipl    the Virtual Interface Provider Library
    viaduct.dat     DAT 2.0 (uDAPL)
    viaduct.rpma    librpma
    viaduct.core    the model under them: the shortest way to a new test

All of them run over shared memory between the processes of one host, or over RDMA devices: the environment variable
VIADUCT_BACKEND says which (loopback, verbs).

Time-outs are in seconds; None waits for ever. Whatever holds resources has close(), and closes with `with` and when
nothing refers to it any more; what was made from it is closed first.
"""
from viaduct.errors import Error, TimeoutError
from viaduct.memory import alloc

__all__ = ["Error", "TimeoutError", "alloc"]
