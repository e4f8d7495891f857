// SPDX-License-Identifier: BSD-3-Clause
#include "backends/ofi/shared_receive_queue.hpp"

#include "backends/ofi/device.hpp"

namespace viaduct::ofi {

Status SharedReceiveQueue::post_receive(std::span<const ReceiveRequest> requests, std::size_t& posted) noexcept try {
    posted = 0;
    const Node::Guard guard(device_.node());
    for (const ReceiveRequest& request : requests) {
        if (receives_.size() >= depth_) return {Code::QueueFull, "the shared receive queue is full"};
        if (request.sges.size() > device_.attributes().max_sges) return {Code::InvalidParameter, "too many pieces"};
        if (!receives_.reserve(receives_.size() + 1)) return {Code::NoResources, "out of memory"};
        receives_.vacant().assign(request);
        receives_.commit();
        ++posted;
        device_.node().resume_waiting();
    }
    return {};
} catch (const std::bad_alloc&) {
    return {Code::NoResources, "out of memory"};
}

bool SharedReceiveQueue::take(Receive& to) noexcept {
    if (receives_.empty()) return false;
    std::swap(to, receives_.front());
    receives_.pop();
    check_limit();
    return true;
}

Status SharedReceiveQueue::arm_limit(std::uint32_t limit) noexcept {
    const Node::Guard guard(device_.node());
    limit_ = limit;
    check_limit();
    return {};
}

void SharedReceiveQueue::check_limit() noexcept {
    if (receives_.size() >= limit_) return;
    limit_ = 0;
    device_.raise({.kind = AsyncEventKind::SharedReceiveQueueLimit, .shared_receive_queue_context = context_});
}

Status SharedReceiveQueue::resize(std::uint32_t depth) noexcept {
    const Node::Guard guard(device_.node());
    if (depth < limit_) return {Code::InvalidParameter, "the new depth is less than the armed limit"};
    if (receives_.size() > depth) return {Code::Busy, "the new depth is less than the number of posted receives"};
    depth_ = depth;
    return {};
}

std::uint32_t SharedReceiveQueue::outstanding() const noexcept {
    const Node::Guard guard(device_.node());
    return static_cast<std::uint32_t>(receives_.size());
}

}  // namespace viaduct::ofi
