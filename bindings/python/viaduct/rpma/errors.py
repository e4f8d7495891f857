# SPDX-License-Identifier: BSD-3-Clause
"""The exceptions of librpma."""
from __future__ import annotations

from viaduct import _rpma, errors
from viaduct._arguments import checked
from viaduct.rpma.constants import ErrorCode


class Error(errors.Error):
    """A call failed; `code` is an ErrorCode."""


class TimeoutError(Error, errors.TimeoutError):
    """The timeout of a call has expired; `code` is NO_EVENT or NO_COMPLETION."""


class ConnectError(Error):
    """No connection was established; `code` is the ConnEvent received instead of ESTABLISHED."""


class RequestError(Error):
    """An operation failed; `code` is the WcStatus of its completion."""


def error_of(call: str, code: int) -> Error:
    """Returns the exception for a failed call. The extension module calls it, too."""
    nothing_came = code in (ErrorCode.NO_EVENT, ErrorCode.NO_COMPLETION)
    member = ErrorCode(code)
    return (TimeoutError if nothing_came else Error)(call, member, f"RPMA_E_{member.name}", err_2str(code))


@checked
def err_2str(code: int) -> str:
    """Returns the description of an error code."""
    return _rpma.rpma_err_2str(code)
