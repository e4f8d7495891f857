# SPDX-License-Identifier: BSD-3-Clause
"""What the objects of VIPL have in common."""
from __future__ import annotations

from viaduct._lifetime import Resource


class Handled(Resource):
    """What has a handle in VIPL. One that is closed keeps its own, which is invalid then, as calls tell."""

    handle: int

    def __init__(self, handle: int, *parents: Resource) -> None:
        self.handle = handle
        super().__init__(*parents)
