// SPDX-License-Identifier: BSD-3-Clause
#include "backends/verbs/shared_receive_queue.hpp"

#include <algorithm>
#include <cerrno>

#include "backends/verbs/completion_queue.hpp"
#include "backends/verbs/device.hpp"
#include "backends/verbs/pieces.hpp"

namespace viaduct::verbs {

SharedReceiveQueue::SharedReceiveQueue(Device& device, std::uint32_t depth)
    : device_(device), depth_(depth), slots_(std::make_unique_for_overwrite<Slot[]>(depth)) {
    free_.reserve(depth);
    for (std::uint32_t i = depth; i-- > 0;) free_.push_back(&slots_[i]);
}

SharedReceiveQueue::~SharedReceiveQueue() = default;

Result<std::unique_ptr<SharedReceiveQueue>> SharedReceiveQueue::create(Device& device, const ProtectionDomain& domain,
                                                                       std::uint32_t depth) {
    const DeviceAttributes& limits = device.attributes();
    if (!limits.capabilities.shared_receive_queues)
        return Status(Code::Unsupported, "the device has no shared receive queues");
    if (depth == 0 || depth > limits.max_queue_depth)
        return Status(Code::InvalidParameter, "depth of the shared receive queue");
    std::unique_ptr<SharedReceiveQueue> queue(new SharedReceiveQueue(device, depth));
    ibv_srq_init_attr attributes{};
    attributes.attr.max_wr = depth;
    attributes.attr.max_sge = limits.max_sges;
    queue->hardware_.reset(ibv_create_srq(domain.get(), &attributes));
    if (queue->hardware_ == nullptr) return Status::from_errno(errno, "ibv_create_srq");
    return queue;
}

void SharedReceiveQueue::attach(CompletionQueue& queue) {
    const std::lock_guard lock(mutex_);
    completions_.push_back(&queue);
}

void SharedReceiveQueue::detach(const CompletionQueue& queue) noexcept {
    const std::lock_guard lock(mutex_);
    if (const auto found = std::ranges::find(completions_, &queue); found != completions_.end())
        completions_.erase(found);
}

void SharedReceiveQueue::free(Slot& slot) noexcept {
    SharedReceiveQueue& queue = *slot.shared;
    const std::lock_guard lock(queue.free_mutex_);
    queue.free_.push_back(&slot);
}

/// Receives whose messages came are known to be taken once somebody looks at their completions.
bool SharedReceiveQueue::make_room() noexcept {
    const auto has_room = [this] {
        const std::lock_guard lock(free_mutex_);
        return !free_.empty();
    };
    if (has_room()) return true;
    for (CompletionQueue* queue : completions_) {
        queue->progress();
        if (has_room()) return true;
    }
    return false;
}

Status SharedReceiveQueue::post_receive(std::span<const ReceiveRequest> requests, std::size_t& posted) noexcept {
    posted = 0;
    const std::lock_guard lock(mutex_);
    for (const ReceiveRequest& request : requests) {
        if (const Status status = post(request); !status.ok()) return status;
        ++posted;
    }
    return {};
}

Status SharedReceiveQueue::post(const ReceiveRequest& request) noexcept {
    if (request.sges.size() > device_.attributes().max_sges) return {Code::InvalidParameter, "too many pieces"};
    if (!make_room()) return {Code::QueueFull, "shared receive queue"};
    Slot* slot = nullptr;
    {
        const std::lock_guard lock(free_mutex_);
        slot = free_.back();
        free_.pop_back();
    }
    *slot = {.queue = nullptr,
             .shared = this,
             .context = request.context,
             .first_piece = request.sges.empty() ? Sge{} : request.sges.front(),
             .bytes = 0,
             .fault = request.fault,
             .operation = CompletedOperation::Receive,
             .signaled = true,
             .in_hardware = true};
    Pieces pieces = request.fault == CompletionCode::Success ? Pieces(request.sges, true, device_.nic().regions())
                                                             : Pieces::unusable();
    ibv_recv_wr work{.wr_id = reinterpret_cast<std::uintptr_t>(slot),
                     .next = nullptr,
                     .sg_list = pieces.data(),
                     .num_sge = pieces.count()};
    ibv_recv_wr* refused = nullptr;
    if (const int error = ibv_post_srq_recv(hardware_.get(), &work, &refused); error != 0) {
        free(*slot);
        return error == ENOMEM ? Status(Code::QueueFull, "shared receive queue")
                               : Status::from_errno(error, "ibv_post_srq_recv");
    }
    return {};
}

Status SharedReceiveQueue::arm_limit(std::uint32_t) noexcept { return {Code::Unsupported, "limit"}; }
Status SharedReceiveQueue::resize(std::uint32_t) noexcept { return {Code::Unsupported, "resize"}; }
std::uint32_t SharedReceiveQueue::outstanding() const noexcept { return 0; }

}  // namespace viaduct::verbs
