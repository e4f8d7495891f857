# SPDX-License-Identifier: BSD-3-Clause
"""What the objects of VIPL have in common."""
from __future__ import annotations

from viaduct._lifetime import Resource


class Handled(Resource):
    """An object with a handle of VIPL. A closed object keeps its handle, which is no longer valid."""

    handle: int

    def __init__(self, handle: int, *parents: Resource) -> None:
        self.handle = handle
        super().__init__(*parents)
