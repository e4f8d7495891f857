// SPDX-License-Identifier: BSD-3-Clause
#include "backends/verbs/receive_queue.hpp"

#include <cerrno>
#include <mutex>
#include <new>

#include "backends/support/pieces.hpp"
#include "backends/support/post_each.hpp"
#include "backends/verbs/completion_queue.hpp"
#include "backends/verbs/device.hpp"
#include "backends/verbs/pieces.hpp"

namespace viaduct::verbs {

ReceiveQueue::ReceiveQueue(Device& device, CompletionQueue& completions, const WorkQueueInit& init, bool shared)
    : WorkQueue(QueueKind::Receive, completions, init), shared_(shared), regions_(device.nic().regions()) {
    set_direct(!shared);
    work_.sg_list = &piece_;
    work_.num_sge = 1;
}

Status ReceiveQueue::buffer(const ReceiveRequest& request) noexcept try {
    buffered_.push_back({request.context, request.fault, {request.sges.begin(), request.sges.end()}});
    count();
    return {};
} catch (const std::bad_alloc&) {
    return {Code::NoResources, "out of memory"};
}

[[gnu::always_inline]] inline Slot& ReceiveQueue::fill_slot(const ReceiveRequest& request,
                                                            std::uint32_t position) noexcept {
    Slot& slot = slot_at(position);
    slot.queue = this;
    slot.completion = {
        .context = request.context, .endpoint_context = endpoint_context(), .operation = CompletedOperation::Receive};
    slot.next = position + 1;
    slot.report = Slot::Report::Always;
    slot.fault = CompletionCode::Success;
    return slot;
}

/// Removes the last request, which the hardware has refused.
Status ReceiveQueue::refuse(int error) noexcept {
    unpush();
    return error == ENOMEM ? Status(Code::QueueFull, "the receive queue of the device is full")
                           : Status::from_errno(error, "ibv_post_recv");
}

Status ReceiveQueue::post_to_hardware(const ReceiveRequest& request) noexcept {
    if (const Status status = make_place(); !status.ok()) return status;
    Slot& slot = fill_slot(request, position());
    slot.first_piece = request.sges.empty() ? Sge{} : request.sges.front();
    const bool valid = request.fault == CompletionCode::Success;
    if (!valid) {
        slot.report = Slot::Report::Examined;
        slot.fault = request.fault;
    }
    Pieces pieces = valid ? Pieces(request.sges, true, regions_) : Pieces::unusable();
    ibv_recv_wr work{.wr_id = reinterpret_cast<std::uintptr_t>(&slot),
                     .next = nullptr,
                     .sg_list = pieces.data(),
                     .num_sge = pieces.count()};
    push();
    ibv_recv_wr* refused = nullptr;
    if (const int error = ibv_post_recv(queue_pair_, &work, &refused); error != 0) return refuse(error);
    return {};
}

Status ReceiveQueue::post(const ReceiveRequest& request) noexcept {
    if (request.sges.size() > max_sges()) return {Code::InvalidParameter, "too many pieces"};
    if (!make_room()) return {Code::QueueFull, "receive queue"};
    if (mode() == Mode::Live) return post_to_hardware(request);
    if (mode() == Mode::Idle) return buffer(request);
    flush_at_once(request.context, CompletedOperation::Receive);
    return {};
}

Status ReceiveQueue::post(std::span<const ReceiveRequest> requests, std::size_t& posted) noexcept {
    posted = 0;
    if (shared_) return {Code::InvalidState, "the endpoint uses a shared receive queue"};
    const std::lock_guard lock(mutex());
    return support::post_each(requests, posted, [this](const ReceiveRequest& request) {
        const Status status = post(request);
        if (!status.ok()) return status;
        accepted_.add();
        accepted_bytes_.add(support::total_length(request.sges));
        return status;
    });
}

/// Posts a valid request that has one piece, if nothing needs a closer look.
bool ReceiveQueue::try_post(const ReceiveRequest& request) noexcept {
    if (request.sges.size() != 1 || request.fault != CompletionCode::Success || !regions_.plain() ||
        !mutex().try_lock())
        return false;
    const Sge piece = request.sges.front();
    const std::uint32_t place = position();
    if (!is_direct(place)) {
        mutex().unlock();
        return false;
    }
    Slot& slot = fill_slot(request, place);
    slot.first_piece = piece;
    work_.wr_id = reinterpret_cast<std::uintptr_t>(&slot);
    piece_ = {.addr = reinterpret_cast<std::uintptr_t>(piece.address), .length = piece.length, .lkey = piece.key};
    push_directly(place);
    const int error = ibv_post_recv(queue_pair_, &work_, &refused_);
    if (error == 0) [[likely]] {
        accepted_.add();
        accepted_bytes_.add(piece.length);
    } else {
        (void)refuse(error);  // post() tries again, and reports it
    }
    mutex().unlock();
    return error == 0;
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
