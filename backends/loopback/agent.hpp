// SPDX-License-Identifier: BSD-3-Clause
// The thread of a device that does what a NIC would do in hardware: it serves connections whose consumers do not poll,
// answers peers, detects when they die and handles the deadlines of pending connections.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "backends/loopback/doorbell.hpp"
#include "backends/support/reactor.hpp"

namespace viaduct::loopback {

/// Called with no lock of the agent held.
using AgentClient = support::ReactorClient;

class Agent final : public support::Reactor {
public:
    ~Agent() { stop(); }

    /// Starts the thread. `serve` handles the bits set on the doorbell boards and reports whether consumers poll. If
    /// they do and none sleeps, the agent calls it again after a millisecond and is not woken by every ring.
    /// `update_wakeups` finds consumers that have stopped polling. It is called periodically as long as it returns
    /// true.
    Status start(Doorbells& board, std::function<bool()> serve, std::function<bool(bool)> update_wakeups) noexcept;

    /// Between these calls a consumer may sleep, so every ring wakes the agent immediately, even if others poll.
    void sleep_begins() noexcept {
        sleepers_.fetch_add(1);
        if (busy_polling_.load()) wake();
    }
    void sleep_ends() noexcept { sleepers_.fetch_sub(1); }

private:
    void run(Doorbells& board, const std::function<bool()>& serve,
             const std::function<bool(bool)>& update_wakeups) noexcept;

    std::atomic<bool> busy_polling_{false};
    std::atomic<std::uint32_t> sleepers_{0};
};

}  // namespace viaduct::loopback
