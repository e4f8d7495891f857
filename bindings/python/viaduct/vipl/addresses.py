# SPDX-License-Identifier: BSD-3-Clause
"""Addresses of NICs and of their services."""
from __future__ import annotations

import typing

from viaduct import _vipl

Discriminator = typing.Union[int, str, bytes]


class NetAddress(typing.NamedTuple):
    """The address of a NIC and a discriminator, which tells its services apart (VIP_NET_ADDRESS). One of two bytes is
    the same service as the port of librpma, or the connection qualifier of DAT, of that number, big endian."""
    host: bytes
    discriminator: bytes = b""


def discriminator_bytes(value: Discriminator) -> bytes:
    if isinstance(value, int):
        return value.to_bytes(2, "big")
    return value.encode() if isinstance(value, str) else value


def to_raw_address(address: NetAddress) -> _vipl.VIP_NET_ADDRESS:
    return _vipl.VIP_NET_ADDRESS(*address)


def from_raw_address(raw: _vipl.VIP_NET_ADDRESS) -> NetAddress:
    return NetAddress(raw.HostAddress[:raw.HostAddressLen], raw.HostAddress[raw.HostAddressLen:])
