// SPDX-License-Identifier: BSD-3-Clause
// The data path of endpoints. The device checks access to regions when it executes a request.
#include "api/udat/provider/ep.hpp"
#include "api/udat/provider/ia.hpp"
#include "api/udat/provider/rmr.hpp"
#include "api/udat/provider/segments.hpp"
#include "api/udat/provider/table.hpp"
#include "api/udat/provider/translate.hpp"
#include "core/request_terms.hpp"
#include "viaduct/detail/mutex.hpp"

namespace viaduct::dat {
namespace {

constexpr int request_flags = DAT_COMPLETION_SUPPRESS_FLAG | DAT_COMPLETION_SOLICITED_WAIT_FLAG |
                              DAT_COMPLETION_UNSIGNALLED_FLAG | DAT_COMPLETION_BARRIER_FENCE_FLAG;

struct SegmentLimit {
    DAT_COUNT value;
    const char* name;
};

/// Returns the maximum number of RDMA segments. Programs written for DAT 1 do not set the attributes for RDMA.
SegmentLimit most_segments(Opcode opcode, const DAT_EP_ATTR& attr) noexcept {
    const SegmentLimit limit = opcode == Opcode::RdmaRead ? SegmentLimit{attr.max_rdma_read_iov, "max_rdma_read_iov"}
                                                          : SegmentLimit{attr.max_rdma_write_iov, "max_rdma_write_iov"};
    return limit.value != 0 ? limit : SegmentLimit{attr.max_request_iov, "max_request_iov"};
}

[[gnu::cold, gnu::noinline]] DAT_RETURN refuse_length(const char* what, std::uint64_t bytes, const char* where,
                                                      std::uint64_t room) noexcept {
    return failed(error(DAT_LENGTH_ERROR),
                  explain("%llu bytes are to be %s, the %s segments have %llu", static_cast<unsigned long long>(bytes),
                          what, where, static_cast<unsigned long long>(room)));
}

RemoteAddress place_of(const DAT_RMR_TRIPLET& triplet) noexcept {
    return {.address = triplet.virtual_address, .key = triplet.rmr_context};
}

/// Calls post(), with a number instead of the cookie if the queue has cookies.
Status post_with(RequestCookies* cookies, std::uint64_t& context, DAT_COMPLETION_FLAGS flags, auto post) noexcept try {
    if (cookies == nullptr) return post();
    return cookies->post(context,
                         {.quiet = (flags & DAT_COMPLETION_UNSIGNALLED_FLAG) != 0,
                          .suppressed = (flags & DAT_COMPLETION_SUPPRESS_FLAG) != 0},
                         post);
} catch (const std::bad_alloc&) {
    return {Code::NoResources, "out of memory"};
}

const char* call_for(CompletedOperation operation, bool shared) noexcept {
    switch (operation) {
        case CompletedOperation::Send: return "dat_ep_post_send";
        case CompletedOperation::RdmaWrite:
        case CompletedOperation::AtomicWrite: return "dat_ep_post_rdma_write";
        case CompletedOperation::RdmaRead:
        case CompletedOperation::Flush: return "dat_ep_post_rdma_read";
        case CompletedOperation::FetchAdd: return "dat_ib_post_fetch_and_add";
        case CompletedOperation::CompareSwap: return "dat_ib_post_cmp_and_swap";
        case CompletedOperation::BindWindow: return "dat_rmr_bind";
        case CompletedOperation::Receive:
        case CompletedOperation::ReceiveRdmaWrite: break;
    }
    return shared ? "dat_srq_post_recv" : "dat_ep_post_recv";
}

}  // namespace

DAT_COUNT Ep::outstanding(QueueKind queue) const noexcept {
    if (endpoint_ == nullptr) return 0;
    if (queue == QueueKind::Send) discard_requests();
    if (own_recv_queue_ != nullptr && queue == QueueKind::Receive) discard(*own_recv_queue_);
    if (srq_ && queue == QueueKind::Receive) srq_->discard_unwanted();
    return static_cast<DAT_COUNT>(endpoint_->outstanding(queue));
}

DAT_COUNT Ep::incomplete_receives() noexcept {
    settle_if_failed();
    if (srq_ || (recv_evd_ && !recv_evd_->collect_all())) return DAT_VALUE_UNKNOWN;
    return outstanding(QueueKind::Receive);
}

DAT_RETURN Ep::check_flags(DAT_COMPLETION_FLAGS flags, DAT_RETURN_SUBTYPE argument) const noexcept {
    const bool quiet = (flags & DAT_COMPLETION_UNSIGNALLED_FLAG) != 0;
    const bool may_be_quiet = (attr_.request_completion_flags & DAT_COMPLETION_UNSIGNALLED_FLAG) != 0;
    if (const int unknown = flags & ~request_flags; unknown != 0)
        return invalid_parameter(argument, explain("0x%x are no completion flags of a request", unknown));
    if (quiet && !may_be_quiet)
        return invalid_parameter(argument,
                                 "DAT_COMPLETION_UNSIGNALLED_FLAG is not in request_completion_flags of the endpoint");
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

/// Names the limit if the queue is full.
DAT_RETURN Ep::refuse_post(Status status, QueueKind queue) const noexcept {
    if (status.code() != Code::QueueFull) return to_return(status);
    const bool sends = queue == QueueKind::Send;
    return failed(error(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY),
                  explain("the queue is full: %s of the endpoint is %d", sends ? "max_request_dtos" : "max_recv_dtos",
                          sends ? attr_.max_request_dtos : attr_.max_recv_dtos));
}

/// Whether a request that was refused can be posted again: the queue is full, but there are suppressed binds, which
/// make room if they have completed.
bool Ep::makes_room(Status status) const noexcept {
    return status.code() == Code::QueueFull && request_evd_ && request_evd_->collect_suppressed();
}

Status Ep::post_request(auto post) const noexcept {
    const Status status = post();
    return status.ok() || !makes_room(status) ? status : post();
}

/// The same for a request that was posted directly and refused.
DAT_RETURN Ep::post_again(Status status, const SendRequest& request) const noexcept {
    if (makes_room(status)) status = endpoint_->post_send(request);
    return status.ok() ? success : refuse_post(status, QueueKind::Send);
}

DAT_RETURN Ep::hand_over(SendRequest& request, const Segments& pieces, DAT_COMPLETION_FLAGS flags) noexcept {
    request.sges = pieces.span();
    request.fence = (flags & DAT_COMPLETION_BARRIER_FENCE_FLAG) != 0;
    request.signaled = (flags & DAT_COMPLETION_SUPPRESS_FLAG) == 0;
    request.solicited = (flags & DAT_COMPLETION_SOLICITED_WAIT_FLAG) != 0;
    discard_requests();
    const Status status = post_with(request_cookies_.get(), request.context, flags,
                                    [&] { return post_request([&] { return endpoint_->post_send(request); }); });
    return status.ok() ? success : refuse_post(status, QueueKind::Send);
}

bool Ep::restore_cookie(Completion& completion) noexcept {
    const LockGuard lock(parts_lock_);
    RequestCookies* cookies = completion.queue() == QueueKind::Send ? request_cookies_.get() : recv_cookies_.get();
    if (cookies == nullptr || completion.operation == CompletedOperation::BindWindow) return false;
    const RequestCookie cookie = cookies->take(completion.context);
    completion.context = cookie.value;
    return cookie.quiet;
}

DAT_RETURN Ep::post_any(SendRequest&& request, DAT_COUNT segments, const DAT_LMR_TRIPLET* iov,
                        DAT_COMPLETION_FLAGS flags) noexcept {
    if (const DAT_RETURN result = check_segments(segments, iov, attr_.max_request_iov, "max_request_iov");
        result != success)
        return result;
    if (flags != DAT_COMPLETION_DEFAULT_FLAG)
        if (const DAT_RETURN result = check_flags(flags, DAT_INVALID_ARG5); result != success) return result;
    if (const DAT_RETURN result = check_posting(); result != success) return result;
    const Segments pieces(iov, segments);
    return hand_over(request, pieces, flags);
}

DAT_RETURN Ep::post_any_rdma(SendRequest&& request, DAT_COUNT segments, const DAT_LMR_TRIPLET* iov,
                             const DAT_RMR_TRIPLET* remote, DAT_COMPLETION_FLAGS flags,
                             DAT_RETURN_SUBTYPE flags_argument) noexcept {
    const SegmentLimit limit = most_segments(request.opcode, attr_);
    if (const DAT_RETURN result = check_segments(segments, iov, limit.value, limit.name); result != success)
        return result;
    if (remote == nullptr) return invalid_parameter(DAT_INVALID_ARG5, "remote_buffer is null");
    if (flags != DAT_COMPLETION_DEFAULT_FLAG)
        if (const DAT_RETURN result = check_flags(flags, flags_argument); result != success) return result;
    if (const DAT_RETURN result = check_posting(); result != success) return result;
    Segments pieces(iov, segments);
    if (request.opcode == Opcode::RdmaRead) {
        if (remote->segment_length > pieces.bytes())
            return refuse_length("read", remote->segment_length, "local", pieces.bytes());
        pieces.cut(remote->segment_length);
    } else if (pieces.bytes() > remote->segment_length) {
        return refuse_length("written", pieces.bytes(), "remote", remote->segment_length);
    }
    request.remote = place_of(*remote);
    return hand_over(request, pieces, flags);
}

DAT_RETURN Ep::post_any_receive(DAT_DTO_COOKIE cookie, DAT_COUNT segments, const DAT_LMR_TRIPLET* iov,
                                DAT_COMPLETION_FLAGS flags) noexcept {
    if (const DAT_RETURN result = check_segments(segments, iov, attr_.max_recv_iov, "max_recv_iov"); result != success)
        return result;
    const int allowed = attr_.recv_completion_flags & DAT_COMPLETION_UNSIGNALLED_FLAG;
    if (const int others = flags & ~allowed; others != 0)
        return invalid_parameter(DAT_INVALID_ARG5,
                                 explain("flags 0x%x are not in recv_completion_flags of the endpoint", others));
    if (endpoint_ == nullptr || srq_)
        return invalid_state(DAT_INVALID_STATE_EP_NOTREADY, srq_ ? "the endpoint takes its receives from an SRQ"
                                                                 : "the endpoint has no protection zone");
    settle_if_failed();
    const Segments pieces(iov, segments);
    if (own_recv_queue_ != nullptr) discard(*own_recv_queue_);
    ReceiveRequest request{.context = cookie.as_64, .sges = pieces.span()};
    const Status status =
        post_with(recv_cookies_.get(), request.context, flags, [&] { return endpoint_->post_receive(request); });
    return status.ok() ? success : refuse_post(status, QueueKind::Receive);
}

// ---- Simple requests: one segment, default flags, and a connected endpoint -----------------------------------------

namespace {

[[gnu::always_inline]] inline bool is_simple(const Endpoint* endpoint, DAT_COUNT segments, const DAT_LMR_TRIPLET* iov,
                                             DAT_COMPLETION_FLAGS flags) noexcept {
    return endpoint != nullptr && segments == 1 && flags == DAT_COMPLETION_DEFAULT_FLAG && iov != nullptr &&
           iov->segment_length != 0 && endpoint->state() == EndpointState::Connected;
}

}  // namespace

[[gnu::always_inline]] inline DAT_RETURN Ep::post_send(DAT_DTO_COOKIE cookie, DAT_COUNT segments,
                                                       const DAT_LMR_TRIPLET* iov,
                                                       DAT_COMPLETION_FLAGS flags) noexcept {
    if (!is_simple(direct_requests_, segments, iov, flags)) [[unlikely]]
        return post_any({.context = cookie.as_64, .opcode = Opcode::Send}, segments, iov, flags);
    const Sge piece = to_piece(*iov);
    const SendRequest request{.context = cookie.as_64, .opcode = Opcode::Send, .sges = {&piece, 1}};
    const Status status = direct_requests_->post_send(request);
    return status.ok() ? success : post_again(status, request);
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
    const SendRequest request{
        .context = cookie.as_64, .opcode = opcode, .remote = place_of(*remote), .sges = {&piece, 1}};
    const Status status = direct_requests_->post_send(request);
    return status.ok() ? success : post_again(status, request);
}

[[gnu::always_inline]] inline DAT_RETURN Ep::post_receive(DAT_DTO_COOKIE cookie, DAT_COUNT segments,
                                                          const DAT_LMR_TRIPLET* iov,
                                                          DAT_COMPLETION_FLAGS flags) noexcept {
    if (!is_simple(direct_receives_, segments, iov, flags)) [[unlikely]]
        return post_any_receive(cookie, segments, iov, flags);
    const Sge piece = to_piece(*iov);
    const Status status = direct_receives_->post_receive({.context = cookie.as_64, .sges = {&piece, 1}});
    return status.ok() ? success : refuse_post(status, QueueKind::Receive);
}

// ---- Failures -----------------------------------------------------------------------------------------------------

RequestTerms Ep::terms_of(const FailedRequest& request) const noexcept {
    const auto& cookies = request.operation >= CompletedOperation::Receive ? recv_cookies_ : request_cookies_;
    const bool named = cookies != nullptr && !request.is_of_peer;
    return {.call = call_for(request.operation, srq_.get() != nullptr),
            .object = "endpoint",
            .handle = handle(),
            .context = "cookie",
            .piece = "triplet",
            .code = to_status(request.code).name,
            .value = named ? cookies->value_of(request.context) : request.context,
            .one_thread = ia().is_for_one_thread()};
}

// ---- Binds --------------------------------------------------------------------------------------------------------

DAT_RETURN Ep::bind(MemoryWindow& window, BindRequest request, DAT_COMPLETION_FLAGS flags) noexcept {
    if (const DAT_RETURN result = check_flags(flags, DAT_INVALID_ARG8); result != success) return result;
    if (const DAT_RETURN result = check_posting(); result != success) return result;
    request.fence = (flags & DAT_COMPLETION_BARRIER_FENCE_FLAG) != 0;
    discard_requests();
    const Status status = post_request([&] { return endpoint_->bind(window, request); });
    discard_requests();  // the regions that the window no longer exposes may be freed
    return to_return(status);
}

// ---- Entry points -------------------------------------------------------------------------------------------------

[[gnu::flatten, gnu::hot]] DAT_RETURN calls::ep_post_send(DAT_EP_HANDLE ep, DAT_COUNT segments, DAT_LMR_TRIPLET* iov,
                                                          DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags) {
    return with_held<Ep>("dat_ep_post_send", ep,
                         [&](Ep& endpoint) { return endpoint.post_send(cookie, segments, iov, flags); });
}

DAT_RETURN calls::ep_post_send_with_invalidate(Ep& endpoint, DAT_COUNT segments, DAT_LMR_TRIPLET* iov,
                                               DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags,
                                               DAT_BOOLEAN invalidate, DAT_RMR_CONTEXT context) {
    if (invalidate == DAT_FALSE)
        return endpoint.post_any({.context = cookie.as_64, .opcode = Opcode::Send}, segments, iov, flags);
    return endpoint.post_any({.context = cookie.as_64, .opcode = Opcode::SendInvalidate, .remote = {.key = context}},
                             segments, iov, flags);
}

[[gnu::flatten, gnu::hot]] DAT_RETURN calls::ep_post_recv(DAT_EP_HANDLE ep, DAT_COUNT segments, DAT_LMR_TRIPLET* iov,
                                                          DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags) {
    return with_held<Ep>("dat_ep_post_recv", ep,
                         [&](Ep& endpoint) { return endpoint.post_receive(cookie, segments, iov, flags); });
}

[[gnu::flatten, gnu::hot]] DAT_RETURN calls::ep_post_rdma_read(DAT_EP_HANDLE ep, DAT_COUNT segments,
                                                               DAT_LMR_TRIPLET* iov, DAT_DTO_COOKIE cookie,
                                                               const DAT_RMR_TRIPLET* remote,
                                                               DAT_COMPLETION_FLAGS flags) {
    return with_held<Ep>("dat_ep_post_rdma_read", ep, [&](Ep& endpoint) {
        return endpoint.post_rdma(Opcode::RdmaRead, cookie, segments, iov, remote, flags);
    });
}

DAT_RETURN calls::ep_post_rdma_read_to_rmr(Ep& endpoint, const DAT_RMR_TRIPLET* local, DAT_DTO_COOKIE cookie,
                                           const DAT_RMR_TRIPLET* remote, DAT_COMPLETION_FLAGS flags) {
    if (local == nullptr) return invalid_parameter(DAT_INVALID_ARG2, "local_iov is null");
    if (remote == nullptr) return invalid_parameter(DAT_INVALID_ARG4, "remote_buffer is null");
    // A region that is not a window uses the same context for both purposes.
    std::optional<DAT_LMR_CONTEXT> context;
    (void)endpoint.ia().find<Rmr>([&](const Rmr& rmr) { return (context = rmr.find(*local)).has_value(); });
    const DAT_LMR_TRIPLET piece{.virtual_address = local->virtual_address,
                                .segment_length = local->segment_length,
                                .lmr_context = context.value_or(local->rmr_context)};
    return endpoint.post_any_rdma({.context = cookie.as_64, .opcode = Opcode::RdmaRead}, 1, &piece, remote, flags,
                                  DAT_INVALID_ARG5);
}

[[gnu::flatten, gnu::hot]] DAT_RETURN calls::ep_post_rdma_write(DAT_EP_HANDLE ep, DAT_COUNT segments,
                                                                DAT_LMR_TRIPLET* iov, DAT_DTO_COOKIE cookie,
                                                                const DAT_RMR_TRIPLET* remote,
                                                                DAT_COMPLETION_FLAGS flags) {
    return with_held<Ep>("dat_ep_post_rdma_write", ep, [&](Ep& endpoint) {
        return endpoint.post_rdma(Opcode::RdmaWrite, cookie, segments, iov, remote, flags);
    });
}

}  // namespace viaduct::dat
