// SPDX-License-Identifier: BSD-3-Clause
// The thread of a node. It does what a network card would do in hardware: it exchanges frames while no consumer polls,
// and notices when peers die and when deadlines pass.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "backends/support/reactor.hpp"

namespace viaduct::software {

class Node;

/// Called with the lock of the node held.
using AgentClient = support::ReactorClient;

/// The lock of the node must be held for the functions of this class, except start() and those of Reactor.
class Agent final : public support::Reactor {
public:
    static Result<std::unique_ptr<Agent>> start(Node& node);
    ~Agent() { stop(); }

    /// Between these calls a consumer may sleep, so the agent exchanges frames even if others poll.
    void sleep_begins() noexcept {
        ++sleepers_;
        if (stands_back_) wake();
    }
    void sleep_ends() noexcept { --sleepers_; }

    /// Somebody who has polled is about to sleep. Unless others poll, too, the agent exchanges frames from now on.
    void take_over() noexcept;

    /// Whether consumers poll so often that the agent leaves the links to them.
    bool stands_back() const noexcept { return stands_back_; }

    /// Makes the thread look for what a connection waits for, if it would sleep for longer than a moment.
    void shorten_sleep() noexcept {
        if (std::exchange(sleeps_long_, false)) wake();
    }

private:
    explicit Agent(Node& node) noexcept;
    void run() noexcept;
    int work() noexcept;
    void count_polls() noexcept;
    void watch_links(bool wanted) noexcept;

    /// Whether the descriptor of the links wakes the agent.
    enum class Watch : std::uint8_t { On, Paused, Off };

    Node& node_;
    Watch watch_ = Watch::Off;
    bool stands_back_ = false;
    bool sleeps_long_ = false;
    std::uint32_t polls_seen_ = 0;
    Deadline counts_until_;
    std::uint32_t sleepers_ = 0;
};

}  // namespace viaduct::software
