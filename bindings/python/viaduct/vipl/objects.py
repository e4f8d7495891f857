# SPDX-License-Identifier: BSD-3-Clause
"""The base classes of the objects of VIPL."""
from __future__ import annotations

from viaduct import _core
from viaduct._lifetime import Resource


class Handled(Resource):
    """An object with a handle of VIPL. A closed object keeps its handle, which is no longer valid."""

    handle: int

    def __init__(self, own: _core.Owned, *parents: Resource) -> None:
        self._own = own
        self.handle = own.handle
        super().__init__(*parents)
        own.hand_over()

    def _release(self) -> None:
        self._own.end_once()
