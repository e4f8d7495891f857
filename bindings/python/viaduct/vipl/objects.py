# SPDX-License-Identifier: BSD-3-Clause
"""The base classes of the objects of VIPL."""
from __future__ import annotations

from viaduct._lifetime import Resource


class Handled(Resource):
    """An object with a handle of VIPL. A closed object keeps its handle, which is no longer valid."""

    handle: int

    def __init__(self, handle: int, *parents: Resource) -> None:
        self.handle = handle
        super().__init__(*parents)
