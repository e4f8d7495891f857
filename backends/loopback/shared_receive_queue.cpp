// SPDX-License-Identifier: BSD-3-Clause
#include "backends/loopback/shared_receive_queue.hpp"

#include <mutex>

#include "backends/loopback/device.hpp"
#include "backends/support/post_each.hpp"

namespace viaduct::loopback {

SharedReceiveQueue::SharedReceiveQueue(Device& device, std::uint32_t depth, std::uint64_t context)
    : device_(device), context_(context), receives_(depth, device.attributes().max_sges) {}

Status SharedReceiveQueue::post_receive(std::span<const ReceiveRequest> requests, std::size_t& posted) noexcept try {
    const std::lock_guard lock(lock_);
    return support::post_each(requests, posted, [this](const ReceiveRequest& request) { return post(request); });
} catch (const std::bad_alloc&) {
    return {Code::NoResources, "out of memory"};
}

Status SharedReceiveQueue::post(const ReceiveRequest& request) {
    if (const Status status = receives_.post(request); !status.ok()) return status;
    if (waiting_ == 0) return {};
    for (Member* member : members_)
        if (std::exchange(member->waiting, false)) device_.doorbell().ring_self(member->connection);
    waiting_ = 0;
    return {};
}

void SharedReceiveQueue::join(Member& member) {
    const std::lock_guard lock(lock_);
    members_.push_back(&member);
}

void SharedReceiveQueue::leave(Member& member) noexcept {
    const std::lock_guard lock(lock_);
    std::erase(members_, &member);
    if (member.waiting) --waiting_;
}

bool SharedReceiveQueue::take(Receive& to, Member& member, std::uint32_t connection) noexcept {
    const std::lock_guard lock(lock_);
    if (receives_.empty()) {
        member.connection = connection;
        if (!std::exchange(member.waiting, true)) ++waiting_;
        return false;
    }
    receives_.take(to);
    check_limit();
    return true;
}

Status SharedReceiveQueue::arm_limit(std::uint32_t limit) noexcept {
    const std::lock_guard lock(lock_);
    receives_.arm(limit);
    check_limit();
    return {};
}

void SharedReceiveQueue::check_limit() noexcept {
    if (receives_.reached_limit())
        device_.raise({.kind = AsyncEventKind::SharedReceiveQueueLimit, .shared_receive_queue_context = context_});
}

Status SharedReceiveQueue::resize(std::uint32_t depth) noexcept {
    const std::lock_guard lock(lock_);
    return receives_.resize(depth);
}

std::uint32_t SharedReceiveQueue::outstanding() const noexcept {
    const std::lock_guard lock(lock_);
    return receives_.size();
}

}  // namespace viaduct::loopback
