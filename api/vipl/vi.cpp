// SPDX-License-Identifier: BSD-3-Clause
#include "api/vipl/vi.hpp"

#include <type_traits>

#include "api/vipl/cq.hpp"
#include "api/vipl/nic.hpp"
#include "api/vipl/translate.hpp"
#include "core/base/internals.hpp"
#include "core/base/waiting.hpp"
#include "core/explain.hpp"
#include "core/log.hpp"
#include "core/request_terms.hpp"

namespace viaduct::vipl {
namespace {

/// The attributes of a VI in the core's types.
struct CoreAttributes {
    EndpointAttributes endpoint;
    std::shared_ptr<ProtectionDomain> domain;
};

/// Converts the attributes, or returns the error code for the first invalid one.
VIP_RETURN read_attributes(const Nic& nic, const VIP_VI_ATTRIBUTES& from, CoreAttributes& to) noexcept {
    if (!to_reliability(from.ReliabilityLevel, to.endpoint.reliability))
        return failed(VIP_INVALID_RELIABILITY_LEVEL,
                      explain("ReliabilityLevel is %#x, which is not one of the three levels", from.ReliabilityLevel));
    if (from.MaxTransferSize == 0 || from.MaxTransferSize > nic.attributes().max_transfer_bytes)
        return failed(VIP_INVALID_MTU, explain("MaxTransferSize is %lu, MaxTransferSize of the NIC is %u",
                                               from.MaxTransferSize, nic.attributes().max_transfer_bytes));
    if (from.QoS != nullptr) return failed(VIP_INVALID_QOS, "QoS is not NULL");
    const Ptag* ptag = resolve<Ptag>(from.Ptag);
    if (ptag == nullptr || &ptag->nic() != &nic)
        return failed(VIP_INVALID_PTAG, "Ptag is not a protection tag of this NIC");
    if (from.EnableRdmaRead && to.endpoint.reliability == Reliability::Unreliable)
        return failed(VIP_INVALID_RDMAREAD, "EnableRdmaRead is set, and an unreliable VI cannot serve RDMA reads");
    to.endpoint.receiver_not_ready = ReceiverNotReady::Break;
    to.endpoint.refused_write = RefusedWrite::Silent;
    to.endpoint.max_transfer_bytes = static_cast<std::uint32_t>(from.MaxTransferSize);
    to.endpoint.access = {.remote_write = from.EnableRdmaWrite != VIP_FALSE,
                          .remote_read = from.EnableRdmaRead != VIP_FALSE};
    to.domain = ptag->domain();
    return VIP_SUCCESS;
}

/// Returns the core's queue of a completion queue, or a new one for a work queue without a completion queue.
Result<std::shared_ptr<CompletionQueue>> completions_for(const Nic& nic, const Cq* cq) {
    if (cq != nullptr) return cq->queue();
    return Internals::create_queue<CompletionQueue>(
        nic.device(), CompletionQueueConfig{.capacity = nic.attributes().default_queue_depth}, Vi::on_completion,
        &success_record);
}

template <class Request>
constexpr QueueKind kind_of = std::is_same_v<Request, SendRequest> ? QueueKind::Send : QueueKind::Receive;

const char* post_call(QueueKind queue) noexcept { return queue == QueueKind::Send ? "VipPostSend" : "VipPostRecv"; }

CompletedOperation operation_for(QueueKind queue) noexcept {
    return queue == QueueKind::Send ? CompletedOperation::Send : CompletedOperation::Receive;
}
CompletedOperation operation_for(QueueKind queue, const VIP_DESCRIPTOR& descriptor) noexcept {
    const unsigned operation = descriptor.CS.Control & VIP_CONTROL_OP_MASK;
    if (queue == QueueKind::Receive || operation == VIP_CONTROL_OP_SENDRECV) return operation_for(queue);
    return operation == VIP_CONTROL_OP_RDMAREAD ? CompletedOperation::RdmaRead : CompletedOperation::RdmaWrite;
}

/// Finds a completion queue by a handle that may be NULL. Returns false if the handle is not a completion queue of this
/// NIC.
bool find_cq(const Nic& nic, VIP_CQ_HANDLE handle, Cq*& cq) noexcept {
    if (handle == nullptr) return true;
    cq = resolve<Cq>(handle);
    return cq != nullptr && &cq->nic() == &nic;
}

}  // namespace

Vi::Vi(Nic& nic, std::shared_ptr<CompletionQueue> send_queue, std::shared_ptr<CompletionQueue> receive_queue,
       Cq* send_cq, Cq* receive_cq)
    : nic_(nic),
      send_(*this, QueueKind::Send, std::move(send_queue), send_cq),
      receive_(*this, QueueKind::Receive, std::move(receive_queue), receive_cq),
      max_segments_(nic.attributes().max_sges) {}

VIP_RETURN Vi::create(Nic& nic, const VIP_VI_ATTRIBUTES& attributes, Cq* send_cq, Cq* receive_cq,
                      std::unique_ptr<Vi>& vi) {
    CoreAttributes wanted;
    if (const VIP_RETURN result = read_attributes(nic, attributes, wanted); result != VIP_SUCCESS) return result;
    auto send_queue = completions_for(nic, send_cq);
    if (!send_queue.ok()) return to_return(send_queue.status());
    auto receive_queue = completions_for(nic, receive_cq);
    if (!receive_queue.ok()) return to_return(receive_queue.status());
    std::unique_ptr<Vi> created(new Vi(nic, *send_queue, *receive_queue, send_cq, receive_cq));
    auto endpoint = Endpoint::create({.attributes = wanted.endpoint,
                                      .domain = wanted.domain,
                                      .send_queue = *send_queue,
                                      .receive_queue = *receive_queue,
                                      .context = to_context(created->handle()),
                                      .observer = created.get()});
    if (!endpoint.ok()) return to_return(endpoint.status());
    created->endpoint_ = std::move(*endpoint);
    {
        const LockGuard lock(created->attributes_mutex_);
        created->copy_attributes();
    }
    vi = std::move(created);
    return VIP_SUCCESS;
}

void Vi::end_calls() noexcept {
    revoke();
    attempt.end();
    end_waits(handle());
}

void Vi::end_handlers() noexcept {
    send_.cancel_notifies();
    receive_.cancel_notifies();
}

Vi::~Vi() {
    end_calls();
    end_handlers();
    endpoint_.reset();  // observes completions until then
    end_error();
}

VIP_RETURN Vi::set_attributes(const VIP_VI_ATTRIBUTES& attributes) {
    CoreAttributes wanted;
    if (const VIP_RETURN result = read_attributes(nic_, attributes, wanted); result != VIP_SUCCESS) return result;
    const LockGuard lock(state_mutex_);
    const LockGuard attributes_lock(attributes_mutex_);
    const Status status = endpoint_->modify(wanted.endpoint, std::move(wanted.domain));
    if (status.ok()) copy_attributes();
    return to_return(status);
}

VIP_VI_ATTRIBUTES Vi::attributes() const {
    const LockGuard lock(attributes_mutex_);
    VIP_VI_ATTRIBUTES attributes = to_vi_attributes(endpoint_->attributes(), nic_.attributes());
    attributes.Ptag = nic_.ptag_of(*endpoint_->domain());
    return attributes;
}

void Vi::copy_attributes() noexcept {
    domain_.store(endpoint_->domain().get(), std::memory_order_relaxed);
    max_transfer_bytes_.store(endpoint_->attributes().max_transfer_bytes, std::memory_order_relaxed);
    reliable_.store(endpoint_->attributes().reliability != Reliability::Unreliable, std::memory_order_relaxed);
}

DescriptorLimits Vi::limits() const noexcept {
    return {.segments = max_segments_,
            .transfer_bytes = max_transfer_bytes_.load(std::memory_order_relaxed),
            .rdma_read = reliable_.load(std::memory_order_relaxed)};
}

bool Vi::uses(VIP_CQ_HANDLE cq) const noexcept {
    return (send_.cq() != nullptr && send_.cq()->handle() == cq) ||
           (receive_.cq() != nullptr && receive_.cq()->handle() == cq);
}

VIP_RETURN Vi::check_destroyable() const noexcept {
    if (endpoint_->state() != EndpointState::Unconnected) return not_idle();
    if (!send_.empty() || !receive_.empty())
        return failed(VIP_INVALID_STATE, "the VI has descriptors that VipSendDone and VipRecvDone have not returned");
    return VIP_SUCCESS;
}

/// Reports whether a descriptor with up to two segments may be read: it is aligned and in memory with the VI's
/// protection tag (guide, section 3.8.1), which has held the queue's last descriptor, too. postable() knows all other
/// descriptors that may be read.
inline bool Vi::holds_plain(const VIP_DESCRIPTOR* descriptor, VIP_MEM_HANDLE memory,
                            const WorkQueue& queue) const noexcept {
    if (reinterpret_cast<std::uintptr_t>(descriptor) % VIP_DESCRIPTOR_ALIGNMENT != 0) return false;
    const DescriptorMemory& region = queue.last_memory();
    if (region.key.load(std::memory_order_acquire) != memory) return false;
    if (region.domain.load(std::memory_order_relaxed) != domain_.load(std::memory_order_relaxed)) return false;
    const std::uint64_t offset =
        reinterpret_cast<std::uintptr_t>(descriptor) - region.begin.load(std::memory_order_relaxed);
    std::uint64_t end = 0;
    if (__builtin_add_overflow(offset, 2 * sizeof(VIP_DESCRIPTOR_SEGMENT), &end)) return false;
    return end <= region.room.load(std::memory_order_relaxed);
}

/// Reports whether a descriptor may be read at all.
bool Vi::postable(const VIP_DESCRIPTOR* descriptor, VIP_MEM_HANDLE memory, WorkQueue& queue) const noexcept {
    if (reinterpret_cast<std::uintptr_t>(descriptor) % VIP_DESCRIPTOR_ALIGNMENT != 0) return false;
    const DescriptorMemory& region = queue.find_memory(memory);
    if (region.domain.load(std::memory_order_relaxed) != domain_.load(std::memory_order_relaxed)) return false;
    const std::uint64_t offset =
        reinterpret_cast<std::uintptr_t>(descriptor) - region.begin.load(std::memory_order_relaxed);
    const std::uint64_t room = region.room.load(std::memory_order_relaxed);
    if (offset > room) return false;
    // Too many segments are an error of the descriptor, which is detected when it is read. The segments are not
    // accessed.
    const std::size_t segments = descriptor->CS.SegCount;
    return segments * sizeof(VIP_DESCRIPTOR_SEGMENT) <= room - offset || segments > max_segments_;
}

template <class Request>
VIP_RETURN Vi::post(VIP_DESCRIPTOR* descriptor, VIP_MEM_HANDLE memory) noexcept {
    if (!holds_plain(descriptor, memory, queue(kind_of<Request>))) [[unlikely]]
        return check_and_post<Request>(descriptor, memory);
    Request request;
    bool is_plain = false;
    if constexpr (kind_of<Request> == QueueKind::Send)
        is_plain = read_plain_send(*descriptor, limits(), request);
    else
        is_plain = read_plain_receive(*descriptor, request);
    if (!is_plain) [[unlikely]]
        return check_and_post<Request>(descriptor, memory);
    descriptor->CS.Status = 0;
    const Status* const failure = Internals::post(*endpoint_, request);
    if (failure == nullptr) [[likely]]
        return VIP_SUCCESS;
    return not_posted(*failure, descriptor, kind_of<Request>);
}

template VIP_RETURN Vi::post<SendRequest>(VIP_DESCRIPTOR* descriptor, VIP_MEM_HANDLE memory) noexcept;
template VIP_RETURN Vi::post<ReceiveRequest>(VIP_DESCRIPTOR* descriptor, VIP_MEM_HANDLE memory) noexcept;

template <class Request>
VIP_RETURN Vi::check_and_post(VIP_DESCRIPTOR* descriptor, VIP_MEM_HANDLE memory) noexcept {
    constexpr QueueKind kind = kind_of<Request>;
    if (!postable(descriptor, memory, queue(kind))) return refuse_post(descriptor, memory, kind);
    Request request;
    read(*descriptor, limits(), request);
    if (request.fault != CompletionCode::Success) explain_fault(*descriptor, kind, request.fault);
    descriptor->CS.Status = 0;
    std::size_t posted = 0;
    const Status status = [&] {
        if constexpr (kind == QueueKind::Send)
            return endpoint_->post_send({&request, 1}, posted);
        else
            return endpoint_->post_receive({&request, 1}, posted);
    }();
    return status.ok() ? VIP_SUCCESS : not_posted(status, descriptor, kind);
}

VIP_RETURN Vi::refuse_post(VIP_DESCRIPTOR* descriptor, VIP_MEM_HANDLE memory, QueueKind queue) noexcept {
    if (descriptor == nullptr) return Entry::refuse(handle(), "DescriptorPtr is NULL", post_call(queue));
    return refuse(VIP_ERROR_POST_DESC, VIP_RESOURCE_DESCRIPTOR, descriptor, operation_for(queue),
                  why_not_postable(descriptor, memory, this->queue(queue)));
}

/// Reads what postable() reads, because another thread may deregister the memory meanwhile.
Reason Vi::why_not_postable(const VIP_DESCRIPTOR* descriptor, VIP_MEM_HANDLE memory, WorkQueue& queue) const noexcept {
    if (reinterpret_cast<std::uintptr_t>(descriptor) % VIP_DESCRIPTOR_ALIGNMENT != 0)
        return explain("its address is not a multiple of %d", VIP_DESCRIPTOR_ALIGNMENT);
    const DescriptorMemory& region = queue.find_memory(memory);
    const ProtectionDomain* const domain = region.domain.load(std::memory_order_relaxed);
    if (domain == nullptr)
        return explain("MemoryHandle %#x is not one of registered memory, or that has no room for a descriptor",
                       memory);
    if (domain != domain_.load(std::memory_order_relaxed))
        return explain("the memory of handle %#x has another protection tag than the VI", memory);
    const unsigned long long bytes = region.room.load(std::memory_order_relaxed) + sizeof(VIP_CONTROL_SEGMENT);
    return explain("the descriptor is not inside the memory of handle %#x, which has %llu bytes at %p", memory, bytes,
                   reinterpret_cast<void*>(region.begin.load(std::memory_order_relaxed)));
}

/// The descriptor was not posted. As with hardware, the program is notified later by an asynchronous error (guide,
/// section 6.3.1).
VIP_RETURN Vi::refuse(VIP_ERROR_CODE code, VIP_RESOURCE_CODE resource, VIP_DESCRIPTOR* descriptor,
                      CompletedOperation operation, const Reason& why) noexcept {
    const CancellationHold hold;
    const FailedRequest failed{.operation = operation,
                               .code = CompletionCode::LocalFormat,
                               .context = reinterpret_cast<std::uint64_t>(descriptor),
                               .why = why};
    RequestTerms terms = terms_of(failed);
    terms.code = to_string(code);
    log_failure(failed, terms);
    break_off();
    report(code, resource, descriptor, to_operation_bits(failed.operation));
    report_loss();
    return VIP_SUCCESS;
}

void Vi::explain_fault(const VIP_DESCRIPTOR& descriptor, QueueKind queue, CompletionCode code) noexcept {
    on_failed_request({.operation = operation_for(queue),
                       .code = code,
                       .context = reinterpret_cast<std::uint64_t>(&descriptor),
                       .why = why_invalid(descriptor, limits(), queue)});
}

RequestTerms Vi::terms_of(const FailedRequest& request) const noexcept {
    const bool receives = request.operation >= CompletedOperation::Receive;
    return {.call = post_call(receives ? QueueKind::Receive : QueueKind::Send),
            .object = "VI",
            .handle = handle(),
            .context = "descriptor",
            .piece = "data segment",
            .code = to_status_bit(request.code).name,
            .value = request.context};
}

VIP_RETURN Vi::not_posted(const Status& status, VIP_DESCRIPTOR* descriptor, QueueKind queue) noexcept {
    if (status.code() == Code::QueueFull)
        return refuse(VIP_ERROR_VI_OVERRUN, VIP_RESOURCE_VI, descriptor, operation_for(queue, *descriptor),
                      explain("the queue has %u descriptors and room for no more", endpoint_->outstanding(queue)));
    failure::clear();
    const VIP_RETURN result = to_return(status);
    Api::report(post_call(queue), handle(), result);
    return result;
}

VIP_RETURN Vi::not_idle() const noexcept {
    const char* const name = state_name(to_vi_state(endpoint_->state()));
    return failed(VIP_INVALID_STATE,
                  explain("the VI is in the state %s, not VIP_STATE_IDLE; call VipDisconnect", name));
}

VIP_RETURN Vi::connect(const ConnectParameters& parameters, std::uint64_t& number) noexcept {
    const LockGuard lock(state_mutex_);
    if (endpoint_->state() != EndpointState::Unconnected) return not_idle();
    number = attempt.begin(parameters.model);
    if (number == 0) return failed(VIP_INVALID_STATE, "a connection request is in progress");
    end_error();
    const Status status = endpoint_->connect(parameters);
    if (!status.ok()) attempt.abandon();
    Internals::flush(*endpoint_);
    return to_return(status);
}

void Vi::flush_if_unreachable() noexcept { Internals::flush(*endpoint_); }

bool Vi::begin_error() noexcept {
    Error none = Error::None;
    const bool is_first = error_.compare_exchange_strong(none, Error::Begun);
    if (is_first) DeliveryChecks::add(1);
    return is_first;
}

void Vi::leave_error() noexcept {
    Error begun = Error::Begun;
    error_.compare_exchange_strong(begun, Error::Over);
}

void Vi::end_error() noexcept {
    if (error_.exchange(Error::None) != Error::None) DeliveryChecks::remove(1);
}

void Vi::contain(const char* why) noexcept {
    {
        const LockGuard lock(state_mutex_);
        if (error_ != Error::Begun) return;
        break_off();
    }
    log(LogLevel::Info, "VI %p is in the Error state: %s", handle(), why);
    report_loss();
}

VIP_RETURN Vi::accept(ConnectionRequest& request) noexcept {
    const LockGuard lock(state_mutex_);
    const EndpointAttributes& peer = request.remote_attributes();
    const Status status = compatible(endpoint_->attributes(), peer);
    // A VI's program waits for another VI of this side (guide, section 3.3.2); programs of other APIs do not.
    if (!status.ok() && peer.any_reliable) (void)request.conflict(endpoint_->attributes());
    if (!status.ok()) return to_return(status);
    if (endpoint_->state() != EndpointState::Unconnected) return not_idle();
    end_error();
    return to_return(endpoint_->accept(request, {}));
}

void Vi::disconnect() noexcept {
    const LockGuard lock(state_mutex_);
    loss_due_ = false;
    if (error_ == Error::Over) end_error();
    endpoint_->disconnect();
    loss_due_ = false;  // of a connection that was established meanwhile
    leave_error();
    attempt.abandon();
}

void Vi::break_off() noexcept {
    Internals::fail(*endpoint_);
    attempt.settle({.kind = ConnectionEventKind::Lost,
                    .reason = Code::InvalidState,
                    .why = "the VI entered the Error state during the request"});
}

void Vi::on_connection_event(const ConnectionEvent& event) noexcept {
    switch (event.kind) {
        case ConnectionEventKind::Established: loss_due_ = true; break;
        case ConnectionEventKind::Disconnected:
        case ConnectionEventKind::Lost:
            log(LogLevel::Info, "VI %p: the connection ended: %s", handle(), event.why.c_str());
            report_loss();
            break;
        case ConnectionEventKind::Rejected:
        case ConnectionEventKind::TimedOut:
        case ConnectionEventKind::Conflict: break;
        case ConnectionEventKind::Unreachable: report(unreachable_error, VIP_RESOURCE_VI, nullptr, 0); break;
    }
    attempt.settle(event);
}

/// A descriptor is lost if its memory is in no region any more, or cannot be written. An asynchronous error reports
/// this once and moves the VI to the Error state (guide, section 3.8.1, Completion Protection Error).
bool Vi::check_and_deliver(const Completion& completion) noexcept {
    VIP_DESCRIPTOR* const descriptor = descriptor_of(completion);
    const bool is_revoked = nic_.revoked.contains(descriptor) && !nic_.regions.covers(descriptor);
    const bool lost = is_revoked || !write_back(completion);
    queue(completion.queue()).count_checked(lost);
    if (lost) lose(VIP_ERROR_COMP_PROT, descriptor, completion.operation);
    return !lost;
}

/// Behind a lost descriptor none may succeed.
bool Vi::flush_or_deliver(Completion& completion) noexcept {
    if (error_ != Error::None)
        completion = {.context = completion.context,
                      .endpoint_context = completion.endpoint_context,
                      .operation = completion.operation,
                      .code = CompletionCode::Flushed};
    return check_and_deliver(completion);
}

void Vi::lose(VIP_ERROR_CODE code, VIP_DESCRIPTOR* descriptor, CompletedOperation operation) noexcept {
    if (!begin_error()) return;
    // Devices find that memory is gone when their completions are polled, which may be after VipDisconnect.
    if (code == VIP_ERROR_COMP_PROT && endpoint_->state() == EndpointState::Unconnected) leave_error();
    report(code, VIP_RESOURCE_VI, descriptor, to_operation_bits(operation));
}

/// Descriptors flushed by the destruction of a VI are not written, because the program may have freed their memory.
/// Those that flush_or_deliver() will flush are left to it.
bool Vi::on_completion(const Completion& completion) noexcept {
    if (!DeliveryChecks::any() && completion.code != CompletionCode::Flushed && write_back(completion)) [[likely]]
        return true;
    Vi* vi = resolve_context<Vi>(completion.endpoint_context);
    return vi != nullptr && (vi->error_ == Error::None || completion.code == CompletionCode::Flushed) &&
           vi->check_and_deliver(completion);
}

void Vi::report_loss() noexcept {
    if (loss_due_.exchange(false)) report(VIP_ERROR_CONN_LOST, VIP_RESOURCE_VI, nullptr, 0);
}

void Vi::report(VIP_ERROR_CODE code, VIP_RESOURCE_CODE resource, VIP_DESCRIPTOR* descriptor,
                VIP_ULONG operation) noexcept {
    nic_.errors.report({.NicHandle = nic_.handle(),
                        .ViHandle = handle(),
                        .DescriptorPtr = descriptor,
                        .OpCode = operation,
                        .ResourceCode = resource,
                        .ErrorCode = code});
}

}  // namespace viaduct::vipl

using namespace viaduct;
using namespace viaduct::vipl;

VIP_RETURN VipCreateVi(VIP_NIC_HANDLE NicHandle, VIP_VI_ATTRIBUTES* ViAttribs, VIP_CQ_HANDLE SendCQHandle,
                       VIP_CQ_HANDLE RecvCQHandle, VIP_VI_HANDLE* ViHandle) {
    return Entry::on<Nic>(
        NicHandle, {{ViAttribs != nullptr, "ViAttribs is NULL"}, {ViHandle != nullptr, "ViHandle is NULL"}},
        [&](Nic& nic) {
            Cq* send_cq = nullptr;
            Cq* receive_cq = nullptr;
            if (!failure::require(
                    {{find_cq(nic, SendCQHandle, send_cq), "SendCQHandle is not a completion queue of this NIC"},
                     {find_cq(nic, RecvCQHandle, receive_cq), "RecvCQHandle is not a completion queue of this NIC"}}))
                return VIP_INVALID_PARAMETER;
            VIP_VI_ATTRIBUTES attributes = *ViAttribs;
            if (attributes.Ptag == nullptr) {  // an extension to the guide; old programs omit the tag
                const auto ptag = nic.default_ptag();
                if (!ptag.ok()) return to_return(ptag.status());
                attributes.Ptag = ptag.value();
            }
            std::unique_ptr<Vi> vi;
            const VIP_RETURN result = Vi::create(nic, attributes, send_cq, receive_cq, vi);
            if (result == VIP_SUCCESS) *ViHandle = nic.vis.add(std::move(vi)).handle();
            return result;
        });
}

VIP_RETURN VipDestroyVi(VIP_VI_HANDLE ViHandle) {
    return Entry::on<Vi>(ViHandle, {}, [&](Vi& vi) {
        if (const VIP_RETURN result = vi.check_destroyable(); result != VIP_SUCCESS) return result;
        return vi.nic().vis.remove(vi) != nullptr ? VIP_SUCCESS : VIP_INVALID_PARAMETER;
    });
}

VIP_RETURN VipSetViAttributes(VIP_VI_HANDLE ViHandle, VIP_VI_ATTRIBUTES* ViAttribs) {
    return Entry::on<Vi>(ViHandle, {{ViAttribs != nullptr, "ViAttribs is NULL"}},
                         [&](Vi& vi) { return vi.set_attributes(*ViAttribs); });
}

VIP_RETURN VipQueryVi(VIP_VI_HANDLE ViHandle, VIP_VI_STATE* State, VIP_VI_ATTRIBUTES* ViAttribs,
                      VIP_BOOLEAN* ViSendQEmpty, VIP_BOOLEAN* ViRecvQEmpty) {
    return Entry::on<Vi>(ViHandle,
                         {{State != nullptr, "State is NULL"},
                          {ViAttribs != nullptr, "ViAttribs is NULL"},
                          {ViSendQEmpty != nullptr, "ViSendQEmpty is NULL"},
                          {ViRecvQEmpty != nullptr, "ViRecvQEmpty is NULL"}},
                         [&](Vi& vi) {
                             *State = to_vi_state(vi.endpoint().state());
                             *ViAttribs = vi.attributes();
                             *ViSendQEmpty = to_boolean(vi.queue(QueueKind::Send).empty());
                             *ViRecvQEmpty = to_boolean(vi.queue(QueueKind::Receive).empty());
                             return VIP_SUCCESS;
                         });
}

void VipSetUserData(VIP_VI_HANDLE ViHandle, VIP_PVOID UserData) {
    if (Vi* vi = resolve<Vi>(ViHandle); vi != nullptr) vi->user_data = UserData;
}

VIP_PVOID VipGetUserData(VIP_VI_HANDLE ViHandle) {
    const Vi* vi = resolve<Vi>(ViHandle);
    return vi == nullptr ? nullptr : vi->user_data.load();
}
