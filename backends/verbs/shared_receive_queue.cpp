// SPDX-License-Identifier: BSD-3-Clause
#include "backends/verbs/shared_receive_queue.hpp"

#include <cerrno>
#include <new>
#include <utility>

#include "backends/support/guarded.hpp"
#include "backends/support/post_each.hpp"
#include "backends/verbs/completion_queue.hpp"
#include "backends/verbs/device.hpp"
#include "backends/verbs/pieces.hpp"

namespace viaduct::verbs {

SharedReceiveQueue::~SharedReceiveQueue() {
    const LockGuard lock(device_.nic().control());
    device_.nic().remove(*this);
}

Result<std::unique_ptr<SharedReceiveQueue>> SharedReceiveQueue::create(Device& device, const ProtectionDomain& domain,
                                                                       std::uint32_t depth, std::uint64_t context) {
    std::unique_ptr<SharedReceiveQueue> queue(new SharedReceiveQueue(device, depth, context));
    ibv_srq_init_attr attributes{.srq_context = queue.get(),
                                 .attr = {.max_wr = depth, .max_sge = device.attributes().max_sges}};
    queue->hardware_.reset(ibv_create_srq(domain.get(), &attributes));
    if (queue->hardware_ == nullptr) return Status::from_errno(errno, "ibv_create_srq");
    queue->free_mutex_.assume_held();  // no other thread knows the queue
    queue->free_.reserve(depth);
    const LockGuard lock(device.nic().control());
    device.nic().add(*queue);
    return queue;
}

Status SharedReceiveQueue::attach(CompletionQueue& queue, std::uint32_t number, WorkQueue& receives) {
    const LockGuard lock(mutex_);
    if (const Status status = queue.attach(number, receives, *this, depth_); !status.ok()) return status;
    try {
        ++completions_[&queue];
    } catch (const std::bad_alloc&) {
        queue.detach(number, *this);
        throw;
    }
    return {};
}

void SharedReceiveQueue::detach(CompletionQueue& queue, std::uint32_t number) noexcept {
    const LockGuard lock(mutex_);
    queue.detach(number, *this);
    const auto found = completions_.find(&queue);
    if (found != completions_.end() && --found->second == 0) completions_.erase(found);
}

void SharedReceiveQueue::free(Slot& slot) noexcept {
    auto& shared = static_cast<SharedSlot&>(slot);
    SharedReceiveQueue& queue = *shared.owner;
    const LockGuard lock(queue.free_mutex_);
    queue.free_.push_back(&shared);
}

/// Receives of arrived messages are known to be used only when their completions are polled.
void SharedReceiveQueue::poll_completions() const noexcept {
    for (const auto& [queue, endpoints] : completions_) queue->progress();
}

SharedReceiveQueue::SharedSlot& SharedReceiveQueue::take_slot() {
    const LockGuard lock(free_mutex_);
    if (free_.empty()) return slots_.emplace_back();
    SharedSlot& slot = *free_.back();
    free_.pop_back();
    return slot;
}

Status SharedReceiveQueue::post_receive(std::span<const ReceiveRequest> requests, std::size_t& posted) noexcept try {
    const LockGuard lock(mutex_);
    return support::post_each(requests, posted,
                              [this](const ReceiveRequest& request) VIADUCT_REQUIRES(mutex_) { return post(request); });
} catch (const std::bad_alloc&) {
    return {Code::NoResources, "out of memory"};
}

Status SharedReceiveQueue::post(const ReceiveRequest& request) {
    if (request.sges.size() > device_.attributes().max_sges) return {Code::InvalidParameter, "too many pieces"};
    if (!make_room()) return {Code::QueueFull, "the shared receive queue is full"};
    SharedSlot& slot = take_slot();
    slot.owner = this;
    static_cast<Slot&>(slot) = {.queue = nullptr,
                                .completion = {.context = request.context, .operation = CompletedOperation::Receive},
                                .first_piece = request.sges.empty() ? Sge{} : request.sges.front(),
                                .report = Slot::Report::Examined,
                                .fault = request.fault};
    Pieces pieces = request.fault == CompletionCode::Success ? Pieces(request.sges, true, device_.nic().regions())
                                                             : Pieces::unusable();
    ibv_recv_wr work{.wr_id = reinterpret_cast<std::uintptr_t>(static_cast<Slot*>(&slot)),
                     .next = nullptr,
                     .sg_list = pieces.data(),
                     .num_sge = pieces.count()};
    ibv_recv_wr* refused = nullptr;
    if (const int error = ibv_post_srq_recv(hardware_.get(), &work, &refused); error != 0) {
        free(slot);
        return error == ENOMEM ? Status(Code::QueueFull, "the shared receive queue is full")
                               : Status::from_errno(error, "ibv_post_srq_recv");
    }
    return {};
}

Status SharedReceiveQueue::arm_limit(std::uint32_t limit) noexcept {
    const LockGuard lock(mutex_);
    if (const Status status = change({.srq_limit = limit}, IBV_SRQ_LIMIT); !status.ok()) return status;
    limit_ = limit;
    // Some devices check the limit only when the next receive is taken.
    poll_completions();
    if (known_outstanding() < limit) report_limit();
    return {};
}

/// A device forgets the limit that it reports. If it still has one, this is the late event of an earlier limit.
void SharedReceiveQueue::on_limit() noexcept {
    const LockGuard lock(mutex_);
    ibv_srq_attr attributes{};
    const bool is_late = ibv_query_srq(hardware_.get(), &attributes) == 0 && attributes.srq_limit != 0;
    if (!is_late) report_limit();
}

void SharedReceiveQueue::report_limit() noexcept {
    if (std::exchange(limit_, 0) != 0)
        device_.report({.kind = AsyncEventKind::SharedReceiveQueueLimit, .shared_receive_queue_context = context_});
}

Status SharedReceiveQueue::resize(std::uint32_t depth) noexcept {
    return support::guarded([&]() -> Status {
        const LockGuard lock(mutex_);
        if (depth < limit_) return {Code::InvalidParameter, "the new depth is less than the armed limit"};
        poll_completions();
        if (known_outstanding() > depth) return {Code::Busy, "receives wait"};
        if (depth > depth_) {
            const LockGuard free_lock(free_mutex_);
            free_.reserve(depth);
            if (const Status status = change({.max_wr = depth}, IBV_SRQ_MAX_WR); !status.ok()) return status;
        }
        for (const auto& [queue, endpoints] : completions_)
            if (const Status status = queue->make_places(*this, depth); !status.ok()) return status;
        depth_ = depth;
        return {};
    });
}

}  // namespace viaduct::verbs
