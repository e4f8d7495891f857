// SPDX-License-Identifier: BSD-3-Clause
#include "api/udat/provider/ep.hpp"

#include "api/support/failure.hpp"
#include "api/udat/members.hpp"
#include "api/udat/provider/ia.hpp"
#include "api/udat/provider/segments.hpp"
#include "api/udat/provider/table.hpp"

namespace viaduct::dat {
namespace {

constexpr int recv_flags =
    DAT_COMPLETION_SOLICITED_WAIT_FLAG | DAT_COMPLETION_UNSIGNALLED_FLAG | DAT_COMPLETION_EVD_THRESHOLD_FLAG;
constexpr int request_flags = recv_flags | DAT_COMPLETION_SUPPRESS_FLAG | DAT_COMPLETION_BARRIER_FENCE_FLAG;

/// Concerns the notification of the peer, so it says nothing about an endpoint's own requests (dat_ep_modify(3DAT)).
constexpr int sender_only = DAT_COMPLETION_SOLICITED_WAIT_FLAG;

struct Bound {
    const char* attribute;
    std::int64_t wanted;
    const char* unit;
    const char* name;  ///< of the limit
    std::uint32_t limit;
};

DAT_RETURN refuse_attribute(DAT_RETURN_SUBTYPE argument, const char* name, unsigned value) noexcept {
    return invalid_parameter(argument, explain("%s 0x%x is not supported", name, value));
}

/// Checks that the device supports these attributes. The sizes of messages and RDMA are reported but not enforced.
DAT_RETURN check_attributes(const DAT_EP_ATTR& attr, const DeviceAttributes& device,
                            DAT_RETURN_SUBTYPE argument) noexcept {
    const std::uint32_t pieces = most_segments(device);
    const std::uint32_t bytes = device.max_transfer_bytes;
    const std::uint32_t depth = device.max_queue_depth;
    constexpr std::uint32_t reads = Ia::rdma_reads_per_ep;
    const Bound bounds[] = {
        {"max_message_size", attr.max_message_size, "bytes", "max_message_size of the adapter", bytes},
        {"max_rdma_size", attr.max_rdma_size, "bytes", "max_rdma_size of the adapter", bytes},
        {"max_recv_dtos", attr.max_recv_dtos, "receives", "max_dto_per_ep", depth},
        {"max_request_dtos", attr.max_request_dtos, "requests", "max_dto_per_ep", depth},
        {"max_recv_iov", attr.max_recv_iov, "segments", "max_iov_segments_per_dto", pieces},
        {"max_request_iov", attr.max_request_iov, "segments", "max_iov_segments_per_dto", pieces},
        {"max_rdma_read_iov", attr.max_rdma_read_iov, "segments", "max_iov_segments_per_rdma_read", pieces},
        {"max_rdma_write_iov", attr.max_rdma_write_iov, "segments", "max_iov_segments_per_rdma_write", pieces},
        {"max_rdma_read_in", attr.max_rdma_read_in, "RDMA reads", "max_rdma_read_per_ep_in", reads},
        {"max_rdma_read_out", attr.max_rdma_read_out, "RDMA reads", "max_rdma_read_per_ep_out", reads},
    };
    for (const Bound& bound : bounds)
        if (bound.wanted < 0 || bound.wanted > bound.limit)
            return invalid_parameter(
                argument, explain("%s: %lld %s asked for, %s is %u", bound.attribute,
                                  static_cast<long long>(bound.wanted), bound.unit, bound.name, bound.limit));
    if (attr.service_type != DAT_SERVICE_TYPE_RC) return refuse_attribute(argument, "service_type", attr.service_type);
    if (attr.qos != DAT_QOS_BEST_EFFORT) return refuse_attribute(argument, "qos", attr.qos);
    if (const int other = attr.recv_completion_flags & ~recv_flags; other != 0)
        return refuse_attribute(argument, "a flag in recv_completion_flags,", static_cast<unsigned>(other));
    if (const int other = attr.request_completion_flags & ~request_flags; other != 0)
        return refuse_attribute(argument, "a flag in request_completion_flags,", static_cast<unsigned>(other));
    return success;
}

/// Returns the maximum number of segments over all kinds of requests.
std::uint32_t most_pieces(const DAT_EP_ATTR& attr) noexcept {
    return static_cast<std::uint32_t>(
        std::max({attr.max_recv_iov, attr.max_request_iov, attr.max_rdma_read_iov, attr.max_rdma_write_iov, 1}));
}

Evd::Notification notification_of(int flags) noexcept {
    if ((flags & DAT_COMPLETION_SOLICITED_WAIT_FLAG) != 0) return Evd::Notification::Solicited;
    if ((flags & DAT_COMPLETION_UNSIGNALLED_FLAG) != 0) return Evd::Notification::Every;
    return Evd::Notification::Threshold;
}

/// Prepares for requests whose events wake no waiter. Returns null if there are none.
std::unique_ptr<RequestCookies> make_cookies(Evd* evd, DAT_COMPLETION_FLAGS flags, DAT_COUNT depth) {
    if (evd == nullptr || (flags & DAT_COMPLETION_UNSIGNALLED_FLAG) == 0) return nullptr;
    auto cookies = std::make_unique<RequestCookies>();
    cookies->begin(static_cast<std::uint32_t>(depth));
    evd->expect_cookies();
    return cookies;
}

}  // namespace

// ---- Parts --------------------------------------------------------------------------------------------------------

Ep::Ep(Ia& ia, EndpointState initial) : Object(ia, ia.provider(), handle_type), reservation_(initial) {}

/// The consumer may free the endpoint as soon as it sees its last event, so wait for the threads that report or take
/// it.
Ep::~Ep() {
    { const LockGuard connecting(connecting_); }
    { const LockGuard lock(events_lock_); }
    ia().await_takers();
    Evd::await_lookups();
}

DAT_EP_ATTR Ep::default_attributes(const DeviceAttributes& device) noexcept {
    const DAT_COUNT depth = to_count(std::min<std::uint32_t>(device.default_queue_depth, 256));
    const DAT_COUNT pieces = to_count(std::min<std::uint32_t>(device.max_sges, 4));
    DAT_EP_ATTR attr{};
    attr.service_type = DAT_SERVICE_TYPE_RC;
    attr.max_message_size = device.max_transfer_bytes;
    attr.max_rdma_size = device.max_transfer_bytes;
    attr.qos = DAT_QOS_BEST_EFFORT;
    attr.max_recv_dtos = depth;
    attr.max_request_dtos = depth;
    attr.max_recv_iov = pieces;
    attr.max_request_iov = pieces;
    attr.max_rdma_read_in = 4;
    attr.max_rdma_read_out = 4;
    attr.srq_soft_hw = DAT_HW_DEFAULT;
    attr.max_rdma_read_iov = pieces;
    attr.max_rdma_write_iov = pieces;
    return attr;
}

EndpointAttributes Ep::core_attributes(const DeviceAttributes& device) noexcept {
    return {.any_reliable = true,
            .access = {.remote_write = true, .remote_read = true, .remote_atomic = device.capabilities.atomics}};
}

DAT_RETURN Ep::create(Ia& ia, const EpParts& parts, DAT_RETURN_SUBTYPE attr_argument, DAT_EP_HANDLE& ep) {
    if (const DAT_RETURN result = check_attributes(parts.attr, ia.device()->attributes(), attr_argument);
        result != success)
        return result;
    std::unique_ptr<Ep> created(new Ep(ia));
    if (const DAT_RETURN result = created->rebuild(parts); result != success) return result;
    Ep& adopted = *created;
    ep = ia.adopt(std::move(created));
    adopted.follow_depth();
    return success;
}

std::unique_ptr<Ep> Ep::create_for_request(Ia& ia) {
    std::unique_ptr<Ep> created(new Ep(ia, EndpointState::TentativePending));
    created->provider_made_ = true;
    created->attr_ = default_attributes(ia.device()->attributes());
    return created;
}

EpParts Ep::parts() const noexcept {
    return {.pz = pz_.get(),
            .recv_evd = recv_evd_.get(),
            .request_evd = request_evd_.get(),
            .connect_evd = connect_evd_.get(),
            .srq = srq_.get(),
            .comm = comm_,
            .attr = attr_};
}

/// Returns the queue of a dispatcher or, if the consumer wants no events, one of the shared receives or the endpoint.
std::shared_ptr<CompletionQueue> Ep::queue_of(Evd* evd, Srq* srq, DAT_COUNT depth,
                                              std::shared_ptr<CompletionQueue>& own) {
    if (evd != nullptr) return evd->completions();
    const auto capacity = static_cast<std::uint32_t>(std::max(depth, 1));
    auto queue = srq != nullptr ? srq->unwanted() : CompletionQueue::create(ia().device(), {.capacity = capacity});
    if (!queue.ok()) {
        failure::because(queue.status());
        return nullptr;
    }
    if (srq == nullptr) own = *queue;
    return std::move(*queue);
}

DAT_RETURN Ep::rebuild(const EpParts& parts) {
    std::unique_ptr<Endpoint> made;
    std::shared_ptr<CompletionQueue> own_recv_queue;
    std::shared_ptr<CompletionQueue> own_request_queue;
    if (parts.pz != nullptr) {
        const auto recv_queue = queue_of(parts.recv_evd, parts.srq, parts.attr.max_recv_dtos, own_recv_queue);
        const auto request_queue = queue_of(parts.request_evd, nullptr, parts.attr.max_request_dtos, own_request_queue);
        if (recv_queue == nullptr || request_queue == nullptr)
            return error(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEVD);
        auto endpoint = Endpoint::create({
            .attributes = core_attributes(ia().device()->attributes()),
            .domain = parts.pz->domain(),
            .send_queue = request_queue,
            .receive_queue = recv_queue,
            .shared_receives = parts.srq == nullptr ? nullptr : parts.srq->queue(),
            .send_depth = static_cast<std::uint32_t>(parts.attr.max_request_dtos),
            .receive_depth = static_cast<std::uint32_t>(parts.attr.max_recv_dtos),
            .max_sges = most_pieces(parts.attr),
            .context = reinterpret_cast<std::uint64_t>(handle()),
            .observer = this,
            .after_refusal = EndpointState::Disconnected,
        });
        if (!endpoint.ok()) return to_return(endpoint.status(), DAT_RESOURCE_TEP);
        made = std::move(*endpoint);
    }
    const DAT_COUNT receives = parts.srq != nullptr ? parts.srq->most_completions() : parts.attr.max_recv_dtos;
    CompletionStream recv_stream(parts.recv_evd, receives, notification_of(parts.attr.recv_completion_flags));
    CompletionStream request_stream(parts.request_evd, parts.attr.max_request_dtos,
                                    notification_of(parts.attr.request_completion_flags & ~sender_only));
    Evd* const unshared = parts.srq == nullptr ? parts.recv_evd : nullptr;  // shared receives are all signalled
    auto recv_cookies = make_cookies(unshared, parts.attr.recv_completion_flags, parts.attr.max_recv_dtos);
    auto request_cookies =
        make_cookies(parts.request_evd, parts.attr.request_completion_flags, parts.attr.max_request_dtos);
    const LockGuard lock(parts_lock_);
    recv_cookies_ = std::move(recv_cookies);
    request_cookies_ = std::move(request_cookies);
    if (endpoint_ != nullptr) earlier_ += endpoint_->counters();
    std::swap(endpoint_, made);  // destroys the previous endpoint after releasing the lock
    std::swap(own_recv_queue_, own_recv_queue);
    std::swap(own_request_queue_, own_request_queue);
    recv_stream_ = std::move(recv_stream);
    request_stream_ = std::move(request_stream);
    pz_ = Use<Pz>(parts.pz);
    recv_evd_ = Use<Evd>(parts.recv_evd);
    request_evd_ = Use<Evd>(parts.request_evd);
    connect_evd_ = EvdLink(parts.connect_evd);
    if (parts.srq != nullptr && parts.recv_evd != nullptr) parts.recv_evd->expect_shared_receives();
    srq_ = Use<Srq>(parts.srq);
    comm_ = parts.comm;
    attr_ = parts.attr;
    choose_direct_endpoints();
    return success;
}

void Ep::follow_depth() noexcept {
    Evd* evd = nullptr;
    {
        const LockGuard lock(parts_lock_);
        if (srq_) evd = recv_stream_.widen(static_cast<std::uint32_t>(srq_->most_completions()));
    }
    if (evd != nullptr) evd->add_places();
}

Ep::CoreCounters Ep::core_counters() const noexcept {
    EndpointCounters all;
    {
        const LockGuard lock(parts_lock_);
        all = earlier_;
        if (endpoint_ != nullptr) all += endpoint_->counters();
    }
    CoreCounters values{};
    const auto set = [&values](int messages, int bytes, const Traffic& traffic) {
        values[static_cast<std::size_t>(messages)] = traffic.messages;
        if (bytes >= 0) values[static_cast<std::size_t>(bytes)] = traffic.bytes;
    };
    constexpr int fixed_size = -1;
    const Traffic immediate{immediate_messages_.value(), immediate_bytes_.value()};
    Traffic received = all.of(CountedOperation::Receive);
    received.messages -= std::min(received.messages, immediate.messages);
    received.bytes -= std::min(received.bytes, immediate.bytes);
    set(DCNT_EP_POST_SEND, DCNT_EP_POST_SEND_DATA, all.of(CountedOperation::Send));
    set(DCNT_EP_POST_RECV, DCNT_EP_POST_RECV_DATA, all.posted_receives);
    set(DCNT_EP_POST_WRITE, DCNT_EP_POST_WRITE_DATA, all.of(CountedOperation::RdmaWrite));
    set(DCNT_EP_POST_WRITE_IMM, DCNT_EP_POST_WRITE_IMM_DATA, all.of(CountedOperation::RdmaWriteImmediate));
    set(DCNT_EP_POST_READ, DCNT_EP_POST_READ_DATA, all.of(CountedOperation::RdmaRead));
    set(DCNT_EP_POST_CMP_SWAP, fixed_size, all.of(CountedOperation::CompareSwap));
    set(DCNT_EP_POST_FETCH_ADD, fixed_size, all.of(CountedOperation::FetchAdd));
    set(DCNT_EP_RECV, DCNT_EP_RECV_DATA, received);
    set(DCNT_EP_RECV_IMM, DCNT_EP_RECV_IMM_DATA, immediate);
    set(DCNT_EP_RECV_RDMA_IMM, DCNT_EP_RECV_RDMA_IMM_DATA, all.of(CountedOperation::ReceiveImmediate));
    return values;
}

void Ep::choose_direct_endpoints() noexcept {
    const bool requests = own_request_queue_ == nullptr && request_cookies_ == nullptr && attr_.max_request_iov > 0;
    const bool receives = own_recv_queue_ == nullptr && recv_cookies_ == nullptr && attr_.max_recv_iov > 0 && !srq_;
    direct_requests_ = requests ? endpoint_.get() : nullptr;
    direct_receives_ = receives ? endpoint_.get() : nullptr;
}

DAT_RETURN Ep::modify(const EpParts& parts) {
    if (const DAT_RETURN result = check_attributes(parts.attr, ia().device()->attributes(), DAT_INVALID_ARG3);
        result != success)
        return result;
    const bool same_queues = endpoint_ != nullptr && parts.pz == pz_.get() && parts.recv_evd == recv_evd_.get() &&
                             parts.request_evd == request_evd_.get() && parts.srq == srq_.get() &&
                             parts.attr.max_recv_dtos == attr_.max_recv_dtos &&
                             parts.attr.max_request_dtos == attr_.max_request_dtos &&
                             most_pieces(parts.attr) == most_pieces(attr_) &&
                             parts.attr.recv_completion_flags == attr_.recv_completion_flags &&
                             parts.attr.request_completion_flags == attr_.request_completion_flags;
    if (!same_queues) {
        discard_requests();
        // Completions that wait get their cookies back, which the endpoint will not know any more.
        for (Evd* evd : {recv_evd_.get(), request_evd_.get()})
            if (evd != nullptr && !evd->collect_all())
                return failed(error(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEVD),
                              "the EVDs have no room for completions that were not dequeued");
        // Posted receives would be lost.
        if (!idle(QueueKind::Receive))
            return invalid_state(DAT_INVALID_STATE_EP_NOTREADY, "receives are posted to the endpoint");
        const DAT_RETURN result = rebuild(parts);
        follow_depth();
        return result;
    }
    connect_evd_ = EvdLink(parts.connect_evd);
    comm_ = parts.comm;
    attr_ = parts.attr;
    choose_direct_endpoints();
    return success;
}

EpState Ep::dat_state() const noexcept { return to_ep_state(state(), provider_made_); }

DAT_RETURN Ep::wrong_state() const noexcept {
    const EpState present = dat_state();
    return invalid_state(present.subtype, explain("the endpoint is %s", present.name));
}

DAT_RETURN Ep::reset() noexcept {
    const LockGuard lock(parts_lock_);
    const EndpointState present = state();
    if (present != EndpointState::Unconnected && present != EndpointState::Disconnected) return wrong_state();
    if (present == EndpointState::Unconnected) return success;  // posted receives are kept
    endpoint_->disconnect();
    windows_.end_all();  // no earlier, because devices may need the regions until then
    if (request_cookies_ != nullptr) request_cookies_->begin(static_cast<std::uint32_t>(attr_.max_request_dtos));
    private_data_size_ = 0;
    return success;
}

void Ep::query(DAT_EP_PARAM_MASK mask, DAT_EP_PARAM& param) noexcept {
    const auto wants = [mask](DAT_EP_PARAM_MASK field) { return (mask & field) != 0; };
    if (wants(DAT_EP_FIELD_IA_HANDLE)) param.ia_handle = ia().number();
    if (wants(DAT_EP_FIELD_EP_STATE)) param.ep_state = settled_state();
    if (wants(DAT_EP_FIELD_COMM)) param.comm = comm_;
    if (wants(DAT_EP_FIELD_LOCAL_IA_ADDRESS_PTR)) param.local_ia_address_ptr = ia().address();
    if (wants(DAT_EP_FIELD_LOCAL_PORT_QUAL)) param.local_port_qual = local_port_;
    if (wants(DAT_EP_FIELD_REMOTE_IA_ADDRESS_PTR))
        param.remote_ia_address_ptr = reinterpret_cast<DAT_IA_ADDRESS_PTR>(&remote_address_);
    if (wants(DAT_EP_FIELD_REMOTE_PORT_QUAL)) param.remote_port_qual = remote().qual;
    if (wants(DAT_EP_FIELD_PZ_HANDLE)) param.pz_handle = pz_.handle();
    if (wants(DAT_EP_FIELD_RECV_EVD_HANDLE)) param.recv_evd_handle = recv_evd_.handle();
    if (wants(DAT_EP_FIELD_REQUEST_EVD_HANDLE)) param.request_evd_handle = request_evd_.handle();
    if (wants(DAT_EP_FIELD_CONNECT_EVD_HANDLE)) param.connect_evd_handle = connect_evd_.handle();
    if (wants(DAT_EP_FIELD_SRQ_HANDLE)) param.srq_handle = srq_.handle();
    if (wants(DAT_EP_FIELD_EP_ATTR_ALL)) param.ep_attr = attr_;
}

// ---- Changes ------------------------------------------------------------------------------------------------------

namespace {

constexpr DAT_EP_PARAM_MASK fixed_fields =
    DAT_EP_FIELD_IA_HANDLE | DAT_EP_FIELD_EP_STATE | DAT_EP_FIELD_LOCAL_IA_ADDRESS_PTR | DAT_EP_FIELD_LOCAL_PORT_QUAL |
    DAT_EP_FIELD_REMOTE_IA_ADDRESS_PTR | DAT_EP_FIELD_REMOTE_PORT_QUAL | DAT_EP_FIELD_SRQ_HANDLE;

/// Fields that cannot be changed once a connection request is expected or pending (dat_ep_modify(3DAT)).
constexpr DAT_EP_PARAM_MASK quiescent_fields =
    DAT_EP_FIELD_EP_ATTR_NUM_TRANSPORT_ATTR | DAT_EP_FIELD_EP_ATTR_TRANSPORT_SPECIFIC_ATTR |
    DAT_EP_FIELD_EP_ATTR_NUM_PROVIDER_ATTR | DAT_EP_FIELD_EP_ATTR_PROVIDER_SPECIFIC_ATTR;

DAT_RETURN check_modifiable(const Ep& ep, DAT_EP_PARAM_MASK mask) noexcept {
    if (const DAT_EP_PARAM_MASK wrong = mask & (~DAT_EP_FIELD_ALL | fixed_fields); wrong != 0)
        return invalid_parameter(DAT_INVALID_ARG2, explain("the fields 0x%llx of the mask cannot be changed",
                                                           static_cast<unsigned long long>(wrong)));
    switch (ep.state()) {
        case EndpointState::Unconnected: return success;
        case EndpointState::TentativePending:
            if ((mask & quiescent_fields) != 0) return ep.wrong_state();
            return (mask & DAT_EP_FIELD_PZ_HANDLE) != 0 && !ep.provider_made() ? ep.wrong_state() : success;
        case EndpointState::Reserved:
            return (mask & (quiescent_fields | DAT_EP_FIELD_PZ_HANDLE)) != 0 ? ep.wrong_state() : success;
        case EndpointState::PassivePending:
        case EndpointState::ActivePending:
        case EndpointState::Connected:
        case EndpointState::DisconnectPending:
        case EndpointState::Disconnected: return ep.wrong_state();
    }
    return ep.wrong_state();
}

/// A dispatcher of an endpoint.
struct EvdRole {
    const char* name;
    DAT_EVD_HANDLE DAT_EP_PARAM::*handle;
    Evd* EpParts::*part;
    DAT_EP_PARAM_MASK field;
    DAT_RETURN_SUBTYPE subtype;  ///< of DAT_INVALID_HANDLE
    DAT_EVD_FLAGS stream;
    const char* flag;
};
constexpr EvdRole evd_roles[] = {
    {"recv_evd_handle", &DAT_EP_PARAM::recv_evd_handle, &EpParts::recv_evd, DAT_EP_FIELD_RECV_EVD_HANDLE,
     DAT_INVALID_HANDLE_EVD_RECV, DAT_EVD_DTO_FLAG, "DAT_EVD_DTO_FLAG"},
    {"request_evd_handle", &DAT_EP_PARAM::request_evd_handle, &EpParts::request_evd, DAT_EP_FIELD_REQUEST_EVD_HANDLE,
     DAT_INVALID_HANDLE_EVD_REQUEST, DAT_EVD_DTO_FLAG, "DAT_EVD_DTO_FLAG"},
    {"connect_evd_handle", &DAT_EP_PARAM::connect_evd_handle, &EpParts::connect_evd, DAT_EP_FIELD_CONNECT_EVD_HANDLE,
     DAT_INVALID_HANDLE_EVD_CONN, DAT_EVD_CONNECTION_FLAG, "DAT_EVD_CONNECTION_FLAG"},
};

/// Finds the zone and the dispatchers that the mask selects; their handles may be DAT_HANDLE_NULL. A dispatcher for
/// connection events may belong to another IA. `creates`: whether the handles are arguments of the call.
DAT_RETURN find_parts(EpParts& parts, const Ia& ia, DAT_EP_PARAM_MASK mask, const DAT_EP_PARAM& wanted,
                      bool creates) noexcept {
    const auto invalid = [creates](DAT_RETURN_SUBTYPE subtype) {
        return creates ? error(DAT_INVALID_HANDLE, subtype) : error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
    };
    if ((mask & DAT_EP_FIELD_PZ_HANDLE) != 0) {
        parts.pz = resolve_in<Pz>(ia, wanted.pz_handle);
        if (wanted.pz_handle != DAT_HANDLE_NULL && parts.pz == nullptr)
            return failed(invalid(DAT_INVALID_HANDLE_PZ), "pz_handle is no protection zone of this adapter");
    }
    for (const EvdRole& role : evd_roles) {
        if ((mask & role.field) == 0) continue;
        const Evd* const evd = parts.*role.part = resolve<Evd>(wanted.*role.handle);
        if (wanted.*role.handle == DAT_HANDLE_NULL) continue;
        if (evd == nullptr || (&evd->ia() != &ia && role.stream != DAT_EVD_CONNECTION_FLAG))
            return failed(invalid(role.subtype), explain("%s is no EVD of this adapter", role.name));
        if (!evd->takes(role.stream))
            return failed(invalid(role.subtype), explain("%s was created without %s", role.name, role.flag));
    }
    return success;
}

DAT_RETURN change_parts(EpParts& parts, const Ep& ep, DAT_EP_PARAM_MASK mask, const DAT_EP_PARAM& wanted) noexcept {
    if (const DAT_RETURN result = find_parts(parts, ep.ia(), mask, wanted, false); result != success) return result;
    if (parts.pz != nullptr && parts.srq != nullptr && parts.pz != &parts.srq->pz())
        return invalid_parameter(DAT_INVALID_ARG3, "the SRQ is in another protection zone");
    if ((mask & DAT_EP_FIELD_COMM) == 0) return success;
    if (!is_supported(wanted.comm)) return invalid_parameter(DAT_INVALID_ARG3, "comm is not a byte stream over IP");
    parts.comm = wanted.comm;
    return success;
}

/// The bits of the mask are in the order of the members.
void change_attributes(DAT_EP_ATTR& attr, DAT_EP_PARAM_MASK mask, const DAT_EP_ATTR& wanted) noexcept {
    DAT_EP_PARAM_MASK field = DAT_EP_FIELD_EP_ATTR_SERVICE_TYPE;
#define CHANGE(member)                                    \
    if ((mask & field) != 0) attr.member = wanted.member; \
    field <<= 1;
    EP_ATTR_MEMBERS(CHANGE)
#undef CHANGE
}

// ---- Entry points -------------------------------------------------------------------------------------------------

constexpr DAT_EP_PARAM_MASK part_fields = DAT_EP_FIELD_PZ_HANDLE | DAT_EP_FIELD_RECV_EVD_HANDLE |
                                          DAT_EP_FIELD_REQUEST_EVD_HANDLE | DAT_EP_FIELD_CONNECT_EVD_HANDLE;

}  // namespace

DAT_RETURN calls::ep_create(Ia& owner, DAT_PZ_HANDLE pz, DAT_EVD_HANDLE recv_evd, DAT_EVD_HANDLE request_evd,
                            DAT_EVD_HANDLE connect_evd, const DAT_EP_ATTR* attr, DAT_EP_HANDLE* ep) {
    EpParts parts;
    const DAT_EP_PARAM wanted{.pz_handle = pz,
                              .recv_evd_handle = recv_evd,
                              .request_evd_handle = request_evd,
                              .connect_evd_handle = connect_evd};
    if (const DAT_RETURN result = find_parts(parts, owner, part_fields, wanted, true); result != success) return result;
    if (ep == nullptr) return invalid_parameter(DAT_INVALID_ARG7, "ep_handle is null");
    parts.attr = attr != nullptr ? *attr : Ep::default_attributes(owner.device()->attributes());
    return Ep::create(owner, parts, DAT_INVALID_ARG6, *ep);
}

DAT_RETURN calls::ep_create_with_srq(Ia& owner, DAT_PZ_HANDLE pz, DAT_EVD_HANDLE recv_evd, DAT_EVD_HANDLE request_evd,
                                     DAT_EVD_HANDLE connect_evd, DAT_SRQ_HANDLE srq, const DAT_EP_ATTR* attr,
                                     DAT_EP_HANDLE* ep) {
    EpParts parts;
    const DAT_EP_PARAM wanted{.pz_handle = pz,
                              .recv_evd_handle = recv_evd,
                              .request_evd_handle = request_evd,
                              .connect_evd_handle = connect_evd};
    if (const DAT_RETURN result = find_parts(parts, owner, part_fields, wanted, true); result != success) return result;
    parts.srq = resolve_in<Srq>(owner, srq);
    if (parts.srq == nullptr) return invalid_handle(DAT_INVALID_HANDLE_SRQ, "srq_handle is no SRQ of this adapter");
    if (parts.pz != nullptr && parts.pz != &parts.srq->pz())
        return invalid_parameter(DAT_INVALID_ARG2, "the SRQ is in another protection zone");
    if (attr == nullptr) return invalid_parameter(DAT_INVALID_ARG7, "ep_attributes is null");
    if (ep == nullptr) return invalid_parameter(DAT_INVALID_ARG8, "ep_handle is null");
    parts.attr = *attr;
    parts.attr.max_recv_iov = parts.srq->max_recv_iov();  // receives are those of the queue
    return Ep::create(owner, parts, DAT_INVALID_ARG7, *ep);
}

DAT_RETURN calls::ep_modify(Ep& endpoint, DAT_EP_PARAM_MASK mask, const DAT_EP_PARAM* param) {
    if (param == nullptr) return invalid_parameter(DAT_INVALID_ARG3, "the parameters are null");
    if (const DAT_RETURN result = check_modifiable(endpoint, mask); result != success) return result;
    EpParts parts = endpoint.parts();
    if (const DAT_RETURN result = change_parts(parts, endpoint, mask, *param); result != success) return result;
    change_attributes(parts.attr, mask, param->ep_attr);
    return endpoint.modify(parts);
}

DAT_RETURN calls::ep_get_status(Ep& endpoint, DAT_EP_STATE* state, DAT_BOOLEAN* recv_idle, DAT_BOOLEAN* request_idle) {
    const DAT_EP_STATE seen = endpoint.settled_state();
    endpoint.collect_unreported();
    if (state != nullptr) *state = seen;
    if (recv_idle != nullptr) *recv_idle = endpoint.idle(QueueKind::Receive) ? DAT_TRUE : DAT_FALSE;
    if (request_idle != nullptr) *request_idle = endpoint.idle(QueueKind::Send) ? DAT_TRUE : DAT_FALSE;
    return success;
}

DAT_RETURN calls::ep_recv_query(Ep& endpoint, DAT_COUNT* allocated, DAT_COUNT* span) {
    if (allocated != nullptr) *allocated = endpoint.incomplete_receives();
    if (span != nullptr) *span = DAT_VALUE_UNKNOWN;
    return success;
}

DAT_RETURN calls::ep_set_watermark(Ep& /*endpoint*/, DAT_COUNT soft, DAT_COUNT hard) {
    if (soft < DAT_WATERMARK_INFINITE)
        return invalid_parameter(DAT_INVALID_ARG2, explain("soft_high_watermark is %d", soft));
    if (hard < DAT_WATERMARK_INFINITE)
        return invalid_parameter(DAT_INVALID_ARG3, explain("hard_high_watermark is %d", hard));
    const bool unlimited = soft == DAT_WATERMARK_INFINITE && hard == DAT_WATERMARK_INFINITE;
    return unlimited ? success : failed(error(DAT_MODEL_NOT_SUPPORTED), "high watermarks are not supported");
}

DAT_RETURN calls::ep_reset(Ep& endpoint) { return endpoint.reset(); }

DAT_RETURN calls::ep_free(Ep& endpoint) {
    const EndpointState state = endpoint.state();
    if (state == EndpointState::Reserved || state == EndpointState::TentativePending) return endpoint.wrong_state();
    return destroy<Ep>(endpoint.handle());
}

}  // namespace viaduct::dat
