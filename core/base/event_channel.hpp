// SPDX-License-Identifier: BSD-3-Clause
// A queue of events with a file descriptor for poll(2) and epoll(7).
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "core/base/unique_fd.hpp"
#include "viaduct/deadline.hpp"
#include "viaduct/detail/export.hpp"
#include "viaduct/detail/mutex.hpp"
#include "viaduct/status.hpp"

namespace viaduct {

/// An eventfd that is readable while it is set. It is created on first use, because most are never used, and blocks
/// unless the program sets O_NONBLOCK. Not thread-safe.
class VIADUCT_EXPORT ReadableFlag {
public:
    ReadableFlag() noexcept = default;
    ReadableFlag(const ReadableFlag&) = delete;
    ReadableFlag& operator=(const ReadableFlag&) = delete;

    /// -1: the descriptor could not be created; a later call tries again.
    int fd() noexcept;
    void set(bool wanted) noexcept;

private:
    UniqueFd fd_;
    bool set_ = false;
};

/// Waits until the descriptor is readable; see core/base/waiting.hpp. WouldBlock: it is not readable and O_NONBLOCK is
/// set (sys_errno() is EAGAIN), or a signal ended the wait (EINTR). InvalidState: the object was closed.
VIADUCT_EXPORT Status await_readable(int fd);

/// Whether O_NONBLOCK is not set.
VIADUCT_EXPORT bool blocks(int fd) noexcept;

/// The same with a deadline; ignores O_NONBLOCK. False: the wait ended for another reason.
VIADUCT_EXPORT bool await_readable(int fd, const Deadline& deadline);

/// Does the work of a device for a thread that polls for an event. A device that has a thread for this work leaves it
/// to those who poll; others have nothing to do.
class VIADUCT_EXPORT EventPoller {
public:
    virtual ~EventPoller() = default;
    virtual void poll() noexcept {}
    /// The caller is about to sleep.
    virtual void stop_polling() noexcept {}
};

/// As await_readable(), but poll for spin_time() before they sleep: for events that usually follow so soon that waking
/// a thread would take longer.
VIADUCT_EXPORT Status await_readable_soon(int fd, EventPoller& poller);
VIADUCT_EXPORT bool await_readable_soon(int fd, const Deadline& deadline, EventPoller& poller);

/// Calls `take`, which returns a Result, until it returns something else than WouldBlock; sleeps in between until
/// `source.fd()`, which is called only then, is readable. Continues after a signal. TimedOut: the deadline has passed.
/// NoResources: there is no descriptor.
auto take_when_readable(auto& source, const Deadline& deadline, EventPoller& poller, auto take) -> decltype(take()) {
    while (true) {
        auto taken = take();
        if (taken.status().code() != Code::WouldBlock) return taken;
        if (deadline.passed()) return Status(Code::TimedOut, "nothing came before the deadline");
        const int fd = source.fd();
        if (fd < 0) return Status(Code::NoResources, "no descriptor could be created to wait with");
        (void)await_readable_soon(fd, deadline, poller);
    }
}

/// Holds at most `capacity` events. Allocates memory only when it is created or enlarged, where it may throw
/// std::bad_alloc. Thread-safe.
template <class Event>
class EventChannel {
public:
    explicit EventChannel(std::size_t capacity = 0) { events_.reserve(capacity); }

    void enlarge(std::size_t capacity) {
        const LockGuard lock(mutex_);
        events_.reserve(capacity);
    }

    /// Readable while there are events; -1: it could not be created. Programs may change O_NONBLOCK.
    int fd() noexcept {
        const LockGuard lock(mutex_);
        return flag_.fd();
    }

    /// False: the channel is full.
    bool push(const Event& event) noexcept {
        const LockGuard lock(mutex_);
        if (events_.size() == events_.capacity()) return false;
        events_.push_back(event);
        flag_.set(true);
        return true;
    }

    /// Takes the oldest event, if there is one. Never blocks.
    std::optional<Event> try_take() noexcept {
        const LockGuard lock(mutex_);
        if (events_.empty()) return std::nullopt;
        const Event event = events_.front();
        events_.erase(events_.begin());
        flag_.set(!events_.empty());
        return event;
    }

    /// As try_take(). WouldBlock: there is none.
    Result<Event> next() noexcept {
        if (auto event = try_take()) return *event;
        return Status(Code::WouldBlock, "no event is pending");
    }

    /// Removes events that have not been taken.
    void discard_if(auto unwanted) noexcept {
        const LockGuard lock(mutex_);
        std::erase_if(events_, unwanted);
        flag_.set(!events_.empty());
    }

private:
    Mutex mutex_;
    std::vector<Event> events_ VIADUCT_GUARDED_BY(mutex_);
    ReadableFlag flag_ VIADUCT_GUARDED_BY(mutex_);
};

}  // namespace viaduct
