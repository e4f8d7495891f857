# SPDX-License-Identifier: BSD-3-Clause
"""Hosts and services."""
from __future__ import annotations

import typing

from viaduct import _core
from viaduct.core.constants import Code
from viaduct.core.errors import error_of

Service = typing.Union[int, bytes]


def service_bytes(service: Service) -> bytes:
    return service.to_bytes(2, "big") if isinstance(service, int) else service


def resolve(host: str | bytes) -> bytes:
    """The address of a host (4 or 16 bytes), given its name or its address. Raises Error(UNREACHABLE)."""
    if isinstance(host, bytes):
        return host
    addresses = _core.resolve_host(host)
    if not addresses:
        raise error_of("resolve", Code.UNREACHABLE, f"the host {host!r} is not known")
    return addresses[0]
