// SPDX-License-Identifier: BSD-3-Clause
// Receives for the messages of several connections.
#pragma once

#include <vector>

#include "backends/loopback/device.hpp"
#include "backends/support/shared_receive_queue_base.hpp"
#include "core/base/spin_lock.hpp"
#include "viaduct/detail/mutex.hpp"

namespace viaduct::loopback {

using support::Receive;

/// Lock order: the lock of a completion queue, then this lock.
class SharedReceiveQueue final : public support::SharedReceiveQueueBase<SharedReceiveQueue> {
public:
    SharedReceiveQueue(Device& device, const support::SharedReceiveQueueInit& init)
        : SharedReceiveQueueBase(init), device_(device) {}

    /// A receive queue that uses this shared queue. Guarded by the lock of the shared queue.
    struct Member {
        std::uint32_t connection = 0;  ///< its number on the doorbell board
        bool waiting = false;          ///< its connection has a message but no receive
    };
    /// Throws std::bad_alloc.
    void join(Member& member) {
        const LockGuard lock(lock_);
        members_.push_back(&member);
    }
    void leave(Member& member) noexcept {
        const LockGuard lock(lock_);
        std::erase(members_, &member);
        if (member.waiting) --waiting_;
    }

    /// Swaps the oldest receive with `to`. If there is none, returns false, and the next post rings the connection.
    bool take(Receive& to, Member& member, std::uint32_t connection) noexcept {
        const LockGuard lock(lock_);
        if (take_oldest(to)) return true;
        member.connection = connection;
        if (!std::exchange(member.waiting, true)) ++waiting_;
        return false;
    }

private:
    friend class support::SharedReceiveQueueBase<SharedReceiveQueue>;
    using Guard = LockGuard<SpinLock>;
    SpinLock& mutex() const noexcept VIADUCT_RETURNS_LOCK(lock_) { return lock_; }
    void was_posted() noexcept {
        lock_.assume_held();  // by the base, which calls this
        if (waiting_ == 0) return;
        for (Member* member : members_)
            if (std::exchange(member->waiting, false)) device_.doorbell().ring_self(member->connection);
        waiting_ = 0;
    }

    Device& device_;
    mutable SpinLock lock_;  // guards the members of the base, too
    std::vector<Member*> members_ VIADUCT_GUARDED_BY(lock_);
    std::size_t waiting_ VIADUCT_GUARDED_BY(lock_) = 0;  // number of waiting members
};

}  // namespace viaduct::loopback
