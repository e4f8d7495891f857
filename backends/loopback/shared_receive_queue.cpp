// SPDX-License-Identifier: BSD-3-Clause
#include "backends/loopback/shared_receive_queue.hpp"

#include "backends/loopback/device.hpp"

namespace viaduct::loopback {

void SharedReceiveQueue::was_posted() noexcept {
    lock_.assume_held();  // by the base, which calls this
    if (waiting_ == 0) return;
    for (Member* member : members_)
        if (std::exchange(member->waiting, false)) device_.doorbell().ring_self(member->connection);
    waiting_ = 0;
}

void SharedReceiveQueue::join(Member& member) {
    const LockGuard lock(lock_);
    members_.push_back(&member);
}

void SharedReceiveQueue::leave(Member& member) noexcept {
    const LockGuard lock(lock_);
    std::erase(members_, &member);
    if (member.waiting) --waiting_;
}

bool SharedReceiveQueue::take(Receive& to, Member& member, std::uint32_t connection) noexcept {
    const LockGuard lock(lock_);
    if (take_oldest(to)) return true;
    member.connection = connection;
    if (!std::exchange(member.waiting, true)) ++waiting_;
    return false;
}

}  // namespace viaduct::loopback
