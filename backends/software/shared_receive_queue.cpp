// SPDX-License-Identifier: BSD-3-Clause
#include "backends/software/shared_receive_queue.hpp"

#include "backends/software/device.hpp"
#include "backends/support/guarded.hpp"
#include "backends/support/post_each.hpp"

namespace viaduct::software {

SharedReceiveQueue::SharedReceiveQueue(Device& device, std::uint32_t depth, std::uint64_t context)
    : device_(device), context_(context), receives_(depth, device.attributes().max_sges) {}

Status SharedReceiveQueue::post_receive(std::span<const ReceiveRequest> requests, std::size_t& posted) noexcept {
    posted = 0;
    return support::guarded([&] {
        const Node::Guard guard(device_.node());
        return support::post_each(requests, posted, [this](const ReceiveRequest& request) {
            const Status status = receives_.post(request);
            if (status.ok()) device_.node().resume_waiting();
            return status;
        });
    });
}

bool SharedReceiveQueue::take(Receive& to) noexcept {
    if (receives_.empty()) return false;
    receives_.take(to);
    check_limit();
    return true;
}

Status SharedReceiveQueue::arm_limit(std::uint32_t limit) noexcept {
    const Node::Guard guard(device_.node());
    receives_.arm(limit);
    check_limit();
    return {};
}

void SharedReceiveQueue::check_limit() noexcept {
    if (receives_.reached_limit())
        device_.raise({.kind = AsyncEventKind::SharedReceiveQueueLimit, .shared_receive_queue_context = context_});
}

Status SharedReceiveQueue::resize(std::uint32_t depth) noexcept {
    const Node::Guard guard(device_.node());
    return receives_.resize(depth);
}

std::uint32_t SharedReceiveQueue::outstanding() const noexcept {
    const Node::Guard guard(device_.node());
    return receives_.size();
}

}  // namespace viaduct::software
