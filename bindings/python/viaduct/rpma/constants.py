# SPDX-License-Identifier: BSD-3-Clause
"""The enumerations and constants of librpma."""
from __future__ import annotations

from viaduct import _rpma
from viaduct._enums import IntEnum, IntFlag

DEFAULT_TIMEOUT_MS = _rpma.RPMA_DEFAULT_TIMEOUT_MS
"""The default of ConnCfg.timeout_ms, in milliseconds."""


class ErrorCode(IntEnum):
    """The reason why a call failed."""
    UNKNOWN = _rpma.RPMA_E_UNKNOWN
    NOSUPP = _rpma.RPMA_E_NOSUPP
    PROVIDER = _rpma.RPMA_E_PROVIDER
    NOMEM = _rpma.RPMA_E_NOMEM
    INVAL = _rpma.RPMA_E_INVAL
    NO_COMPLETION = _rpma.RPMA_E_NO_COMPLETION
    NO_EVENT = _rpma.RPMA_E_NO_EVENT
    AGAIN = _rpma.RPMA_E_AGAIN
    SHARED_CHANNEL = _rpma.RPMA_E_SHARED_CHANNEL
    NOT_SHARED_CHNL = _rpma.RPMA_E_NOT_SHARED_CHNL


class IbvContextType(IntEnum):
    """Selects the device that get_ibv_context() finds: the one that has the address (LOCAL), or the one that reaches it
    (REMOTE).
    """
    LOCAL = _rpma.RPMA_UTIL_IBV_CONTEXT_LOCAL
    REMOTE = _rpma.RPMA_UTIL_IBV_CONTEXT_REMOTE


class MrUsage(IntFlag):
    """The uses of a region, in any combination.

    READ_SRC, WRITE_DST                            peers read from it, write to it
    READ_DST, WRITE_SRC                            Conn.read() writes to it, Conn.write() reads from it
    SEND, RECV                                     messages are sent from it, received into it
    FLUSH_TYPE_VISIBILITY, FLUSH_TYPE_PERSISTENT   peers flush their writes
    """
    READ_SRC = _rpma.RPMA_MR_USAGE_READ_SRC
    READ_DST = _rpma.RPMA_MR_USAGE_READ_DST
    WRITE_SRC = _rpma.RPMA_MR_USAGE_WRITE_SRC
    WRITE_DST = _rpma.RPMA_MR_USAGE_WRITE_DST
    FLUSH_TYPE_VISIBILITY = _rpma.RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY
    FLUSH_TYPE_PERSISTENT = _rpma.RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT
    SEND = _rpma.RPMA_MR_USAGE_SEND
    RECV = _rpma.RPMA_MR_USAGE_RECV


class ConnEvent(IntEnum):
    """An event of a connection.

    ESTABLISHED   it is established
    CLOSED        one side disconnected, or the peer's process ended
    LOST          it failed: an operation failed, or the device was removed
    REJECTED      the peer refused, or there is no listener
    UNREACHABLE   the peer could not be reached in time
    """
    UNDEFINED = _rpma.RPMA_CONN_UNDEFINED
    ESTABLISHED = _rpma.RPMA_CONN_ESTABLISHED
    CLOSED = _rpma.RPMA_CONN_CLOSED
    LOST = _rpma.RPMA_CONN_LOST
    REJECTED = _rpma.RPMA_CONN_REJECTED
    UNREACHABLE = _rpma.RPMA_CONN_UNREACHABLE


class Flags(IntFlag):
    """Whether an operation has a completion only if it fails, or always."""
    COMPLETION_ON_ERROR = _rpma.RPMA_F_COMPLETION_ON_ERROR
    COMPLETION_ALWAYS = _rpma.RPMA_F_COMPLETION_ALWAYS


class FlushType(IntEnum):
    """The guarantee of a flush. PERSISTENT: the data survive a loss of power; VISIBILITY: all observers see them."""
    PERSISTENT = _rpma.RPMA_FLUSH_TYPE_PERSISTENT
    VISIBILITY = _rpma.RPMA_FLUSH_TYPE_VISIBILITY


class WcStatus(IntEnum):
    """The outcome of an operation. `text` is its description."""
    SUCCESS = _rpma.IBV_WC_SUCCESS
    LOC_LEN_ERR = _rpma.IBV_WC_LOC_LEN_ERR
    LOC_QP_OP_ERR = _rpma.IBV_WC_LOC_QP_OP_ERR
    LOC_EEC_OP_ERR = _rpma.IBV_WC_LOC_EEC_OP_ERR
    LOC_PROT_ERR = _rpma.IBV_WC_LOC_PROT_ERR
    WR_FLUSH_ERR = _rpma.IBV_WC_WR_FLUSH_ERR
    MW_BIND_ERR = _rpma.IBV_WC_MW_BIND_ERR
    BAD_RESP_ERR = _rpma.IBV_WC_BAD_RESP_ERR
    LOC_ACCESS_ERR = _rpma.IBV_WC_LOC_ACCESS_ERR
    REM_INV_REQ_ERR = _rpma.IBV_WC_REM_INV_REQ_ERR
    REM_ACCESS_ERR = _rpma.IBV_WC_REM_ACCESS_ERR
    REM_OP_ERR = _rpma.IBV_WC_REM_OP_ERR
    RETRY_EXC_ERR = _rpma.IBV_WC_RETRY_EXC_ERR
    RNR_RETRY_EXC_ERR = _rpma.IBV_WC_RNR_RETRY_EXC_ERR
    LOC_RDD_VIOL_ERR = _rpma.IBV_WC_LOC_RDD_VIOL_ERR
    REM_INV_RD_REQ_ERR = _rpma.IBV_WC_REM_INV_RD_REQ_ERR
    REM_ABORT_ERR = _rpma.IBV_WC_REM_ABORT_ERR
    INV_EECN_ERR = _rpma.IBV_WC_INV_EECN_ERR
    INV_EEC_STATE_ERR = _rpma.IBV_WC_INV_EEC_STATE_ERR
    FATAL_ERR = _rpma.IBV_WC_FATAL_ERR
    RESP_TIMEOUT_ERR = _rpma.IBV_WC_RESP_TIMEOUT_ERR
    GENERAL_ERR = _rpma.IBV_WC_GENERAL_ERR
    TM_ERR = _rpma.IBV_WC_TM_ERR
    TM_RNDV_INCOMPLETE = _rpma.IBV_WC_TM_RNDV_INCOMPLETE

    @property
    def text(self) -> str:
        """The description of the status."""
        return _STATUS_TEXTS.get(self, "a failure that librpma's operations do not have")


_STATUS_TEXTS = {
    WcStatus.SUCCESS: "done",
    WcStatus.LOC_LEN_ERR: "lengths disagree, or the receive is too small",
    WcStatus.LOC_QP_OP_ERR: "the request is malformed",
    WcStatus.LOC_PROT_ERR: "the local region does not cover or allow the operation",
    WcStatus.WR_FLUSH_ERR: "the connection ended before the operation was done",
    WcStatus.LOC_ACCESS_ERR: "the local region does not allow the operation",
    WcStatus.REM_INV_REQ_ERR: "the peer's receive failed",
    WcStatus.REM_ACCESS_ERR: "the peer's region does not cover or allow the operation",
    WcStatus.REM_OP_ERR: "the peer could not do its part",
    WcStatus.RETRY_EXC_ERR: "the connection broke under way",
    WcStatus.RNR_RETRY_EXC_ERR: "the peer posted no receive in time",
    WcStatus.FATAL_ERR: "the device failed",
    WcStatus.GENERAL_ERR: "something else",
}


class WcOpcode(IntEnum):
    """The operation that a completion reports. A flush is RDMA_READ, an atomic write RDMA_WRITE."""
    SEND = _rpma.IBV_WC_SEND
    RDMA_WRITE = _rpma.IBV_WC_RDMA_WRITE
    RDMA_READ = _rpma.IBV_WC_RDMA_READ
    COMP_SWAP = _rpma.IBV_WC_COMP_SWAP
    FETCH_ADD = _rpma.IBV_WC_FETCH_ADD
    BIND_MW = _rpma.IBV_WC_BIND_MW
    LOCAL_INV = _rpma.IBV_WC_LOCAL_INV
    TSO = _rpma.IBV_WC_TSO
    ATOMIC_WRITE = _rpma.IBV_WC_ATOMIC_WRITE
    RECV = _rpma.IBV_WC_RECV
    RECV_RDMA_WITH_IMM = _rpma.IBV_WC_RECV_RDMA_WITH_IMM
    TM_ADD = _rpma.IBV_WC_TM_ADD
    TM_DEL = _rpma.IBV_WC_TM_DEL
    TM_SYNC = _rpma.IBV_WC_TM_SYNC
    TM_RECV = _rpma.IBV_WC_TM_RECV
    TM_NO_TAG = _rpma.IBV_WC_TM_NO_TAG
    DRIVER1 = _rpma.IBV_WC_DRIVER1
    DRIVER2 = _rpma.IBV_WC_DRIVER2
    DRIVER3 = _rpma.IBV_WC_DRIVER3


class WcFlags(IntFlag):
    """Bits of Completion.wc_flags. WITH_IMM: imm_data is valid."""
    GRH = _rpma.IBV_WC_GRH
    WITH_IMM = _rpma.IBV_WC_WITH_IMM
    IP_CSUM_OK = _rpma.IBV_WC_IP_CSUM_OK
    WITH_INV = _rpma.IBV_WC_WITH_INV
    TM_SYNC_REQ = _rpma.IBV_WC_TM_SYNC_REQ
    TM_MATCH = _rpma.IBV_WC_TM_MATCH
    TM_DATA_VALID = _rpma.IBV_WC_TM_DATA_VALID


class AdviseMr(IntEnum):
    """The advice for MrLocal.advise(): the memory will be read or written soon, or read without page faults."""
    PREFETCH = _rpma.IBV_ADVISE_MR_ADVICE_PREFETCH
    PREFETCH_WRITE = _rpma.IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE
    PREFETCH_NO_FAULT = _rpma.IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT


class AdviseMrFlags(IntFlag):
    """Flags of MrLocal.advise(). FLUSH: it returns only when the advice was followed."""
    FLUSH = _rpma.IBV_ADVISE_MR_FLAG_FLUSH


class LogLevel(IntEnum):
    """Levels of log messages. DISABLED is a threshold only."""
    DISABLED = _rpma.RPMA_LOG_DISABLED
    FATAL = _rpma.RPMA_LOG_LEVEL_FATAL
    ERROR = _rpma.RPMA_LOG_LEVEL_ERROR
    WARNING = _rpma.RPMA_LOG_LEVEL_WARNING
    NOTICE = _rpma.RPMA_LOG_LEVEL_NOTICE
    INFO = _rpma.RPMA_LOG_LEVEL_INFO
    DEBUG = _rpma.RPMA_LOG_LEVEL_DEBUG


class LogThreshold(IntEnum):
    """Thresholds of the log. THRESHOLD: less severe messages are dropped. AUX: the default function also writes
    messages up to this level to stderr."""
    THRESHOLD = _rpma.RPMA_LOG_THRESHOLD
    AUX = _rpma.RPMA_LOG_THRESHOLD_AUX
