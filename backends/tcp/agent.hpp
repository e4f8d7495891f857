// SPDX-License-Identifier: BSD-3-Clause
// The thread of a node. It does what a network card would do in hardware: it exchanges frames while no consumer polls,
// handles control sockets, and notices when peers die and when deadlines pass.
#pragma once

#include <cstdint>
#include <memory>
#include <thread>
#include <unordered_map>
#include <utility>

#include "backends/support/deadline_map.hpp"
#include "core/base/counter.hpp"
#include "core/base/unique_fd.hpp"
#include "core/deadline.hpp"
#include "core/status.hpp"

namespace viaduct::tcp {

class Node;

/// Handles a descriptor and deadlines. Called with the lock of the node held. The agent holds a reference during each
/// call.
class AgentClient : public std::enable_shared_from_this<AgentClient> {
public:
    virtual ~AgentClient() = default;
    virtual void on_ready() noexcept = 0;
    virtual void on_deadline() noexcept {}
};

/// The lock of the node must be held for all functions except start() and stop().
class Agent {
public:
    enum class Until : std::uint8_t { Readable, Writable };

    static Result<std::unique_ptr<Agent>> start(Node& node);
    ~Agent() { stop(); }

    /// Ends the thread.
    void stop() noexcept;

    /// Calls the client's on_ready while the descriptor is readable or hung up, or while it is writable. Throws
    /// std::bad_alloc.
    Status watch(int fd, const std::shared_ptr<AgentClient>& client, Until until = Until::Readable);
    void unwatch(int fd) noexcept;

    /// Calls on_deadline once, if the client still exists by then. Throws std::bad_alloc.
    void call_at(const Deadline& deadline, const std::shared_ptr<AgentClient>& client);

    /// Takes such a call back, if it is still to come.
    void cancel_call(const Deadline& deadline, const std::weak_ptr<AgentClient>& client) noexcept;

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

    struct Watch {
        int fd;
        std::weak_ptr<AgentClient> client;
    };

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
    std::uint64_t next_id_ = 1;
    std::unordered_map<std::uint64_t, Watch> watches_;
    std::unordered_map<int, std::uint64_t> ids_;
    support::DeadlineMap<std::weak_ptr<AgentClient>> deadlines_;
    std::thread thread_;
};

}  // namespace viaduct::tcp
