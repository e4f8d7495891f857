// SPDX-License-Identifier: BSD-3-Clause
// The thread of a node. It does what a network card would do in hardware: it exchanges frames while no consumer polls,
// handles control sockets, and notices when peers die and when deadlines pass.
#pragma once

#include <cstdint>
#include <memory>
#include <thread>
#include <utility>

#include "backends/support/reactor.hpp"
#include "core/base/counter.hpp"
#include "core/base/unique_fd.hpp"
#include "core/deadline.hpp"
#include "core/status.hpp"

namespace viaduct::software {

class Node;

/// Called with the lock of the node held.
class AgentClient : public support::ReactorClient, public std::enable_shared_from_this<AgentClient> {};

/// The lock of the node must be held for all functions except start() and stop().
class Agent {
public:
    static Result<std::unique_ptr<Agent>> start(Node& node);
    ~Agent() { stop(); }

    /// Ends the thread.
    void stop() noexcept;

    // See support::Reactor.
    Status watch(int fd, const std::shared_ptr<AgentClient>& client) {
        return reactor_.watch(epoll_.get(), fd, client);
    }
    void unwatch(int fd) noexcept { reactor_.unwatch(epoll_.get(), fd); }
    void call_at(const Deadline& deadline, const std::shared_ptr<AgentClient>& client) {
        if (reactor_.call_at(deadline, client)) wake();
    }
    void cancel_call(const Deadline& deadline, const std::weak_ptr<AgentClient>& client) noexcept {
        reactor_.cancel_call(deadline, client);
    }

    /// Between these calls a consumer may sleep, so the agent exchanges frames even if others poll.
    void sleep_begins() noexcept;
    void sleep_ends() noexcept { --sleepers_; }

    /// Calls the function on the thread, without locks, while the descriptor is readable. Busy: another one is watched.
    Status call_for(int fd, void (*on_readable)() noexcept) noexcept;
    void stop_calling_for(int fd) noexcept;

    /// How often the thread was woken. Needs no lock.
    std::uint64_t wakeups() const noexcept { return wakeups_.value(); }

    /// Whether consumers poll so often that the agent leaves the links to them.
    bool stands_back() const noexcept { return stands_back_; }

    /// Makes the thread look for what a connection waits for, if it would sleep for longer than a moment.
    void shorten_sleep() noexcept {
        if (std::exchange(sleeps_long_, false)) wake();
    }

    /// Makes the thread look for work. Needed if something that it waits for has changed.
    void wake() noexcept;

private:
    explicit Agent(Node& node) noexcept : node_(node) {}
    Status prepare();
    void run() noexcept;
    int work() noexcept;
    void watch_links(bool wanted) noexcept;

    Node& node_;
    UniqueFd epoll_;
    UniqueFd event_;  // wakes the thread
    bool stop_ = false;
    bool watches_links_ = false;
    bool stands_back_ = false;
    bool sleeps_long_ = false;
    void (*on_readable_)() noexcept = nullptr;  // of call_for(); null: none
    Counter wakeups_;
    std::uint32_t polls_seen_ = 0;
    std::uint32_t sleepers_ = 0;
    support::Reactor reactor_;
    std::thread thread_;
};

}  // namespace viaduct::software
