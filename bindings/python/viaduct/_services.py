# SPDX-License-Identifier: BSD-3-Clause
"""Numbers of services: ports, connection qualifiers, discriminators of two bytes."""
from __future__ import annotations


def number_bytes(number: int) -> bytes:
    """Returns the two bytes of a service number. Raises OverflowError if it is out of range."""
    if not 0 <= number <= 65535:
        raise OverflowError(f"the number of a service is between 0 and 65535, not {number}") from None
    return number.to_bytes(2, "big")
