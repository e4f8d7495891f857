# SPDX-License-Identifier: BSD-3-Clause
"""Services as bytes: ports, connection qualifiers, discriminators."""
from __future__ import annotations


def service_bytes(service: int | bytes, expected: str = "a service is a number or bytes") -> bytes:
    """Returns a service as bytes, two for a number. Raises OverflowError if a number is negative or above 65535,
    TypeError if it is neither."""
    if isinstance(service, bytes):
        return service
    if not isinstance(service, int):
        raise TypeError(f"{expected}, not {type(service).__name__}") from None
    if not 0 <= service <= 65535:
        raise OverflowError(f"the number of a service is between 0 and 65535, not {service}") from None
    return service.to_bytes(2, "big")
