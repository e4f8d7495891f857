# SPDX-License-Identifier: BSD-3-Clause
"""Hosts and services."""
from __future__ import annotations

import typing

from viaduct import _core
from viaduct._arguments import checked
from viaduct.core.constants import Code
from viaduct.core.errors import error_of

Service = typing.Union[int, bytes]


@checked
def resolve(host: str | bytes) -> bytes:
    """Returns the address of a host, 4 or 16 bytes. A host is a name, an address in digits, or such bytes.

    Waits for the system's resolver if the host is a name. Raises Error(UNREACHABLE) if the host is not known.
    """
    if isinstance(host, bytes):
        return host
    addresses = _core.resolve_host(host)
    if not addresses:
        raise error_of("resolve", Code.UNREACHABLE, f"the host {host!r} is not known")
    return addresses[0]
