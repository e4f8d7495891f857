# SPDX-License-Identifier: BSD-3-Clause
"""What viaduct.dat.structures, which is made from the headers, begins with."""
from __future__ import annotations

import dataclasses
import enum
import typing

from viaduct.dat.constants import ProxyType

Address = typing.Tuple[str, int]  # an address in digits, and a port
NamedAttr = typing.Tuple[str, str]
S = typing.TypeVar("S", bound="Structure")


class RmrTriplet(typing.NamedTuple):
    """A piece of the peer's memory."""
    virtual_address: int
    segment_length: int
    rmr_context: int


class _LmrTriplet(typing.NamedTuple):
    virtual_address: int
    segment_length: int
    lmr_context: int


class LmrTriplet(_LmrTriplet):
    """A piece of local memory. A piece created by an Lmr keeps the region open; its `view` is the memory."""
    view: memoryview
    lmr: object


@dataclasses.dataclass
class Structure:
    """A dataclass created from the output of the library."""

    @classmethod
    def _of(cls: type[S], raw: dict[str, typing.Any]) -> S:
        """Returns the structure for a dictionary of fields. A field whose default is a member of an enumeration, or a
        structure, gets a value of that type."""
        values = dict(raw)
        for field in dataclasses.fields(cls):
            if isinstance(field.default, enum.Enum):
                values[field.name] = type(field.default)(raw[field.name])
            elif isinstance(field.default_factory, type) and issubclass(field.default_factory, Structure):
                values[field.name] = field.default_factory._of(raw[field.name])
        return cls(**values)


@dataclasses.dataclass
class CnoParam(Structure):
    """The parameters of a consumer notification object. proxy: a callable, a file descriptor, or None."""
    ia_handle: int = 0
    proxy_type: ProxyType = ProxyType.NONE
    proxy: typing.Any = None
