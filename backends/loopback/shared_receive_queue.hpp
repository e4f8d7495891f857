// SPDX-License-Identifier: BSD-3-Clause
// Receives for the messages of several connections.
#pragma once

#include <vector>

#include "backends/support/shared_receives.hpp"
#include "core/backend.hpp"
#include "core/base/spin_lock.hpp"

namespace viaduct::loopback {

class Device;

using support::Receive;

/// Lock order: the lock of a completion queue, then this lock.
class SharedReceiveQueue final : public backend::SharedReceiveQueue {
public:
    SharedReceiveQueue(Device& device, std::uint32_t depth, std::uint64_t context);

    Status post_receive(std::span<const ReceiveRequest> requests, std::size_t& posted) noexcept override;
    Status arm_limit(std::uint32_t limit) noexcept override;
    Status resize(std::uint32_t depth) noexcept override;
    std::uint32_t outstanding() const noexcept override;

    /// A receive queue that uses this shared queue. Guarded by the lock of the shared queue.
    struct Member {
        std::uint32_t connection = 0;  ///< its number on the doorbell board
        bool waiting = false;          ///< its connection has a message but no receive
    };
    void join(Member& member);  ///< throws std::bad_alloc
    void leave(Member& member) noexcept;

    /// Swaps the oldest receive with `to`. If there is none, returns false, and the next post rings the connection.
    bool take(Receive& to, Member& member, std::uint32_t connection) noexcept;

private:
    Status post(const ReceiveRequest& request);
    void check_limit() noexcept;

    Device& device_;
    const std::uint64_t context_;
    mutable SpinLock lock_;  // guards the members below
    support::SharedReceives receives_;
    std::vector<Member*> members_;
    std::size_t waiting_ = 0;  // number of waiting members
};

}  // namespace viaduct::loopback
