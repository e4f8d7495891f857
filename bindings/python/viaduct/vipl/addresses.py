# SPDX-License-Identifier: BSD-3-Clause
"""Addresses of NICs and of their services."""
from __future__ import annotations

import typing

from viaduct import _vipl
from viaduct._services import service_bytes

Discriminator = typing.Union[int, str, bytes]


class NetAddress(typing.NamedTuple):
    """The address of a NIC, and a discriminator, which selects a service there (VIP_NET_ADDRESS).

    host             4 or 16 bytes
    discriminator    any bytes; two bytes, big-endian, are the port of librpma and the connection qualifier of DAT of
                     that number
    """
    host: bytes
    discriminator: bytes = b""


def discriminator_bytes(value: Discriminator) -> bytes:
    """Returns a discriminator as bytes: two bytes for a number, UTF-8 for text."""
    if isinstance(value, str):
        return value.encode()
    return service_bytes(value, "a discriminator is a number, text or bytes")


def from_raw_address(raw: _vipl.VIP_NET_ADDRESS) -> NetAddress:
    """Returns an address from the structure of C."""
    return NetAddress(raw.HostAddress[:raw.HostAddressLen], raw.HostAddress[raw.HostAddressLen:])
