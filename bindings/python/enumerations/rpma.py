# SPDX-License-Identifier: BSD-3-Clause
"""The enumerations of viaduct.rpma: see cmake/constants.py."""
ENUMERATIONS = [
    ("ErrorCode", "IntEnum", "RPMA_E_(.*)", "The reason why a call failed."),
    ("IbvContextType", "IntEnum", "RPMA_UTIL_IBV_CONTEXT_(.*)", """\
Selects the device that get_ibv_context() finds: the one that has the address (LOCAL), or the one that reaches it
(REMOTE)."""),
    ("MrUsage", "IntFlag", "RPMA_MR_USAGE_(.*)", """The uses of a region, in any combination.

READ_SRC, WRITE_DST                            peers read from it, write to it
READ_DST, WRITE_SRC                            Conn.read() writes to it, Conn.write() reads from it
SEND, RECV                                     messages are sent from it, received into it
FLUSH_TYPE_VISIBILITY, FLUSH_TYPE_PERSISTENT   peers flush their writes"""),
    ("ConnEvent", "IntEnum", "rpma_conn_event: RPMA_CONN_(.*)", """An event of a connection.

ESTABLISHED   it is established
CLOSED        one side disconnected, or the peer's process ended
LOST          it failed: an operation failed, or the device was removed
REJECTED      the peer refused, or there is no listener
UNREACHABLE   the peer could not be reached in time"""),
    ("Flags", "IntFlag", "RPMA_F_(COMPLETION_.*)",
     "Whether an operation has a completion only if it fails, or always."),
    ("FlushType", "IntEnum", "RPMA_FLUSH_TYPE_(.*)",
     "The guarantee of a flush. PERSISTENT: the data survive a loss of power; VISIBILITY: all observers see them."),
    ("WcStatus", "viaduct.rpma.statuses.DescribedStatus", "ibv_wc_status: IBV_WC_(.*)",
     "The outcome of an operation. `text` is its description."),
    ("WcOpcode", "IntEnum", "ibv_wc_opcode: IBV_WC_(.*)",
     "The operation that a completion reports. A flush is RDMA_READ, an atomic write RDMA_WRITE."),
    ("WcFlags", "IntFlag", "ibv_wc_flags: IBV_WC_(.*)", "Bits of Completion.wc_flags. WITH_IMM: imm_data is valid."),
    ("AdviseMr", "IntEnum", "IBV_ADVISE_MR_ADVICE_(.*)",
     "The advice for MrLocal.advise(): the memory will be read or written soon, or read without page faults."),
    ("AdviseMrFlags", "IntFlag", "IBV_ADVISE_MR_FLAG_(.*)",
     "Flags of MrLocal.advise(). FLUSH: it returns only when the advice was followed."),
    ("LogLevel", "IntEnum", "rpma_log_level: RPMA_LOG_(?:LEVEL_)?(.*)",
     "Levels of log messages. DISABLED is a threshold only."),
    ("LogThreshold", "IntEnum", "rpma_log_threshold: RPMA_LOG_(?:THRESHOLD_)?(.*)", """\
Thresholds of the log. THRESHOLD: less severe messages are dropped. AUX: the default function also writes
messages up to this level to stderr."""),
]
