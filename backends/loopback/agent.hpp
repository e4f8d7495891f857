// SPDX-License-Identifier: BSD-3-Clause
// The thread of a device that does what a NIC would do in hardware: it serves connections whose consumers do not poll,
// answers peers, detects when they die and handles the deadlines of pending connections.
#pragma once

#include <atomic>
#include <cstdint>

#include "backends/support/reactor.hpp"

namespace viaduct::loopback {

class Device;

/// Called with no lock of the agent held.
using AgentClient = support::ReactorClient;

class Agent final : public support::Reactor {
public:
    ~Agent() { stop(); }

    /// Starts the thread, which calls Device::serve_connections(). If consumers poll and none sleeps, it does so again
    /// after a millisecond and is not woken by every ring. It calls Device::check_watched() periodically as long as
    /// that returns true.
    Status start(Device& device) noexcept;

    /// Between these calls a consumer may sleep, so every ring wakes the agent immediately, even if others poll.
    void sleep_begins() noexcept {
        sleepers_.fetch_add(1);
        if (busy_polling_.load()) wake();
    }
    void sleep_ends() noexcept { sleepers_.fetch_sub(1); }

private:
    void run(Device& device) noexcept;

    std::atomic<bool> busy_polling_{false};
    std::atomic<std::uint32_t> sleepers_{0};
};

}  // namespace viaduct::loopback
