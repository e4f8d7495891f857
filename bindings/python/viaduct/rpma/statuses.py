# SPDX-License-Identifier: BSD-3-Clause
"""Descriptions of the outcomes of operations."""
from __future__ import annotations

from viaduct._enums import IntEnum

_TEXTS = {
    "SUCCESS": "done",
    "LOC_LEN_ERR": "lengths disagree, or the receive is too small",
    "LOC_QP_OP_ERR": "the request is malformed",
    "LOC_PROT_ERR": "the local region does not cover or allow the operation",
    "WR_FLUSH_ERR": "the connection ended before the operation was done",
    "LOC_ACCESS_ERR": "the local region does not allow the operation",
    "REM_INV_REQ_ERR": "the peer's receive failed",
    "REM_ACCESS_ERR": "the peer's region does not cover or allow the operation",
    "REM_OP_ERR": "the peer could not do its part",
    "RETRY_EXC_ERR": "the connection broke under way",
    "RNR_RETRY_EXC_ERR": "the peer posted no receive in time",
    "FATAL_ERR": "the device failed",
    "GENERAL_ERR": "something else",
}


class DescribedStatus(IntEnum):
    """The base class of WcStatus."""

    @property
    def text(self) -> str:
        """The description of the status."""
        return _TEXTS.get(self.name, "a failure that librpma's operations do not have")
