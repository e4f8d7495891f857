// SPDX-License-Identifier: BSD-3-Clause
// The data path of endpoints. The device checks access to regions when it executes a request.
#include "api/udat/provider/ep.hpp"
#include "api/udat/provider/ia.hpp"
#include "api/udat/provider/rmr.hpp"
#include "api/udat/provider/segments.hpp"
#include "api/udat/provider/table.hpp"

namespace viaduct::dat {
namespace {

constexpr int request_flags = DAT_COMPLETION_SUPPRESS_FLAG | DAT_COMPLETION_SOLICITED_WAIT_FLAG |
                              DAT_COMPLETION_UNSIGNALLED_FLAG | DAT_COMPLETION_BARRIER_FENCE_FLAG;

struct CountedAs {
    int requests;
    int bytes;  // -1 for requests of a fixed size
};

/// Returns the counters of the endpoint for a send queue request.
CountedAs counted_as(const SendRequest& request) noexcept {
    switch (request.opcode) {
        case Opcode::RdmaWrite:
            return request.with_immediate ? CountedAs{DCNT_EP_POST_WRITE_IMM, DCNT_EP_POST_WRITE_IMM_DATA}
                                          : CountedAs{DCNT_EP_POST_WRITE, DCNT_EP_POST_WRITE_DATA};
        case Opcode::RdmaRead: return {DCNT_EP_POST_READ, DCNT_EP_POST_READ_DATA};
        case Opcode::FetchAdd: return {DCNT_EP_POST_FETCH_ADD, -1};
        case Opcode::CompareSwap: return {DCNT_EP_POST_CMP_SWAP, -1};
        default: return {DCNT_EP_POST_SEND, DCNT_EP_POST_SEND_DATA};
    }
}

/// Returns the counters of the endpoint for a completed receive.
CountedAs counted_as(const Completion& completion) noexcept {
    if (completion.operation == CompletedOperation::ReceiveRdmaWrite)
        return {DCNT_EP_RECV_RDMA_IMM, DCNT_EP_RECV_RDMA_IMM_DATA};
    return completion.with_immediate ? CountedAs{DCNT_EP_RECV_IMM, DCNT_EP_RECV_IMM_DATA}
                                     : CountedAs{DCNT_EP_RECV, DCNT_EP_RECV_DATA};
}

/// Discards unwanted completions to make room for others.
[[gnu::cold, gnu::noinline]] void discard(CompletionQueue& queue) noexcept {
    std::array<Completion, 16> unwanted;
    while (queue.poll(unwanted) == unwanted.size()) {
    }
}

/// Returns the maximum number of RDMA segments. Programs written for DAT 1 do not set the attributes for RDMA.
DAT_COUNT most_segments(Opcode opcode, const DAT_EP_ATTR& attr) noexcept {
    const DAT_COUNT most = opcode == Opcode::RdmaRead ? attr.max_rdma_read_iov : attr.max_rdma_write_iov;
    return most != 0 ? most : attr.max_request_iov;
}

RemoteAddress place_of(const DAT_RMR_TRIPLET& triplet) noexcept {
    return {.address = triplet.virtual_address, .key = triplet.rmr_context};
}

/// Replaces the cookie by a number if the queue has cookies. Returns false if out of memory.
bool add_cookie(RequestCookies* cookies, std::uint64_t& context, DAT_COMPLETION_FLAGS flags) noexcept try {
    if (cookies != nullptr)
        context = cookies->add({.value = context, .quiet = (flags & DAT_COMPLETION_UNSIGNALLED_FLAG) != 0});
    return true;
} catch (const std::bad_alloc&) {
    return false;
}

}  // namespace

DAT_COUNT Ep::outstanding(QueueKind queue) const noexcept {
    if (endpoint_ == nullptr) return 0;
    const auto& own = queue == QueueKind::Send ? own_request_queue_ : own_recv_queue_;
    if (own != nullptr) discard(*own);
    return static_cast<DAT_COUNT>(endpoint_->outstanding(queue));
}

DAT_RETURN Ep::check_flags(DAT_COMPLETION_FLAGS flags, DAT_RETURN_SUBTYPE argument) const noexcept {
    const bool quiet = (flags & DAT_COMPLETION_UNSIGNALLED_FLAG) != 0;
    const bool may_be_quiet = (attr_.request_completion_flags & DAT_COMPLETION_UNSIGNALLED_FLAG) != 0;
    if ((flags & ~request_flags) != 0 || (quiet && !may_be_quiet)) return invalid_parameter(argument);
    return success;
}

/// Requests may be posted only to endpoints that are or were connected.
DAT_RETURN Ep::check_posting() noexcept {
    if (endpoint_ == nullptr) return wrong_state();
    if (endpoint_->state() == EndpointState::Connected) [[likely]]
        return success;
    settle();
    return endpoint_->state() == EndpointState::Disconnected ? success : wrong_state();
}

DAT_RETURN Ep::hand_over(SendRequest& request, const Segments& pieces, DAT_COMPLETION_FLAGS flags) noexcept {
    request.sges = pieces.span();
    request.fence = (flags & DAT_COMPLETION_BARRIER_FENCE_FLAG) != 0;
    request.signaled = (flags & DAT_COMPLETION_SUPPRESS_FLAG) == 0;
    request.solicited = (flags & DAT_COMPLETION_SOLICITED_WAIT_FLAG) != 0;
    if (own_request_queue_ != nullptr) discard(*own_request_queue_);
    if (!add_cookie(request_cookies_.get(), request.context, flags))
        return error(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
    if (const Status status = endpoint_->post_send(request); !status.ok()) {
        if (request_cookies_ != nullptr) request_cookies_->withdraw();
        return to_return(status);
    }
    const CountedAs counted = counted_as(request);
    counters.add(counted.requests);
    if (counted.bytes >= 0) counters.add(counted.bytes, pieces.bytes());
    return success;
}

bool Ep::restore_cookie(Completion& completion) noexcept {
    const std::lock_guard lock(parts_lock_);
    RequestCookies* cookies = completion.queue() == QueueKind::Send ? request_cookies_.get() : recv_cookies_.get();
    if (cookies == nullptr || completion.operation == CompletedOperation::BindWindow) return false;
    const RequestCookie cookie = cookies->take(completion.context);
    completion.context = cookie.value;
    return cookie.quiet;
}

void Ep::count_receive(const Completion& completion) noexcept {
    if (completion.code != CompletionCode::Success) return;
    const CountedAs counted = counted_as(completion);
    counters.add(counted.requests);
    counters.add(counted.bytes, completion.bytes);
}

DAT_RETURN Ep::post_any(SendRequest&& request, DAT_COUNT segments, const DAT_LMR_TRIPLET* iov,
                        DAT_COMPLETION_FLAGS flags) noexcept {
    if (segments < 0 || segments > attr_.max_request_iov) return invalid_parameter(DAT_INVALID_ARG2);
    if (segments > 0 && iov == nullptr) return invalid_parameter(DAT_INVALID_ARG3);
    if (flags != DAT_COMPLETION_DEFAULT_FLAG)
        if (const DAT_RETURN result = check_flags(flags, DAT_INVALID_ARG5); result != success) return result;
    if (const DAT_RETURN result = check_posting(); result != success) return result;
    const Segments pieces(iov, segments);
    return hand_over(request, pieces, flags);
}

DAT_RETURN Ep::post_any_rdma(SendRequest&& request, DAT_COUNT segments, const DAT_LMR_TRIPLET* iov,
                             const DAT_RMR_TRIPLET* remote, DAT_COMPLETION_FLAGS flags,
                             DAT_RETURN_SUBTYPE flags_argument) noexcept {
    if (segments < 0 || segments > most_segments(request.opcode, attr_)) return invalid_parameter(DAT_INVALID_ARG2);
    if (segments > 0 && iov == nullptr) return invalid_parameter(DAT_INVALID_ARG3);
    if (remote == nullptr) return invalid_parameter(DAT_INVALID_ARG5);
    if (flags != DAT_COMPLETION_DEFAULT_FLAG)
        if (const DAT_RETURN result = check_flags(flags, flags_argument); result != success) return result;
    if (const DAT_RETURN result = check_posting(); result != success) return result;
    Segments pieces(iov, segments);
    if (request.opcode == Opcode::RdmaRead) {
        if (remote->segment_length > pieces.bytes()) return error(DAT_LENGTH_ERROR);
        pieces.cut(remote->segment_length);
    } else if (pieces.bytes() > remote->segment_length) {
        return error(DAT_LENGTH_ERROR);
    }
    request.remote = place_of(*remote);
    return hand_over(request, pieces, flags);
}

DAT_RETURN Ep::post_any_receive(DAT_DTO_COOKIE cookie, DAT_COUNT segments, const DAT_LMR_TRIPLET* iov,
                                DAT_COMPLETION_FLAGS flags) noexcept {
    if (segments < 0 || segments > attr_.max_recv_iov) return invalid_parameter(DAT_INVALID_ARG2);
    if (segments > 0 && iov == nullptr) return invalid_parameter(DAT_INVALID_ARG3);
    const int allowed = attr_.recv_completion_flags & DAT_COMPLETION_UNSIGNALLED_FLAG;
    if ((flags & ~allowed) != 0) return invalid_parameter(DAT_INVALID_ARG5);
    if (endpoint_ == nullptr || srq_) return invalid_state(DAT_INVALID_STATE_EP_NOTREADY);
    if (endpoint_->state() == EndpointState::Unconnected) settle();
    const Segments pieces(iov, segments);
    if (own_recv_queue_ != nullptr) discard(*own_recv_queue_);
    ReceiveRequest request{.context = cookie.as_64, .sges = pieces.span()};
    if (!add_cookie(recv_cookies_.get(), request.context, flags))
        return error(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
    if (const Status status = endpoint_->post_receive(request); !status.ok()) {
        if (recv_cookies_ != nullptr) recv_cookies_->withdraw();
        return to_return(status);
    }
    counters.add(DCNT_EP_POST_RECV);
    counters.add(DCNT_EP_POST_RECV_DATA, pieces.bytes());
    return success;
}

// ---- Simple requests: one segment, default flags, and a connected endpoint -----------------------------------------

namespace {

[[gnu::always_inline]] inline bool is_simple(const Endpoint* endpoint, DAT_COUNT segments, const DAT_LMR_TRIPLET* iov,
                                             DAT_COMPLETION_FLAGS flags) noexcept {
    return endpoint != nullptr && segments == 1 && flags == DAT_COMPLETION_DEFAULT_FLAG && iov != nullptr &&
           iov->segment_length != 0 && endpoint->state() == EndpointState::Connected;
}

template <class Counters>
[[gnu::always_inline]] inline DAT_RETURN count_post(Code code, Counters& counters, CountedAs counted,
                                                    std::uint32_t bytes) noexcept {
    if (code != Code::Ok) [[unlikely]]
        return to_return(code);
    counters.add(counted.requests);
    counters.add(counted.bytes, bytes);
    return success;
}

}  // namespace

[[gnu::always_inline]] inline DAT_RETURN Ep::post_send(DAT_DTO_COOKIE cookie, DAT_COUNT segments,
                                                       const DAT_LMR_TRIPLET* iov,
                                                       DAT_COMPLETION_FLAGS flags) noexcept {
    if (!is_simple(direct_requests_, segments, iov, flags)) [[unlikely]]
        return post_any({.context = cookie.as_64, .opcode = Opcode::Send}, segments, iov, flags);
    const Sge piece = to_piece(*iov);
    const Status status =
        direct_requests_->post_send({.context = cookie.as_64, .opcode = Opcode::Send, .sges = {&piece, 1}});
    return count_post(status.code(), counters, {DCNT_EP_POST_SEND, DCNT_EP_POST_SEND_DATA}, piece.length);
}

[[gnu::always_inline]] inline DAT_RETURN Ep::post_rdma(Opcode opcode, DAT_DTO_COOKIE cookie, DAT_COUNT segments,
                                                       const DAT_LMR_TRIPLET* iov, const DAT_RMR_TRIPLET* remote,
                                                       DAT_COMPLETION_FLAGS flags) noexcept {
    const bool read = opcode == Opcode::RdmaRead;
    if (!is_simple(direct_requests_, segments, iov, flags) || remote == nullptr ||
        (read ? remote->segment_length > iov->segment_length || remote->segment_length == 0
              : iov->segment_length > remote->segment_length)) [[unlikely]]
        return post_any_rdma({.context = cookie.as_64, .opcode = opcode}, segments, iov, remote, flags);
    Sge piece = to_piece(*iov);
    if (read) piece.length = remote->segment_length;
    const Status status = direct_requests_->post_send(
        {.context = cookie.as_64, .opcode = opcode, .remote = place_of(*remote), .sges = {&piece, 1}});
    const CountedAs counted = read ? CountedAs{DCNT_EP_POST_READ, DCNT_EP_POST_READ_DATA}
                                   : CountedAs{DCNT_EP_POST_WRITE, DCNT_EP_POST_WRITE_DATA};
    return count_post(status.code(), counters, counted, piece.length);
}

[[gnu::always_inline]] inline DAT_RETURN Ep::post_receive(DAT_DTO_COOKIE cookie, DAT_COUNT segments,
                                                          const DAT_LMR_TRIPLET* iov,
                                                          DAT_COMPLETION_FLAGS flags) noexcept {
    if (!is_simple(direct_receives_, segments, iov, flags)) [[unlikely]]
        return post_any_receive(cookie, segments, iov, flags);
    const Sge piece = to_piece(*iov);
    const Status status = direct_receives_->post_receive({.context = cookie.as_64, .sges = {&piece, 1}});
    return count_post(status.code(), counters, {DCNT_EP_POST_RECV, DCNT_EP_POST_RECV_DATA}, piece.length);
}

// ---- Binds --------------------------------------------------------------------------------------------------------

DAT_RETURN Ep::bind(MemoryWindow& window, BindRequest request, DAT_COMPLETION_FLAGS flags) noexcept {
    if (const DAT_RETURN result = check_flags(flags, DAT_INVALID_ARG8); result != success) return result;
    if (const DAT_RETURN result = check_posting(); result != success) return result;
    request.fence = (flags & DAT_COMPLETION_BARRIER_FENCE_FLAG) != 0;
    if (own_request_queue_ != nullptr) discard(*own_request_queue_);
    return to_return(endpoint_->bind(window, request));
}

// ---- Entry points -------------------------------------------------------------------------------------------------

[[gnu::flatten, gnu::hot]] DAT_RETURN calls::ep_post_send(DAT_EP_HANDLE ep, DAT_COUNT segments, DAT_LMR_TRIPLET* iov,
                                                          DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags) {
    Ep* endpoint = resolve_held<Ep>(ep);
    if (endpoint == nullptr) return invalid_handle(DAT_INVALID_HANDLE_EP);
    return endpoint->post_send(cookie, segments, iov, flags);
}

DAT_RETURN calls::ep_post_send_with_invalidate(DAT_EP_HANDLE ep, DAT_COUNT segments, DAT_LMR_TRIPLET* iov,
                                               DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags,
                                               DAT_BOOLEAN invalidate, DAT_RMR_CONTEXT context) {
    Ep* endpoint = resolve<Ep>(ep);
    if (endpoint == nullptr) return invalid_handle(DAT_INVALID_HANDLE_EP);
    if (invalidate == DAT_FALSE)
        return endpoint->post_any({.context = cookie.as_64, .opcode = Opcode::Send}, segments, iov, flags);
    return endpoint->post_any({.context = cookie.as_64, .opcode = Opcode::SendInvalidate, .remote = {.key = context}},
                              segments, iov, flags);
}

[[gnu::flatten, gnu::hot]] DAT_RETURN calls::ep_post_recv(DAT_EP_HANDLE ep, DAT_COUNT segments, DAT_LMR_TRIPLET* iov,
                                                          DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags) {
    Ep* endpoint = resolve_held<Ep>(ep);
    if (endpoint == nullptr) return invalid_handle(DAT_INVALID_HANDLE_EP);
    return endpoint->post_receive(cookie, segments, iov, flags);
}

[[gnu::flatten, gnu::hot]] DAT_RETURN calls::ep_post_rdma_read(DAT_EP_HANDLE ep, DAT_COUNT segments,
                                                               DAT_LMR_TRIPLET* iov, DAT_DTO_COOKIE cookie,
                                                               const DAT_RMR_TRIPLET* remote,
                                                               DAT_COMPLETION_FLAGS flags) {
    Ep* endpoint = resolve_held<Ep>(ep);
    if (endpoint == nullptr) return invalid_handle(DAT_INVALID_HANDLE_EP);
    return endpoint->post_rdma(Opcode::RdmaRead, cookie, segments, iov, remote, flags);
}

DAT_RETURN calls::ep_post_rdma_read_to_rmr(DAT_EP_HANDLE ep, const DAT_RMR_TRIPLET* local, DAT_DTO_COOKIE cookie,
                                           const DAT_RMR_TRIPLET* remote, DAT_COMPLETION_FLAGS flags) {
    Ep* endpoint = resolve<Ep>(ep);
    if (endpoint == nullptr) return invalid_handle(DAT_INVALID_HANDLE_EP);
    if (local == nullptr) return invalid_parameter(DAT_INVALID_ARG2);
    if (remote == nullptr) return invalid_parameter(DAT_INVALID_ARG4);
    // A region that is not a window uses the same context for both purposes.
    std::optional<DAT_LMR_CONTEXT> context;
    (void)endpoint->ia().find<Rmr>([&](const Rmr& rmr) { return (context = rmr.find(*local)).has_value(); });
    const DAT_LMR_TRIPLET piece{.virtual_address = local->virtual_address,
                                .segment_length = local->segment_length,
                                .lmr_context = context.value_or(local->rmr_context)};
    return endpoint->post_any_rdma({.context = cookie.as_64, .opcode = Opcode::RdmaRead}, 1, &piece, remote, flags,
                                   DAT_INVALID_ARG5);
}

[[gnu::flatten, gnu::hot]] DAT_RETURN calls::ep_post_rdma_write(DAT_EP_HANDLE ep, DAT_COUNT segments,
                                                                DAT_LMR_TRIPLET* iov, DAT_DTO_COOKIE cookie,
                                                                const DAT_RMR_TRIPLET* remote,
                                                                DAT_COMPLETION_FLAGS flags) {
    Ep* endpoint = resolve_held<Ep>(ep);
    if (endpoint == nullptr) return invalid_handle(DAT_INVALID_HANDLE_EP);
    return endpoint->post_rdma(Opcode::RdmaWrite, cookie, segments, iov, remote, flags);
}

}  // namespace viaduct::dat
