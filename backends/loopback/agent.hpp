// SPDX-License-Identifier: BSD-3-Clause
// The thread of a device that does what a NIC would do in hardware: it serves connections whose consumers do not poll,
// answers peers, detects when they die and handles the deadlines of pending connections.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>

#include "backends/loopback/doorbell.hpp"
#include "backends/support/reactor.hpp"
#include "core/base/counter.hpp"
#include "core/deadline.hpp"

namespace viaduct::loopback {

/// Called with no lock of the agent held.
using AgentClient = support::ReactorClient;

class Agent {
public:
    /// `serve` handles the bits set on the doorbell boards and reports whether consumers poll. If they do and none
    /// sleeps, the agent calls it again after a millisecond and is not woken by every ring. `update_wakeups` finds
    /// consumers that have stopped polling. It is called periodically as long as it returns true.
    static Result<std::unique_ptr<Agent>> start(Doorbells& board, std::function<bool()> serve,
                                                std::function<bool(bool)> update_wakeups) noexcept;
    ~Agent() { stop(); }

    /// Ends the thread. Objects of which the agent has the last reference are destroyed on the thread and may still
    /// call the agent.
    void stop() noexcept;

    /// How often the thread was woken.
    std::uint64_t wakeups() const noexcept { return wakeups_.value(); }

    bool is_this_thread() const noexcept { return std::this_thread::get_id() == thread_.get_id(); }

    // See support::Reactor.
    Status watch(int fd, const std::shared_ptr<AgentClient>& client) {
        return reactor_.watch(board_.epoll_fd(), fd, client);
    }
    void unwatch(int fd) noexcept { reactor_.unwatch(board_.epoll_fd(), fd); }
    void call_at(const Deadline& deadline, const std::shared_ptr<AgentClient>& client) {
        if (reactor_.call_at(deadline, client)) board_.wake_agent();
    }
    void cancel_call(const Deadline& deadline, const std::weak_ptr<AgentClient>& client) noexcept {
        reactor_.cancel_call(deadline, client);
    }

    /// Between these calls a consumer may sleep, so every ring wakes the agent immediately, even if others poll.
    void sleep_begins() noexcept {
        sleepers_.fetch_add(1);
        if (busy_polling_.load()) board_.wake_agent();
    }
    void sleep_ends() noexcept { sleepers_.fetch_sub(1); }

private:
    Agent(Doorbells& board, std::function<bool()> serve, std::function<bool(bool)> update_wakeups) noexcept
        : board_(board), serve_(std::move(serve)), update_wakeups_(std::move(update_wakeups)) {}
    void run() noexcept;

    Doorbells& board_;
    std::function<bool()> serve_;
    std::function<bool(bool)> update_wakeups_;
    std::atomic<bool> stop_{false};
    Counter wakeups_;
    std::atomic<bool> busy_polling_{false};
    std::atomic<std::uint32_t> sleepers_{0};
    support::Reactor reactor_;
    std::thread thread_;
};

}  // namespace viaduct::loopback
