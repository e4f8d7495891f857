// SPDX-License-Identifier: BSD-3-Clause
// What the thread of an agent handles besides the messages of its backend: descriptors that become readable, and
// deadlines.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "backends/support/deadline_map.hpp"
#include "core/deadline.hpp"
#include "core/status.hpp"

namespace viaduct::support {

/// Called on the agent's thread. The reactor holds a reference during each call, and no lock.
class ReactorClient {
public:
    virtual ~ReactorClient() = default;
    virtual void on_readable(int) noexcept {}
    virtual void on_deadline() noexcept {}
};

/// Thread-safe. Its lock is held for a moment only, and no other one is taken meanwhile.
class Reactor {
public:
    /// An event that belongs to no descriptor of the reactor has this number, or one from first_free on.
    static constexpr std::uint64_t no_descriptor = 0;
    static constexpr std::uint64_t first_free = std::uint64_t{1} << 63;

    /// Calls the client's on_readable while the descriptor is readable or hung up, when the epoll descriptor has
    /// reported it to dispatch(). The caller must not watch, unwatch or close the same descriptor in two threads at
    /// once. Throws std::bad_alloc.
    Status watch(int epoll, int fd, const std::shared_ptr<ReactorClient>& client);
    void unwatch(int epoll, int fd) noexcept;

    /// Handles an event of the epoll descriptor.
    void dispatch(std::uint64_t number) noexcept;

    /// Calls on_deadline once, if the client still exists by then. Returns whether a thread that sleeps for
    /// timeout_ms() has to be woken. Throws std::bad_alloc.
    bool call_at(const Deadline& deadline, const std::shared_ptr<ReactorClient>& client);

    /// Takes such a call back, if it is still to come.
    void cancel_call(const Deadline& deadline, const std::weak_ptr<ReactorClient>& client) noexcept;

    /// Makes the calls that are due.
    void run_deadlines() noexcept;

    /// How long the thread may sleep, as for epoll_wait(2).
    int timeout_ms() noexcept;

private:
    struct Watch {
        int fd;
        std::weak_ptr<ReactorClient> client;
    };
    void forget(int fd) noexcept;

    std::mutex mutex_;  // guards the members below
    std::unordered_map<std::uint64_t, Watch> watches_;
    std::unordered_map<int, std::uint64_t> numbers_;  // of the descriptors
    std::uint64_t next_number_ = no_descriptor + 1;
    DeadlineMap<std::weak_ptr<ReactorClient>> deadlines_;
};

}  // namespace viaduct::support
