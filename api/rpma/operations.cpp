// SPDX-License-Identifier: BSD-3-Clause
// The functions that post operations. They do not check access: the device does, when it executes the operation.
#include <algorithm>
#include <atomic>
#include <limits>

#include "api/rpma/conn.hpp"
#include "api/rpma/conn_req.hpp"
#include "api/rpma/log.hpp"
#include "api/rpma/memory.hpp"
#include "api/rpma/srq.hpp"

using namespace viaduct;
using namespace viaduct::rpma;

namespace {

constexpr std::size_t max_length = std::numeric_limits<std::uint32_t>::max();

std::uint64_t to_context(const void* op_context) noexcept { return reinterpret_cast<std::uint64_t>(op_context); }

bool is_signaled(int flags) noexcept { return (flags & RPMA_F_COMPLETION_ALWAYS & ~RPMA_F_COMPLETION_ON_ERROR) != 0; }

/// Calls `post` with a part of a local region, as pieces. If the region is NULL, offset and length must be 0 and there
/// are no pieces.
template <class Post>
[[gnu::always_inline]] inline int with_pieces(const rpma_mr_local* region, std::size_t offset, std::size_t length,
                                              Post post) noexcept {
    const MrLocal* local = resolve<MrLocal>(region);
    if (local == nullptr) [[unlikely]]
        return region == nullptr && offset == 0 && length == 0 ? post(std::span<const Sge>()) : RPMA_E_INVAL;
    if (length > max_length) [[unlikely]]
        return RPMA_E_INVAL;
    const Sge piece = local->piece(offset, length);
    return post(std::span(&piece, 1));
}

/// The parameters of a request other than its buffers.
struct Kind {
    Opcode opcode = Opcode::Send;
    bool with_immediate = false;
    std::uint32_t immediate = 0;
};

// Each entry point builds its request field by field in one place, because this is the hot path.

[[gnu::always_inline]] inline int post_rdma(rpma_conn* conn, const Kind& kind, const rpma_mr_remote* remote,
                                            std::size_t remote_offset, const rpma_mr_local* local,
                                            std::size_t local_offset, std::size_t length, int flags,
                                            const void* op_context) noexcept {
    Conn* connection = resolve<Conn>(conn);
    if (connection == nullptr || flags == 0) return RPMA_E_INVAL;
    return with_pieces(local, local_offset, length, [&](std::span<const Sge> pieces) {
        RemoteAddress place;
        if (const MrRemote* target = resolve<MrRemote>(remote); target != nullptr && !pieces.empty())
            place = target->place(remote_offset);
        else if (!pieces.empty() || remote != nullptr || remote_offset != 0)
            return RPMA_E_INVAL;
        return connection->post(SendRequest{.context = to_context(op_context),
                                            .opcode = kind.opcode,
                                            .with_immediate = kind.with_immediate,
                                            .signaled = is_signaled(flags),
                                            .immediate = kind.immediate,
                                            .remote = place,
                                            .sges = pieces});
    });
}

[[gnu::always_inline]] inline int post_send(rpma_conn* conn, const Kind& kind, const rpma_mr_local* src,
                                            std::size_t offset, std::size_t length, int flags,
                                            const void* op_context) noexcept {
    Conn* connection = resolve<Conn>(conn);
    if (connection == nullptr || flags == 0) return RPMA_E_INVAL;
    return with_pieces(src, offset, length, [&](std::span<const Sge> pieces) {
        return connection->post(SendRequest{.context = to_context(op_context),
                                            .opcode = kind.opcode,
                                            .with_immediate = kind.with_immediate,
                                            .signaled = is_signaled(flags),
                                            .immediate = kind.immediate,
                                            .remote = {},
                                            .sges = pieces});
    });
}

/// Returns the usage of the region that this type of flush requires, or 0 for an unknown type.
int needed_usage(int type) noexcept {
    switch (type) {
        case RPMA_FLUSH_TYPE_PERSISTENT: return RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT;
        case RPMA_FLUSH_TYPE_VISIBILITY: return RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY;
        default: return 0;
    }
}

/// Logged only once, because programs that do this do it often.
void log_flush_beyond_region(
    const Message& message = "the flush range extends beyond the region and was truncated\n") noexcept {
    static std::atomic<bool> told{false};
    if (log_threshold() >= RPMA_LOG_LEVEL_DEBUG && !told.exchange(true)) log(RPMA_LOG_LEVEL_DEBUG, message);
}

}  // namespace

[[gnu::flatten]] int rpma_read(struct rpma_conn* conn, struct rpma_mr_local* dst, size_t dst_offset,
                               const struct rpma_mr_remote* src, size_t src_offset, size_t len, int flags,
                               const void* op_context) {
    return post_rdma(conn, {.opcode = Opcode::RdmaRead}, src, src_offset, dst, dst_offset, len, flags, op_context);
}

[[gnu::flatten]] int rpma_write(struct rpma_conn* conn, struct rpma_mr_remote* dst, size_t dst_offset,
                                const struct rpma_mr_local* src, size_t src_offset, size_t len, int flags,
                                const void* op_context) {
    return post_rdma(conn, {.opcode = Opcode::RdmaWrite}, dst, dst_offset, src, src_offset, len, flags, op_context);
}

int rpma_write_with_imm(struct rpma_conn* conn, struct rpma_mr_remote* dst, size_t dst_offset,
                        const struct rpma_mr_local* src, size_t src_offset, size_t len, int flags, uint32_t imm,
                        const void* op_context) {
    return post_rdma(conn, {.opcode = Opcode::RdmaWrite, .with_immediate = true, .immediate = imm}, dst, dst_offset,
                     src, src_offset, len, flags, op_context);
}

int rpma_atomic_write(struct rpma_conn* conn, struct rpma_mr_remote* dst, size_t dst_offset, const char src[8],
                      int flags, const void* op_context) {
    Conn* connection = resolve<Conn>(conn);
    const MrRemote* target = resolve<MrRemote>(dst);
    if (connection == nullptr || target == nullptr || src == nullptr || flags == 0) return RPMA_E_INVAL;
    if (dst_offset % RPMA_ATOMIC_WRITE_ALIGNMENT != 0) return RPMA_E_INVAL;
    const Sge piece{.address = const_cast<char*>(src), .key = 0, .length = RPMA_ATOMIC_WRITE_ALIGNMENT};
    // Fenced so that it is ordered after reads: the backend may implement flushes as reads.
    return connection->post(SendRequest{.context = to_context(op_context),
                                        .opcode = Opcode::AtomicWrite,
                                        .fence = true,
                                        .signaled = is_signaled(flags),
                                        .remote = target->place(dst_offset),
                                        .sges = {&piece, 1}});
}

int rpma_flush(struct rpma_conn* conn, struct rpma_mr_remote* dst, size_t dst_offset, size_t len,
               enum rpma_flush_type type, int flags, const void* op_context) {
    Conn* connection = resolve<Conn>(conn);
    const MrRemote* target = resolve<MrRemote>(dst);
    const int usage = needed_usage(type);
    if (connection == nullptr || target == nullptr || flags == 0 || usage == 0) return RPMA_E_INVAL;
    const bool persistent = usage == RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT;
    if (persistent && !connection->direct_write_to_pmem)
        return failed(
            {Code::Unsupported, "the peer's configuration does not declare direct write to persistent memory"});
    if ((target->flush_types() & usage) == 0)
        return failed({Code::Unsupported, "the usage of the region does not allow this flush"});
    if (target->reaches_beyond(dst_offset, len)) log_flush_beyond_region();
    return connection->post(SendRequest{.context = to_context(op_context),
                                        .opcode = Opcode::Flush,
                                        .signaled = is_signaled(flags),
                                        .flush_to = persistent ? FlushTarget::Persistence : FlushTarget::Visibility,
                                        .flush_bytes = target->bytes_to_flush(dst_offset, len),
                                        .remote = target->place(dst_offset),
                                        .sges = {}});
}

[[gnu::flatten]] int rpma_send(struct rpma_conn* conn, const struct rpma_mr_local* src, size_t offset, size_t len,
                               int flags, const void* op_context) {
    return post_send(conn, {.opcode = Opcode::Send}, src, offset, len, flags, op_context);
}

int rpma_send_with_imm(struct rpma_conn* conn, const struct rpma_mr_local* src, size_t offset, size_t len, int flags,
                       uint32_t imm, const void* op_context) {
    return post_send(conn, {.opcode = Opcode::Send, .with_immediate = true, .immediate = imm}, src, offset, len, flags,
                     op_context);
}

[[gnu::flatten]] int rpma_recv(struct rpma_conn* conn, struct rpma_mr_local* dst, size_t offset, size_t len,
                               const void* op_context) {
    Conn* connection = resolve<Conn>(conn);
    if (connection == nullptr) return RPMA_E_INVAL;
    return with_pieces(dst, offset, len, [&](std::span<const Sge> pieces) {
        return connection->post(ReceiveRequest{.context = to_context(op_context), .sges = pieces});
    });
}

int rpma_conn_req_recv(struct rpma_conn_req* req, struct rpma_mr_local* dst, size_t offset, size_t len,
                       const void* op_context) {
    ConnReq* request = resolve<ConnReq>(req);
    if (request == nullptr || dst == nullptr) return RPMA_E_INVAL;
    return with_pieces(dst, offset, len, [&](std::span<const Sge> pieces) {
        return request->conn().post(ReceiveRequest{.context = to_context(op_context), .sges = pieces});
    });
}

[[gnu::flatten]] int rpma_srq_recv(struct rpma_srq* srq, struct rpma_mr_local* dst, size_t offset, size_t len,
                                   const void* op_context) {
    const Srq* queue = resolve<Srq>(srq);
    if (queue == nullptr) return RPMA_E_INVAL;
    return with_pieces(dst, offset, len, [&](std::span<const Sge> pieces) {
        return result_of_post(queue->queue()->post_receive({.context = to_context(op_context), .sges = pieces}));
    });
}
