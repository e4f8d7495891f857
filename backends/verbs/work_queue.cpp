// SPDX-License-Identifier: BSD-3-Clause
#include "backends/verbs/work_queue.hpp"

#include <arpa/inet.h>

#include <bit>
#include <utility>

#include "backends/support/refusals.hpp"
#include "backends/verbs/agent.hpp"
#include "backends/verbs/completion_queue.hpp"
#include "backends/verbs/regions.hpp"
#include "backends/verbs/windows.hpp"

namespace viaduct::verbs {
namespace {

/// How many places in the completion queue a queue takes first.
constexpr std::uint32_t first_places = 64;

/// How many slots of the ring prepare() sets up at a time.
constexpr std::uint32_t prepared_at_a_time = 64;

CompletionCode code_of(const ibv_wc& result) noexcept {
    switch (result.status) {
        case IBV_WC_SUCCESS: return CompletionCode::Success;
        case IBV_WC_LOC_LEN_ERR: return CompletionCode::LocalLength;
        case IBV_WC_LOC_PROT_ERR:
        case IBV_WC_LOC_QP_OP_ERR:
        case IBV_WC_MW_BIND_ERR:
        case IBV_WC_LOC_ACCESS_ERR: return CompletionCode::LocalProtection;
        case IBV_WC_WR_FLUSH_ERR: return CompletionCode::Flushed;
        case IBV_WC_REM_ACCESS_ERR: return CompletionCode::RemoteProtection;
        case IBV_WC_REM_INV_REQ_ERR: return CompletionCode::RemoteLength;
        case IBV_WC_REM_OP_ERR:
        case IBV_WC_RNR_RETRY_EXC_ERR: return CompletionCode::RemoteOperation;
        default: return CompletionCode::Transport;
    }
}

/// Operations whose initiator waits for data and therefore learns of failures.
bool is_answered(CompletedOperation operation) noexcept {
    return operation == CompletedOperation::RdmaRead || operation == CompletedOperation::Flush ||
           operation == CompletedOperation::FetchAdd || operation == CompletedOperation::CompareSwap;
}

}  // namespace

WorkQueue::WorkQueue(QueueKind kind, const backend::EndpointInit& init)
    : kind_(kind),
      completions_(static_cast<CompletionQueue&>(kind == QueueKind::Send ? *init.send_queue : *init.receive_queue)),
      depth_(kind == QueueKind::Send ? init.send_depth : init.receive_depth),
      max_sges_(init.max_sges),
      mask_(std::bit_ceil(std::max(depth_, 1u)) - 1),
      endpoint_context_(init.context),
      observer_(*init.observer),
      memory_(std::make_unique_for_overwrite<std::byte[]>((mask_ + std::size_t{1}) * sizeof(Slot))),
      ring_(reinterpret_cast<Slot*>(memory_.get())) {
    completions_.attach(*this);
}

WorkQueue::~WorkQueue() { completions_.forget(*this, places_); }

void WorkQueue::renew_direct() noexcept {
    direct_limit_ = direct_ && mode_ == Mode::Live ? std::min(depth_, places_) : 0;
    direct_end_ = position();
}

/// Sets the constant fields of the next slots, when the ring is used for the first time. (Not of all slots at once,
/// because most slots of a deep queue are never used.) Direct posts go no further than to prepared slots.
void WorkQueue::prepare(std::uint32_t position) noexcept {
    if (position == prepared_) {
        const std::uint32_t end = std::min(position + prepared_at_a_time, mask_ + 1);
        for (; prepared_ != end; ++prepared_)
            new (&ring_[prepared_]) Slot{.queue = this,
                                         .completion = {.endpoint_context = endpoint_context_},
                                         .next = 0,
                                         .report = Slot::Report::Failure,
                                         .fault = CompletionCode::Success};
    }
    if (prepared_ <= mask_) direct_end_ = std::min(direct_end_, prepared_);
}

void WorkQueue::activate(ibv_qp* queue_pair, const Translation& translation, Link* link) noexcept {
    const LockGuard lock(completions_.mutex());
    queue_pair_ = queue_pair;
    translation_ = translation;
    link_ = link;
    failure_ = CompletionCode::Success;
    set_mode(Mode::Live);
}

/// Makes room by completing unsignaled requests, even if the consumer does not poll.
bool WorkQueue::collect() noexcept {
    completions_.progress();
    const LockGuard lock(completions_.mutex());  // another thread may be taking requests out of the ring
    return outstanding() < depth_;
}

/// Doubles the places. If the device does not support that many, takes the one that is needed.
Status WorkQueue::add_places() noexcept {
    const std::uint32_t wanted = outstanding() + 1;  // looked at once: completions make it smaller
    if (wanted <= places_) return {};
    const std::uint32_t needed = wanted - places_;
    const std::uint32_t spare = std::min(std::max(places_, first_places), depth_ - std::min(places_, depth_));
    std::uint32_t added = std::max(needed, spare);
    Status status = completions_.reserve(added);
    if (!status.ok() && added != needed) status = completions_.reserve(added = needed);
    if (!status.ok()) return status;
    places_ += added;
    renew_direct();
    return {};
}

std::uint32_t WorkQueue::give_back() noexcept {
    const std::uint32_t unused = places_ - std::min(places_, outstanding());
    places_ -= unused;
    renew_direct();
    return unused;
}

bool WorkQueue::is_retired(std::uint32_t position) noexcept {
    completions_.progress();
    return static_cast<std::int32_t>(retired_.load(std::memory_order_acquire) - position) >= 0;
}

CompletionCode WorkQueue::failure() noexcept {
    completions_.progress();
    const LockGuard lock(completions_.mutex());
    return failure_;
}

/// As complete(), for all requests.
bool WorkQueue::examine(const Slot& slot, const ibv_wc& result, Completion& completion) noexcept {
    const CompletionCode code = code_of(slot, result);
    describe(slot, result, code, completion);
    if (slot.completion.operation == CompletedOperation::BindWindow)
        completions_.windows().finish(slot.window, code == CompletionCode::Success);
    report(result, code);
    const bool wanted = slot.report == Slot::Report::Failure ? completion.code != CompletionCode::Success
                                                             : slot.report != Slot::Report::Never;
    retire(slot);
    return wanted;
}

void WorkQueue::complete_shared(const Slot& slot, const ibv_wc& result, Completion& completion) noexcept {
    const CompletionCode code = code_of(slot, result);
    report(result, code);
    describe(slot, result, code, completion);
    completion.endpoint_context = endpoint_context_;
}

CompletionCode WorkQueue::code_of(const Slot& slot, const ibv_wc& result) const noexcept {
    if (result.status == IBV_WC_WR_FLUSH_ERR) return CompletionCode::Flushed;
    if (slot.fault != CompletionCode::Success) return slot.fault;
    return result.status == IBV_WC_SUCCESS ? CompletionCode::Success : code_of_failure(slot, result);
}

CompletionCode WorkQueue::code_of_failure(const Slot& slot, const ibv_wc& result) const noexcept {
    if (kind_ == QueueKind::Receive) return code_of_receive(slot, result);
    const CompletionCode code = verbs::code_of(result);
    switch (result.status) {
        // Requests are checked before they are posted, so the reason can only be the memory.
        case IBV_WC_LOC_QP_OP_ERR: return slot.completion.bytes != 0 ? code : CompletionCode::LocalFormat;
        // For a send, the peer refused the length. For RDMA, its queue pair does not allow the operation.
        case IBV_WC_REM_INV_REQ_ERR:
            return slot.completion.operation == CompletedOperation::Send ? code : CompletionCode::RemoteProtection;
        default: return code;
    }
}

CompletionCode WorkQueue::code_of_receive(const Slot& slot, const ibv_wc& result) const noexcept {
    switch (result.status) {
        // Some devices only report that the receive is invalid: because of its memory or its length.
        case IBV_WC_LOC_QP_OP_ERR: {
            const Sge& piece = slot.first_piece;
            const bool usable = piece.length == 0 || completions_.regions().may_use(piece, true, *translation_.domain);
            return usable ? CompletionCode::LocalLength : CompletionCode::LocalProtection;
        }
        case IBV_WC_REM_INV_REQ_ERR: return CompletionCode::LocalLength;
        case IBV_WC_REM_ACCESS_ERR: return CompletionCode::LocalProtection;  // of an RDMA write with immediate data
        default: return verbs::code_of(result);
    }
}

void WorkQueue::describe(const Slot& slot, const ibv_wc& result, CompletionCode code, Completion& completion) noexcept {
    if (kind_ == QueueKind::Send && support::is_refusal(code)) refusals_.add();
    if (kind_ == QueueKind::Send && translation_.silent && !is_answered(slot.completion.operation)) {
        if (support::is_refusal(code)) code = CompletionCode::Success;
        if (code == CompletionCode::Transport && code != slot.fault) code = CompletionCode::Flushed;
    }
    completion = slot.completion;
    if (result.status != IBV_WC_SUCCESS && result.status != IBV_WC_WR_FLUSH_ERR &&
        slot.fault == CompletionCode::Success)
        tell(slot.completion.context, slot.completion.operation, code,
             explain("the device says: %s (vendor error %u)", ibv_wc_status_str(result.status), result.vendor_err));
    if (code != CompletionCode::Success) {
        completion.code = code;
        completion.bytes = 0;
    }
    if (kind_ == QueueKind::Send) return;
    if (code == CompletionCode::Success)
        add_message(result, completion);
    else if (result.status == IBV_WC_REM_ACCESS_ERR)
        completion.operation = CompletedOperation::ReceiveRdmaWrite;
}

void WorkQueue::tell(std::uint64_t context, CompletedOperation operation, CompletionCode code,
                     const Reason& why) const noexcept {
    if (support::wants_reasons())
        observer_.on_failed_request({.operation = operation, .code = code, .context = context, .why = why});
}

void WorkQueue::add_message(const ibv_wc& result, Completion& completion) noexcept {
    completion.bytes = result.byte_len;
    const bool written = result.opcode == IBV_WC_RECV_RDMA_WITH_IMM;
    received_.add(written ? CountedOperation::ReceiveImmediate : CountedOperation::Receive, Way::Device,
                  result.byte_len);
    if (written) completion.operation = CompletedOperation::ReceiveRdmaWrite;
    completion.with_immediate = (result.wc_flags & IBV_WC_WITH_IMM) != 0;
    if (completion.with_immediate) completion.immediate = ntohl(result.imm_data);
    completion.invalidated = (result.wc_flags & translation_.invalidated) != 0;
    if (completion.invalidated) completion.immediate = result.invalidated_rkey;
}

/// Errors that stop the queue pair end the connection, and so do errors on a reliable connection. The agent handles
/// that.
void WorkQueue::report(const ibv_wc& result, CompletionCode code) noexcept {
    const bool stopped = result.status != IBV_WC_SUCCESS;
    const bool breaks =
        stopped || code == CompletionCode::Transport || (translation_.reliable && code != CompletionCode::Success);
    if (!breaks || link_ == nullptr) return;
    if (failure_ == CompletionCode::Success && code != CompletionCode::Flushed) failure_ = code;
    link_->report_error();
}

void WorkQueue::complete_now(std::uint64_t context, CompletedOperation operation, CompletionCode code) noexcept {
    const LockGuard lock(completions_.mutex());
    completions_.add({.context = context, .endpoint_context = endpoint_context_, .operation = operation, .code = code},
                     *this);
}

void WorkQueue::flush() noexcept {
    const LockGuard lock(completions_.mutex());
    queue_pair_ = nullptr;
    link_ = nullptr;
    while (in_ring() != 0) {
        const Slot& slot = slot_at(retired_.load());
        if (slot.completion.operation == CompletedOperation::BindWindow)
            completions_.windows().finish(slot.window, false);
        Completion completion = slot.completion;
        completion.bytes = 0;
        completion.code = CompletionCode::Flushed;
        const bool wanted = slot.report != Slot::Report::Never;
        if (wanted) kept();
        retire(slot);
        if (wanted) completions_.add(completion, *this);
    }
    completions_.release(std::exchange(places_, 0));
    renew_direct();
}

}  // namespace viaduct::verbs
