// SPDX-License-Identifier: BSD-3-Clause
#include "api/rpma/translate.hpp"

#include <arpa/inet.h>

#include <array>
#include <cerrno>

namespace viaduct::rpma {

int to_result(const Status& status) noexcept {
    switch (status.code()) {
        case Code::Ok: return 0;
        case Code::WouldBlock: return RPMA_E_NO_EVENT;
        case Code::NoResources:
            // The manual pages allow RPMA_E_NOMEM only for memory; file descriptors, for example, are RPMA_E_PROVIDER.
            return status.sys_errno() == 0 || status.sys_errno() == ENOMEM ? RPMA_E_NOMEM : RPMA_E_PROVIDER;
        case Code::Unsupported: return RPMA_E_NOSUPP;
        case Code::InvalidParameter:
        case Code::InvalidState:
        case Code::InvalidReliability:
        case Code::InvalidTransferSize:
        case Code::InvalidQos:
        case Code::InvalidRdmaRead:
        case Code::Busy:
        case Code::QueueFull:
        case Code::TimedOut:
        case Code::NoListener:
        case Code::Rejected:
        case Code::Unreachable:
        case Code::PermissionDenied:
        case Code::SystemError: return RPMA_E_PROVIDER;
    }
    return RPMA_E_UNKNOWN;
}

rpma_conn_event to_event(const ConnectionEvent& event) noexcept {
    switch (event.kind) {
        case ConnectionEventKind::Established: return RPMA_CONN_ESTABLISHED;
        case ConnectionEventKind::Rejected:
        case ConnectionEventKind::Conflict: return RPMA_CONN_REJECTED;
        case ConnectionEventKind::TimedOut:
        case ConnectionEventKind::Unreachable: return RPMA_CONN_UNREACHABLE;
        case ConnectionEventKind::Disconnected: return RPMA_CONN_CLOSED;
        case ConnectionEventKind::Lost:
            // If the peer is gone, the connection is closed, for whatever reason: on a real device the kernel
            // disconnects for a dead process, and programs regard that as a normal end.
            return event.reason == Code::Unreachable ? RPMA_CONN_CLOSED : RPMA_CONN_LOST;
    }
    return RPMA_CONN_UNDEFINED;
}

Access to_access(int usage) noexcept {
    const auto has_any = [usage](int bits) { return (usage & bits) != 0; };
    return {
        .remote_write = has_any(RPMA_MR_USAGE_WRITE_DST),
        // A flush of librpma reads the written data.
        .remote_read =
            has_any(RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY | RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT),
        .local_write =
            has_any(RPMA_MR_USAGE_READ_DST | RPMA_MR_USAGE_WRITE_SRC | RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_RECV),
    };
}

Named<ibv_wc_status> to_wc_status(CompletionCode code) noexcept {
    switch (code) {
        case CompletionCode::Success: return VIADUCT_NAMED(IBV_WC_SUCCESS);
        case CompletionCode::LocalFormat: return VIADUCT_NAMED(IBV_WC_LOC_QP_OP_ERR);
        case CompletionCode::LocalLength: return VIADUCT_NAMED(IBV_WC_LOC_LEN_ERR);
        case CompletionCode::LocalProtection: return VIADUCT_NAMED(IBV_WC_LOC_PROT_ERR);
        case CompletionCode::RemoteProtection: return VIADUCT_NAMED(IBV_WC_REM_ACCESS_ERR);
        case CompletionCode::RemoteOperation: return VIADUCT_NAMED(IBV_WC_REM_OP_ERR);
        case CompletionCode::RemoteLength: return VIADUCT_NAMED(IBV_WC_REM_INV_REQ_ERR);
        case CompletionCode::Transport: return VIADUCT_NAMED(IBV_WC_RETRY_EXC_ERR);
        case CompletionCode::PartialMessage:  // on InfiniBand it never completes and is flushed
        case CompletionCode::Flushed: return VIADUCT_NAMED(IBV_WC_WR_FLUSH_ERR);
    }
    return VIADUCT_NAMED(IBV_WC_GENERAL_ERR);
}

namespace {

constexpr ibv_wc_opcode to_wc_opcode(CompletedOperation operation) noexcept {
    switch (operation) {
        case CompletedOperation::Send: return IBV_WC_SEND;
        // librpma implements atomic writes as writes and flushes as reads.
        case CompletedOperation::RdmaWrite:
        case CompletedOperation::AtomicWrite: return IBV_WC_RDMA_WRITE;
        case CompletedOperation::RdmaRead:
        case CompletedOperation::Flush: return IBV_WC_RDMA_READ;
        case CompletedOperation::BindWindow: return IBV_WC_BIND_MW;
        case CompletedOperation::FetchAdd: return IBV_WC_FETCH_ADD;
        case CompletedOperation::CompareSwap: return IBV_WC_COMP_SWAP;
        case CompletedOperation::Receive: return IBV_WC_RECV;
        case CompletedOperation::ReceiveRdmaWrite: return IBV_WC_RECV_RDMA_WITH_IMM;
    }
    return IBV_WC_SEND;
}

constexpr auto wc_opcodes = [] {
    std::array<ibv_wc_opcode, static_cast<std::size_t>(CompletedOperation::ReceiveRdmaWrite) + 1> opcodes{};
    for (std::size_t i = 0; i < opcodes.size(); ++i) opcodes[i] = to_wc_opcode(static_cast<CompletedOperation>(i));
    return opcodes;
}();

}  // namespace

void write_wc(const Completion& completion, ibv_wc_status status, ibv_wc& wc) noexcept {
    wc.wr_id = completion.context;
    wc.status = status;
    wc.opcode = wc_opcodes[static_cast<std::size_t>(completion.operation)];
    wc.vendor_err = 0;
    wc.byte_len = completion.bytes;
    wc.imm_data = 0;
    wc.qp_num = static_cast<std::uint32_t>(completion.endpoint_context);
    wc.src_qp = 0;
    wc.wc_flags = 0;
    wc.pkey_index = 0;
    wc.slid = 0;
    wc.sl = 0;
    wc.dlid_path_bits = 0;
    if (!completion.with_immediate) [[likely]]
        return;
    wc.imm_data = htonl(completion.immediate);
    if (completion.queue() == QueueKind::Receive) wc.wc_flags = IBV_WC_WITH_IMM;
}

}  // namespace viaduct::rpma
