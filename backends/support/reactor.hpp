// SPDX-License-Identifier: BSD-3-Clause
// The thread of an agent, and what it handles besides the messages of its backend: descriptors that become readable,
// and deadlines.
#pragma once

#include <pthread.h>
#include <sys/epoll.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <thread>
#include <unordered_map>
#include <utility>

#include "core/base/counter.hpp"
#include "core/base/thread.hpp"
#include "core/base/unique_fd.hpp"
#include "viaduct/deadline.hpp"
#include "viaduct/detail/mutex.hpp"
#include "viaduct/status.hpp"

namespace viaduct::support {

/// Called on the agent's thread. The reactor holds a reference during each call, and no lock.
class ReactorClient : public std::enable_shared_from_this<ReactorClient> {
public:
    virtual ~ReactorClient() = default;
    virtual void on_readable(int) noexcept {}
    virtual void on_deadline() noexcept {}

private:
    friend class Reactor;
    Deadline due_ = Deadline::never();  // when on_deadline() is called; guarded by the mutex of the reactor
};

/// Thread-safe. Its lock is held for a moment only, and no other one is taken meanwhile.
class Reactor {
public:
    Reactor() = default;
    Reactor(const Reactor&) = delete;
    Reactor& operator=(const Reactor&) = delete;

    /// Call it before the other functions.
    Status open() noexcept;

    /// For descriptors that only end the sleep. Their events have the data 0.
    int epoll_fd() const noexcept { return epoll_.get(); }

    // ---- The thread ----

    /// Starts the thread, which calls `body`. Throws std::system_error.
    template <class Body>
    void start(Body body) {
        thread_ = start_thread(std::move(body));
        pthread_setname_np(thread_.native_handle(), "viaduct-agent");
    }

    /// Ends the thread. Objects of which it has the last reference are destroyed on it and may still call the reactor.
    void stop() noexcept;
    bool is_stopping() const noexcept { return stops_.load(); }
    bool is_this_thread() const noexcept { return std::this_thread::get_id() == thread_.get_id(); }

    /// Sleeps until there is something to do, and calls the function of call_for().
    void wait(int timeout_ms) noexcept;

    /// How long wait() may sleep, as for epoll_wait(2). For a moment after a call was canceled it may be shorter: often
    /// a similar one follows, for which nobody has to be woken then.
    int timeout_ms() noexcept;

    /// Calls the clients for what wait() has found, and those whose deadlines have passed.
    void dispatch() noexcept;

    // ---- Any thread ----

    /// Ends the sleep.
    void wake() noexcept;

    /// How often the thread was woken.
    std::uint64_t wakeups() const noexcept { return wakeups_.value(); }

    /// Calls the client's on_readable while the descriptor is readable or hung up. The caller must not watch, unwatch
    /// or close the same descriptor in two threads at once. Throws std::bad_alloc.
    Status watch(int fd, const std::shared_ptr<ReactorClient>& client);
    void unwatch(int fd) noexcept;

    /// Stops or continues the calls for a descriptor that is watched, which needs no resources.
    void pause(int fd, bool pauses) noexcept;

    /// Calls on_deadline once, if the client still exists by then; never, if the deadline is infinite. Replaces the
    /// call that is still to come. Throws std::bad_alloc, and then changes nothing.
    void call_at(const Deadline& deadline, ReactorClient& client);

    /// Takes the call back, if it is still to come. The client may be in its destructor.
    void cancel(ReactorClient& client) noexcept {
        const LockGuard lock(mutex_);
        remove_call(client);
    }

    /// See backend::Device::watch(). No lock of the backend is held during the calls. Busy: another descriptor is
    /// watched.
    Status call_for(int fd, void (*on_readable)() noexcept) noexcept;
    void stop_calling_for(int fd) noexcept;

private:
    static constexpr std::uint64_t call_event = ~std::uint64_t{0};

    /// The data of its events is the number in the upper half and the descriptor in the lower half.
    struct Watch {
        std::uint32_t number;
        std::weak_ptr<ReactorClient> client;
    };
    Status add(int fd, std::uint32_t events, std::uint64_t data) noexcept;
    std::shared_ptr<ReactorClient> find(int fd, std::uint32_t number) noexcept;
    std::shared_ptr<ReactorClient> take_due() noexcept;
    void remove_call(ReactorClient& client) noexcept VIADUCT_REQUIRES(mutex_);

    UniqueFd epoll_;
    UniqueFd event_;
    std::atomic<bool> stops_{false};
    std::atomic<void (*)() noexcept> call_{nullptr};
    Counter wakeups_;
    std::array<epoll_event, 64> events_;  // used by the thread
    std::size_t event_count_ = 0;
    Mutex mutex_;
    std::unordered_map<int, Watch> watches_ VIADUCT_GUARDED_BY(mutex_);
    std::uint32_t next_number_ VIADUCT_GUARDED_BY(mutex_) = 1;
    std::multimap<Deadline, std::weak_ptr<ReactorClient>> calls_ VIADUCT_GUARDED_BY(mutex_);
    Deadline wakes_ VIADUCT_GUARDED_BY(mutex_) = Deadline::never();  // when the thread wakes at the latest
    std::thread thread_;
};

}  // namespace viaduct::support
