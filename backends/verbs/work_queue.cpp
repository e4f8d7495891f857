// SPDX-License-Identifier: BSD-3-Clause
#include "backends/verbs/work_queue.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <bit>

#include "backends/verbs/agent.hpp"
#include "backends/verbs/completion_queue.hpp"
#include "backends/verbs/regions.hpp"
#include "backends/verbs/windows.hpp"

namespace viaduct::verbs {
namespace {

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

bool is_remote(CompletionCode code) noexcept {
    return code == CompletionCode::RemoteProtection || code == CompletionCode::RemoteOperation ||
           code == CompletionCode::RemoteLength;
}

/// Operations whose initiator waits for data and therefore learns of failures.
bool is_answered(CompletedOperation operation) noexcept {
    return operation == CompletedOperation::RdmaRead || operation == CompletedOperation::Flush ||
           operation == CompletedOperation::FetchAdd || operation == CompletedOperation::CompareSwap;
}

}  // namespace

WorkQueue::WorkQueue(QueueKind kind, CompletionQueue& completions, const WorkQueueInit& init)
    : kind_(kind),
      completions_(completions),
      depth_(init.depth),
      max_sges_(init.max_sges),
      mask_(std::bit_ceil(std::max(init.depth, 1u)) - 1),
      endpoint_context_(init.endpoint_context),
      ring_(std::make_unique_for_overwrite<Slot[]>(mask_ + std::size_t{1})) {}

WorkQueue::~WorkQueue() { completions_.forget(*this); }

void WorkQueue::activate(ibv_qp* queue_pair, const Translation& translation, Link* link) noexcept {
    const std::lock_guard lock(completions_.mutex());
    queue_pair_ = queue_pair;
    translation_ = translation;
    link_ = link;
    mode_ = Mode::Live;
}

/// Makes room by completing unsignaled requests, even if the consumer does not poll.
bool WorkQueue::collect() noexcept {
    completions_.progress();
    return outstanding() < depth_;
}

bool WorkQueue::is_retired(std::uint32_t position) noexcept {
    completions_.progress();
    const std::lock_guard lock(completions_.mutex());
    return static_cast<std::int32_t>(retired_ - position) >= 0;
}

bool WorkQueue::has_slot() noexcept {
    const std::lock_guard lock(completions_.mutex());
    return posted_ - retired_ <= mask_;
}

void WorkQueue::retire_first() noexcept {
    if (ring_[retired_ & mask_].in_hardware) completions_.release();
    ++retired_;
}

bool WorkQueue::complete(const Slot& slot, const ibv_wc& result, Completion& completion) noexcept {
    // The requests before it were unsignaled and succeeded, because failures are always reported.
    while (&ring_[retired_ & mask_] != &slot) {
        retire_first();
        taken();
    }
    const CompletionCode code = code_of(slot, result);
    describe(slot, result, code, completion);
    if (slot.operation == CompletedOperation::BindWindow)
        completions_.windows().finish(slot.window, code == CompletionCode::Success);
    const bool wanted = !slot.is_marker && (slot.signaled || completion.code != CompletionCode::Success);
    retire_first();
    report(result, code);
    if (!wanted) taken();
    return wanted;
}

void WorkQueue::complete_shared(const Slot& slot, const ibv_wc& result, Completion& completion) noexcept {
    const CompletionCode code = code_of(slot, result);
    report(result, code);
    describe(slot, result, code, completion);
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
        case IBV_WC_LOC_QP_OP_ERR: return slot.bytes != 0 ? code : CompletionCode::LocalFormat;
        // For a send, the peer refused the length. For RDMA, its queue pair does not allow the operation.
        case IBV_WC_REM_INV_REQ_ERR:
            return slot.operation == CompletedOperation::Send ? code : CompletionCode::RemoteProtection;
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

void WorkQueue::describe(const Slot& slot, const ibv_wc& result, CompletionCode code,
                         Completion& completion) const noexcept {
    if (kind_ == QueueKind::Send && translation_.silent && is_remote(code) && !is_answered(slot.operation))
        code = CompletionCode::Success;
    completion = {.context = slot.context,
                  .endpoint_context = endpoint_context_,
                  .bytes = code == CompletionCode::Success ? slot.bytes : 0,
                  .immediate = 0,
                  .operation = slot.operation,
                  .code = code,
                  .with_immediate = slot.notifies,
                  .invalidated = false};
    if (kind_ == QueueKind::Send) return;
    if (code != CompletionCode::Success) {
        if (result.status == IBV_WC_REM_ACCESS_ERR) completion.operation = CompletedOperation::ReceiveRdmaWrite;
        return;
    }
    completion.bytes = result.byte_len;
    if (result.opcode == IBV_WC_RECV_RDMA_WITH_IMM) completion.operation = CompletedOperation::ReceiveRdmaWrite;
    completion.with_immediate = (result.wc_flags & IBV_WC_WITH_IMM) != 0;
    if (completion.with_immediate) completion.immediate = ntohl(result.imm_data);
    completion.invalidated = (result.wc_flags & translation_.invalidated) != 0;
    if (completion.invalidated) completion.immediate = result.invalidated_rkey;
}

/// Errors that stop the queue pair end the connection, and so do errors on a reliable connection. The agent handles
/// that.
void WorkQueue::report(const ibv_wc& result, CompletionCode code) noexcept {
    const bool stopped = result.status != IBV_WC_SUCCESS;
    const bool breaks = stopped || (translation_.reliable && code != CompletionCode::Success);
    if (breaks && link_ != nullptr) link_->report_error();
}

void WorkQueue::complete_now(std::uint64_t context, CompletedOperation operation, CompletionCode code) noexcept {
    const std::lock_guard lock(completions_.mutex());
    completions_.add({.context = context,
                      .endpoint_context = endpoint_context_,
                      .bytes = 0,
                      .immediate = 0,
                      .operation = operation,
                      .code = code,
                      .with_immediate = false,
                      .invalidated = false},
                     *this);
}

void WorkQueue::flush() noexcept {
    const std::lock_guard lock(completions_.mutex());
    queue_pair_ = nullptr;
    link_ = nullptr;
    while (retired_ != posted_) {
        const Slot& slot = ring_[retired_ & mask_];
        if (slot.operation == CompletedOperation::BindWindow) completions_.windows().finish(slot.window, false);
        retire_first();  // the added completion occupies its place
        if (slot.is_marker) {
            taken();
            continue;
        }
        completions_.add({.context = slot.context,
                          .endpoint_context = endpoint_context_,
                          .bytes = 0,
                          .immediate = 0,
                          .operation = slot.operation,
                          .code = CompletionCode::Flushed,
                          .with_immediate = slot.notifies,
                          .invalidated = false},
                         *this);
    }
}

}  // namespace viaduct::verbs
