// SPDX-License-Identifier: BSD-3-Clause
#include <librpma.h>

#include "tools/info/errors.hpp"

namespace viaduct::info {
namespace {

#define VIADUCT_RETURN(code, meaning, causes, section) \
    { code, #code, "return code", meaning, causes, section }
#define VIADUCT_EVENT(code, meaning, causes) \
    { code, #code, "connection event", meaning, causes, "rpma_conn(3)" }
#define VIADUCT_STATUS(code, meaning, causes) \
    { code, #code, "status in struct ibv_wc", meaning, causes, "rpma_cq(3), ibv_poll_cq(3)" }

constexpr Explanation codes[] = {
    {0, "success", "return code", "The call succeeded.", "", "rpma_err(3)"},
    VIADUCT_RETURN(RPMA_E_UNKNOWN, "An error that has no other code.", "", "rpma_err(3)"),
    VIADUCT_RETURN(
        RPMA_E_NOSUPP, "The operation is not supported here.",
        "A persistent flush without rpma_peer_cfg_set_direct_write_to_pmem at the target, a flush of a region "
        "that was not registered for it, or an unknown kind of advice.",
        "rpma_remote_access(3), rpma_mr(3)"),
    VIADUCT_RETURN(RPMA_E_PROVIDER, "The layer below failed; errno and the log give the reason.",
                   "The address or the port cannot be used, no device reaches the host (vi-info --why HOST:PORT), a "
                   "queue is full, a size is above the limit of the device (vi-info DEVICE), the memory is not mapped, "
                   "or an object is still in use. Set VIADUCT_LOG=info or use rpma_log_set_function.",
                   "rpma_err(3), rpma_log(3)"),
    VIADUCT_RETURN(RPMA_E_NOMEM, "Out of memory.", "", "rpma_err(3)"),
    VIADUCT_RETURN(
        RPMA_E_INVAL, "An argument is invalid.",
        "A required pointer is NULL, an object was deleted or is of another kind, a size or flags is 0, or an "
        "offset is not aligned.",
        "rpma_err(3)"),
    VIADUCT_RETURN(RPMA_E_NO_COMPLETION, "No completion is available.",
                   "Not an error: the descriptor is nonblocking (O_NONBLOCK), or a signal interrupted the wait.",
                   "rpma_cq(3)"),
    VIADUCT_RETURN(RPMA_E_NO_EVENT, "No event or request is available.",
                   "Not an error: the descriptor is nonblocking (O_NONBLOCK), or a signal interrupted the wait.",
                   "rpma_conn(3), rpma_ep(3)"),
    VIADUCT_RETURN(RPMA_E_AGAIN, "A temporary failure: try again.", "", "rpma_err(3)"),
    VIADUCT_RETURN(RPMA_E_SHARED_CHANNEL, "The queue shares its completion channel with another one.",
                   "rpma_cq_wait or rpma_cq_get_fd was called for it. Use rpma_conn_wait and rpma_conn_get_compl_fd.",
                   "rpma_cq(3), rpma_conn_cfg(3)"),
    VIADUCT_RETURN(RPMA_E_NOT_SHARED_CHNL, "The connection has no shared completion channel.",
                   "rpma_conn_wait needs rpma_conn_cfg_set_compl_channel with true.", "rpma_conn(3), rpma_conn_cfg(3)"),

    VIADUCT_EVENT(RPMA_CONN_UNDEFINED, "There is no event.", ""),
    VIADUCT_EVENT(RPMA_CONN_ESTABLISHED, "The connection is established.", ""),
    VIADUCT_EVENT(RPMA_CONN_CLOSED, "The connection has ended.",
                  "Either side disconnected, or the peer deleted the connection or died."),
    VIADUCT_EVENT(RPMA_CONN_LOST, "The connection broke.",
                  "An operation of this side failed: the first completion with an error tells which. Later ones are "
                  "only flushed (IBV_WC_WR_FLUSH_ERR)."),
    VIADUCT_EVENT(
        RPMA_CONN_REJECTED, "The request was refused.",
        "Nobody listened at the port for VIADUCT_CONNECT_RETRY_MS, the server deleted the request, or it died. "
        "vi-info --why HOST:PORT tells whether there is a listener."),
    VIADUCT_EVENT(RPMA_CONN_UNREACHABLE, "The server did not answer in time.",
                  "It has the request but does not answer it, or the host does not answer. The time is that of "
                  "rpma_conn_cfg_set_timeout."),

    VIADUCT_STATUS(IBV_WC_SUCCESS, "The operation succeeded.", ""),
    VIADUCT_STATUS(IBV_WC_LOC_LEN_ERR, "A length does not fit.",
                   "A message is longer than the receive, or a transfer longer than the device allows."),
    VIADUCT_STATUS(IBV_WC_LOC_QP_OP_ERR, "The device could not execute the operation.", ""),
    VIADUCT_STATUS(IBV_WC_LOC_PROT_ERR, "The local memory does not allow the operation.",
                   "The region was deregistered, is shorter, or lacks the usage for the operation."),
    VIADUCT_STATUS(IBV_WC_WR_FLUSH_ERR, "The operation was not executed.",
                   "The connection ended first. Of the completions before it, the one with another error tells why."),
    VIADUCT_STATUS(IBV_WC_BAD_RESP_ERR, "The peer answered with something unexpected.", ""),
    VIADUCT_STATUS(IBV_WC_LOC_ACCESS_ERR, "The peer wrote to memory that does not allow it.", ""),
    VIADUCT_STATUS(IBV_WC_REM_INV_REQ_ERR, "The peer refused the request.",
                   "A message is longer than its receive, or the request does not fit the connection."),
    VIADUCT_STATUS(IBV_WC_REM_ACCESS_ERR, "The peer's memory does not allow the operation.",
                   "The region was deregistered, the range is longer than the region, or it was registered without "
                   "the usage for the operation."),
    VIADUCT_STATUS(IBV_WC_REM_OP_ERR, "The peer could not execute its part of the operation.",
                   "Its receive was too short, or its memory was deregistered or unmapped."),
    VIADUCT_STATUS(IBV_WC_RETRY_EXC_ERR, "The peer does not respond.",
                   "Its process or its host died, or a link is cut."),
    VIADUCT_STATUS(IBV_WC_RNR_RETRY_EXC_ERR, "The peer has posted no receive.", ""),
    VIADUCT_STATUS(IBV_WC_FATAL_ERR, "The device failed.", ""),
    VIADUCT_STATUS(IBV_WC_GENERAL_ERR, "An error that has no other status.", ""),
};

}  // namespace

std::span<const Explanation> rpma_codes() noexcept { return codes; }

}  // namespace viaduct::info
