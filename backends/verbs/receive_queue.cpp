// SPDX-License-Identifier: BSD-3-Clause
#include "backends/verbs/receive_queue.hpp"

#include <cerrno>
#include <new>

#include "backends/verbs/completion_queue.hpp"
#include "backends/verbs/device.hpp"
#include "backends/verbs/pieces.hpp"

namespace viaduct::verbs {

ReceiveQueue::ReceiveQueue(Device& device, CompletionQueue& completions, const WorkQueueInit& init)
    : WorkQueue(QueueKind::Receive, completions, init), device_(device) {}

Status ReceiveQueue::buffer(const ReceiveRequest& request) noexcept try {
    buffered_.push_back({request.context, request.fault, {request.sges.begin(), request.sges.end()}});
    count();
    return {};
} catch (const std::bad_alloc&) {
    return {Code::NoResources, "out of memory"};
}

[[gnu::always_inline]] inline Status ReceiveQueue::post_to_hardware(const ReceiveRequest& request) noexcept {
    Slot& slot = *new (&next_slot()) Slot{.queue = this,
                                          .shared = nullptr,
                                          .context = request.context,
                                          .first_piece = request.sges.empty() ? Sge{} : request.sges.front(),
                                          .bytes = 0,
                                          .fault = request.fault,
                                          .operation = CompletedOperation::Receive,
                                          .notifies = false,
                                          .signaled = true,
                                          .in_hardware = true};
    Pieces pieces = request.fault == CompletionCode::Success ? Pieces(request.sges, true, device_.nic().regions())
                                                             : Pieces::unusable();
    ibv_recv_wr work{.wr_id = reinterpret_cast<std::uintptr_t>(&slot),
                     .next = nullptr,
                     .sg_list = pieces.data(),
                     .num_sge = pieces.count()};
    if (const Status status = completions().reserve(); !status.ok()) return status;
    push();
    ibv_recv_wr* refused = nullptr;
    if (const int error = ibv_post_recv(queue_pair_, &work, &refused); error != 0) {
        unpush();
        completions().release();
        return error == ENOMEM ? Status(Code::QueueFull, "the receive queue of the device is full")
                               : Status::from_errno(error, "ibv_post_recv");
    }
    return {};
}

[[gnu::always_inline]] inline Status ReceiveQueue::post(const ReceiveRequest& request) noexcept {
    if (request.sges.size() > max_sges()) return {Code::InvalidParameter, "too many pieces"};
    if (!make_room()) return {Code::QueueFull, "receive queue"};
    if (mode_ == Mode::Live) return post_to_hardware(request);
    if (mode_ == Mode::Idle) return buffer(request);
    flush_at_once(request.context, CompletedOperation::Receive);
    return {};
}

[[gnu::hot]] Status ReceiveQueue::post(std::span<const ReceiveRequest> requests, std::size_t& posted) noexcept {
    posted = 0;
    const std::lock_guard lock(mutex());
    for (const ReceiveRequest& request : requests) {
        if (const Status status = post(request); !status.ok()) return status;
        ++posted;
    }
    return {};
}

Status ReceiveQueue::post_buffered() noexcept {
    while (!buffered_.empty()) {
        const BufferedReceive& kept = buffered_.front();
        const Status status = post_to_hardware({.context = kept.context, .fault = kept.fault, .sges = kept.sges});
        if (!status.ok()) return status;
        uncount();
        buffered_.pop_front();
    }
    return {};
}

void ReceiveQueue::flush_buffered() noexcept {
    for (const BufferedReceive& kept : buffered_)
        complete_now(kept.context, CompletedOperation::Receive, CompletionCode::Flushed);
    buffered_.clear();
}

}  // namespace viaduct::verbs
