// SPDX-License-Identifier: BSD-3-Clause
// A queue of events between threads.
#pragma once

#include <deque>
#include <optional>
#include <utility>

#include "viaduct/deadline.hpp"
#include "viaduct/detail/mutex.hpp"

namespace viaduct {

/// After close(), it accepts no more events, and waiters get the remaining ones, then nothing. Thread-safe.
template <class Event>
class EventQueue {
public:
    void push(Event event) {
        {
            const LockGuard lock(mutex_);
            if (closed_) return;
            events_.push_back(std::move(event));
        }
        ready_.notify_one();
    }

    /// Takes the oldest event; nothing if the deadline passes, or if the queue is closed and empty.
    std::optional<Event> wait(const Deadline& deadline) {
        const LockGuard lock(mutex_);
        ready_.wait(mutex_, deadline, [this]() VIADUCT_REQUIRES(mutex_) { return closed_ || !events_.empty(); });
        if (events_.empty()) return std::nullopt;
        Event event = std::move(events_.front());
        events_.pop_front();
        return event;
    }

    std::optional<Event> try_take() { return wait(Deadline::now()); }

    void clear() {
        const LockGuard lock(mutex_);
        events_.clear();
    }

    void close() {
        {
            const LockGuard lock(mutex_);
            closed_ = true;
        }
        ready_.notify_all();
    }

    bool closed() {
        const LockGuard lock(mutex_);
        return closed_;
    }

private:
    Mutex mutex_;
    ConditionVariable ready_;
    std::deque<Event> events_ VIADUCT_GUARDED_BY(mutex_);
    bool closed_ VIADUCT_GUARDED_BY(mutex_) = false;
};

}  // namespace viaduct
