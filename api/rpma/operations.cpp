// SPDX-License-Identifier: BSD-3-Clause
// The functions that post operations. They do not check access: the device does, when it executes the operation.
#include <atomic>
#include <limits>

#include "api/rpma/conn.hpp"
#include "api/rpma/conn_req.hpp"
#include "api/rpma/log.hpp"
#include "api/rpma/memory.hpp"
#include "api/rpma/srq.hpp"
#include "core/base/internals.hpp"

using namespace viaduct;
using namespace viaduct::rpma;

namespace {

constexpr const char* no_conn_or_flags = "conn is not a connection, or flags is 0";
constexpr std::size_t max_length = std::numeric_limits<std::uint32_t>::max();

std::uint64_t to_context(const void* op_context) noexcept { return reinterpret_cast<std::uint64_t>(op_context); }

bool is_signaled(int flags) noexcept { return (flags & RPMA_F_COMPLETION_ALWAYS & ~RPMA_F_COMPLETION_ON_ERROR) != 0; }

/// Calls `post` with a part of a local region, as pieces. If the region is NULL, offset and length must be 0 and there
/// are no pieces.
[[gnu::always_inline]] inline int with_pieces(const void* handle, const Call& call, const rpma_mr_local* region,
                                              std::size_t offset, std::size_t length, auto post) noexcept {
    const MrLocal* local = resolve<MrLocal>(region);
    if (local == nullptr) [[unlikely]] {
        if (region == nullptr && offset == 0 && length == 0) return post(std::span<const Sge>());
        return Entry::refuse(handle, "the local region is not valid, or it is NULL and offset or length is not 0",
                             call);
    }
    if (length > max_length) [[unlikely]]
        return Entry::refuse(handle, "the length exceeds 4 GiB - 1", call);
    const Sge piece = local->piece(offset, length);
    return post(std::span(&piece, 1));
}

/// The parameters of a request other than its buffers.
struct Kind {
    Opcode opcode = Opcode::Send;
    bool with_immediate = false;
    std::uint32_t immediate = 0;
};

// The entry points of common requests are short functions for a valid, signaled request with a local region. For all
// else, they call the functions below, which start from the beginning. A Call is a constant in memory, so that only a
// failure touches it.

[[gnu::always_inline]] inline int result_of(const Status* failure, const void* handle, const Call& call) noexcept {
    return failure == nullptr ? 0 : not_posted(*failure, handle, call);
}

/// Whether a request with these arguments may be of the common kind.
bool is_common(std::size_t length, int flags) noexcept { return length <= max_length && is_signaled(flags); }

[[gnu::always_inline]] inline int post_rdma(rpma_conn* conn, const Kind& kind, const rpma_mr_remote* remote,
                                            std::size_t remote_offset, const rpma_mr_local* local,
                                            std::size_t local_offset, std::size_t length, int flags,
                                            const void* op_context, const Call& call) noexcept {
    Conn* connection = resolve<Conn>(conn);
    if (connection == nullptr || flags == 0) return Entry::refuse(conn, no_conn_or_flags, call);
    return with_pieces(conn, call, local, local_offset, length, [&](std::span<const Sge> pieces) {
        RemoteAddress place;
        if (const MrRemote* target = resolve<MrRemote>(remote); target != nullptr && !pieces.empty())
            place = target->place(remote_offset);
        else if (!pieces.empty() || remote != nullptr || remote_offset != 0)
            return Entry::refuse(conn, "the remote region is not valid", call);
        return connection->post(SendRequest{.context = to_context(op_context),
                                            .opcode = kind.opcode,
                                            .with_immediate = kind.with_immediate,
                                            .signaled = is_signaled(flags),
                                            .immediate = kind.immediate,
                                            .remote = place,
                                            .sges = pieces},
                                call);
    });
}

[[gnu::always_inline]] inline int post_send(rpma_conn* conn, const Kind& kind, const rpma_mr_local* src,
                                            std::size_t offset, std::size_t length, int flags, const void* op_context,
                                            const Call& call = {}) noexcept {
    Conn* connection = resolve<Conn>(conn);
    if (connection == nullptr || flags == 0) return Entry::refuse(conn, no_conn_or_flags, call);
    return with_pieces(conn, call, src, offset, length, [&](std::span<const Sge> pieces) {
        return connection->post(SendRequest{.context = to_context(op_context),
                                            .opcode = kind.opcode,
                                            .with_immediate = kind.with_immediate,
                                            .signaled = is_signaled(flags),
                                            .immediate = kind.immediate,
                                            .remote = {},
                                            .sges = pieces},
                                call);
    });
}

// The entry points of common requests and, with the same arguments, their general case.

constexpr Call read_call("rpma_read");
constexpr Call write_call("rpma_write");
constexpr Call send_call("rpma_send");
constexpr Call receive_call("rpma_recv");

template <Opcode opcode>
constexpr const Call& rdma_call = opcode == Opcode::RdmaRead ? read_call : write_call;

template <Opcode opcode>
[[gnu::noinline]] int rdma_generally(rpma_conn* conn, const rpma_mr_local* local, std::size_t local_offset,
                                     const rpma_mr_remote* remote, std::size_t remote_offset, std::size_t len,
                                     int flags, const void* op_context) noexcept {
    return post_rdma(conn, {.opcode = opcode}, remote, remote_offset, local, local_offset, len, flags, op_context,
                     rdma_call<opcode>);
}

template <Opcode opcode>
[[gnu::always_inline]] inline int post_common_rdma(rpma_conn* conn, const rpma_mr_local* mr, std::size_t local_offset,
                                                   const rpma_mr_remote* peers_mr, std::size_t remote_offset,
                                                   std::size_t len, int flags, const void* op_context) noexcept {
    const auto generally = [&] {
        return rdma_generally<opcode>(conn, mr, local_offset, peers_mr, remote_offset, len, flags, op_context);
    };
    const Handles handles;
    const auto* connection = handles.resolve<Conn>(conn);
    if (connection == nullptr || !is_common(len, flags)) [[unlikely]]
        return generally();
    Endpoint* const endpoint = connection->established();
    const auto* remote = handles.resolve<MrRemote>(peers_mr);
    if (remote == nullptr || endpoint == nullptr) [[unlikely]]
        return generally();
    const auto* local = handles.resolve<MrLocal>(mr);
    if (local == nullptr) [[unlikely]]
        return generally();
    const Sge piece = local->piece(local_offset, len);
    const RemoteAddress place = remote->place(remote_offset);
    const Status* const failure = opcode == Opcode::RdmaRead
                                      ? Internals::read_one(*endpoint, to_context(op_context), piece, place)
                                      : Internals::write_one(*endpoint, to_context(op_context), piece, place);
    return result_of(failure, conn, rdma_call<opcode>);
}

[[gnu::noinline]] int send_generally(rpma_conn* conn, const rpma_mr_local* src, std::size_t offset, std::size_t len,
                                     int flags, const void* op_context) noexcept {
    return post_send(conn, {.opcode = Opcode::Send}, src, offset, len, flags, op_context, send_call);
}

[[gnu::noinline]] int receive_generally(rpma_conn* conn, const rpma_mr_local* dst, std::size_t offset, std::size_t len,
                                        const void* op_context) noexcept {
    Conn* connection = resolve<Conn>(conn);
    if (connection == nullptr) return Entry::refuse(conn, no_conn, receive_call);
    return with_pieces(conn, receive_call, dst, offset, len, [&](std::span<const Sge> pieces) {
        return connection->post(ReceiveRequest{.context = to_context(op_context), .sges = pieces}, receive_call);
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
void log_flush_beyond_region(const Call& call) noexcept {
    static std::atomic<bool> told{false};
    if (log_threshold() >= RPMA_LOG_LEVEL_DEBUG && !told.exchange(true))
        log(RPMA_LOG_LEVEL_DEBUG, call, "the flush range extends beyond the region and was truncated\n");
}

}  // namespace

int rpma_read(struct rpma_conn* conn, struct rpma_mr_local* dst, size_t dst_offset, const struct rpma_mr_remote* src,
              size_t src_offset, size_t len, int flags, const void* op_context) {
    return post_common_rdma<Opcode::RdmaRead>(conn, dst, dst_offset, src, src_offset, len, flags, op_context);
}

int rpma_write(struct rpma_conn* conn, struct rpma_mr_remote* dst, size_t dst_offset, const struct rpma_mr_local* src,
               size_t src_offset, size_t len, int flags, const void* op_context) {
    return post_common_rdma<Opcode::RdmaWrite>(conn, src, src_offset, dst, dst_offset, len, flags, op_context);
}

int rpma_write_with_imm(struct rpma_conn* conn, struct rpma_mr_remote* dst, size_t dst_offset,
                        const struct rpma_mr_local* src, size_t src_offset, size_t len, int flags, uint32_t imm,
                        const void* op_context) {
    static constexpr Call call;
    return post_rdma(conn, {.opcode = Opcode::RdmaWrite, .with_immediate = true, .immediate = imm}, dst, dst_offset,
                     src, src_offset, len, flags, op_context, call);
}

int rpma_atomic_write(struct rpma_conn* conn, struct rpma_mr_remote* dst, size_t dst_offset, const char src[8],
                      int flags, const void* op_context) {
    Conn* connection = resolve<Conn>(conn);
    const MrRemote* target = resolve<MrRemote>(dst);
    if (connection == nullptr || flags == 0) return Entry::refuse(conn, no_conn_or_flags);
    if (target == nullptr || src == nullptr) return Entry::refuse(conn, "dst is not a remote region, or src is NULL");
    if (dst_offset % RPMA_ATOMIC_WRITE_ALIGNMENT != 0) return Entry::refuse(conn, "dst_offset is not a multiple of 8");
    const Sge piece{.address = const_cast<char*>(src), .key = 0, .length = RPMA_ATOMIC_WRITE_ALIGNMENT};
    // Fenced so that it is ordered after reads: the backend may implement flushes as reads.
    return connection->post(SendRequest{.context = to_context(op_context),
                                        .opcode = Opcode::AtomicWrite,
                                        .fence = true,
                                        .signaled = is_signaled(flags),
                                        .remote = target->place(dst_offset),
                                        .sges = {&piece, 1}},
                            {});
}

int rpma_flush(struct rpma_conn* conn, struct rpma_mr_remote* dst, size_t dst_offset, size_t len,
               enum rpma_flush_type type, int flags, const void* op_context) {
    Conn* connection = resolve<Conn>(conn);
    const MrRemote* target = resolve<MrRemote>(dst);
    const int usage = needed_usage(type);
    if (connection == nullptr || flags == 0) return Entry::refuse(conn, no_conn_or_flags);
    if (target == nullptr || usage == 0) return Entry::refuse(conn, "dst is not a remote region, or type is unknown");
    const bool persistent = usage == RPMA_MR_USAGE_FLUSH_TYPE_PERSISTENT;
    const auto unsupported = [conn, call = Call()](const char* why) {
        return not_posted(Code::Unsupported, why, 0, conn, call);
    };
    if (persistent && !connection->direct_write_to_pmem)
        return unsupported("the peer's configuration does not declare direct write to persistent memory");
    if ((target->flush_types() & usage) == 0) return unsupported("the usage of the region does not allow this flush");
    if (target->reaches_beyond(dst_offset, len)) log_flush_beyond_region({});
    return connection->post(SendRequest{.context = to_context(op_context),
                                        .opcode = Opcode::Flush,
                                        .signaled = is_signaled(flags),
                                        .flush_to = persistent ? FlushTarget::Persistence : FlushTarget::Visibility,
                                        .flush_bytes = target->bytes_to_flush(dst_offset, len),
                                        .remote = target->place(dst_offset),
                                        .sges = {}},
                            {});
}

int rpma_send(struct rpma_conn* conn, const struct rpma_mr_local* src, size_t offset, size_t len, int flags,
              const void* op_context) {
    const Handles handles;
    const auto* connection = handles.resolve<Conn>(conn);
    if (connection == nullptr || !is_common(len, flags)) [[unlikely]]
        return send_generally(conn, src, offset, len, flags, op_context);
    Endpoint* const endpoint = connection->established();
    const auto* local = handles.resolve<MrLocal>(src);
    if (local == nullptr || endpoint == nullptr) [[unlikely]]
        return send_generally(conn, src, offset, len, flags, op_context);
    return result_of(Internals::send_one(*endpoint, to_context(op_context), local->piece(offset, len)), conn,
                     send_call);
}

int rpma_send_with_imm(struct rpma_conn* conn, const struct rpma_mr_local* src, size_t offset, size_t len, int flags,
                       uint32_t imm, const void* op_context) {
    static constexpr Call call;
    return post_send(conn, {.opcode = Opcode::Send, .with_immediate = true, .immediate = imm}, src, offset, len, flags,
                     op_context, call);
}

int rpma_recv(struct rpma_conn* conn, struct rpma_mr_local* dst, size_t offset, size_t len, const void* op_context) {
    const Handles handles;
    const auto* connection = handles.resolve<Conn>(conn);
    if (connection == nullptr || len > max_length) [[unlikely]]
        return receive_generally(conn, dst, offset, len, op_context);
    const auto* local = handles.resolve<MrLocal>(dst);
    if (local == nullptr) [[unlikely]]
        return receive_generally(conn, dst, offset, len, op_context);
    return result_of(Internals::receive_one(connection->endpoint(), to_context(op_context), local->piece(offset, len)),
                     conn, receive_call);
}

int rpma_conn_req_recv(struct rpma_conn_req* req, struct rpma_mr_local* dst, size_t offset, size_t len,
                       const void* op_context) {
    static constexpr Call call;
    ConnReq* request = resolve<ConnReq>(req);
    if (request == nullptr) return Entry::refuse(req, no_req, call);
    if (dst == nullptr) return Entry::refuse(req, "dst is NULL", call);
    return with_pieces(req, call, dst, offset, len, [&](std::span<const Sge> pieces) {
        return request->conn().post(ReceiveRequest{.context = to_context(op_context), .sges = pieces}, call);
    });
}

[[gnu::flatten]] int rpma_srq_recv(struct rpma_srq* srq, struct rpma_mr_local* dst, size_t offset, size_t len,
                                   const void* op_context) {
    static constexpr Call call;
    const Srq* queue = resolve<Srq>(srq);
    if (queue == nullptr) return Entry::refuse(srq, "srq is not a shared receive queue", call);
    return with_pieces(srq, call, dst, offset, len, [&](std::span<const Sge> pieces) {
        return result_of_post(queue->queue()->post_receive({.context = to_context(op_context), .sges = pieces}), srq,
                              call);
    });
}
