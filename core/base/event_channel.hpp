// SPDX-License-Identifier: BSD-3-Clause
// Events behind a file descriptor: a queue that poll(2) and epoll(7) can watch.
#pragma once

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <optional>
#include <vector>

#include "core/base/unique_fd.hpp"
#include "core/deadline.hpp"
#include "core/export.hpp"
#include "core/status.hpp"

namespace viaduct {

/// An eventfd that is readable while it is set. It blocks unless the consumer sets O_NONBLOCK on it, and is made on
/// first use: most are never watched. Not thread-safe.
class VIADUCT_EXPORT ReadableFlag {
public:
    ReadableFlag() noexcept = default;
    ReadableFlag(const ReadableFlag&) = delete;
    ReadableFlag& operator=(const ReadableFlag&) = delete;

    /// -1 where no descriptor can be had; a later call tries again.
    int fd() noexcept;
    void set(bool wanted) noexcept;

private:
    UniqueFd fd_;
    bool set_ = false;
};

/// Sleeps until the descriptor is readable. WouldBlock: O_NONBLOCK is set on it and it is not, or a signal came
/// (sys_errno() tells which: EAGAIN, EINTR).
VIADUCT_EXPORT Status await_readable(int fd) noexcept;

/// The same until a deadline, whatever the flags of the descriptor. False: it has passed first, or a signal came.
VIADUCT_EXPORT bool await_readable(int fd, const Deadline& deadline) noexcept;

/// Thread-safe. Holds at most `capacity` events, which its owner knows to be enough. Throws std::bad_alloc where it is
/// made or enlarged, and never later.
template <class Event>
class EventChannel {
public:
    explicit EventChannel(std::size_t capacity = 0) { events_.reserve(capacity); }

    void enlarge(std::size_t capacity) {
        const std::lock_guard lock(mutex_);
        events_.reserve(capacity);
    }

    /// Readable while events wait; -1 where no descriptor can be had. Whether it blocks is the consumer's to set.
    int fd() noexcept {
        const std::lock_guard lock(mutex_);
        return flag_.fd();
    }

    /// False (and no change) where the channel is full.
    bool push(const Event& event) noexcept {
        const std::lock_guard lock(mutex_);
        if (events_.size() == events_.capacity()) return false;
        events_.push_back(event);
        flag_.set(true);
        return true;
    }

    /// The oldest event, if there is one. Never blocks.
    std::optional<Event> try_take() noexcept {
        const std::lock_guard lock(mutex_);
        if (events_.empty()) return std::nullopt;
        const Event event = events_.front();
        events_.erase(events_.begin());
        flag_.set(!events_.empty());
        return event;
    }

    /// Takes back events that nobody has taken.
    template <class Predicate>
    void discard_if(Predicate unwanted) noexcept {
        const std::lock_guard lock(mutex_);
        std::erase_if(events_, unwanted);
        flag_.set(!events_.empty());
    }

private:
    std::mutex mutex_;  // guards what follows
    std::vector<Event> events_;
    ReadableFlag flag_;
};

}  // namespace viaduct
