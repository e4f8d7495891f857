// SPDX-License-Identifier: BSD-3-Clause
// A queue of events between threads.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

#include "core/base/waiting.hpp"
#include "viaduct/deadline.hpp"

namespace viaduct {

/// After close(), it accepts no more events, and waiters get the remaining ones, then nothing. Thread-safe.
template <class Event>
class EventQueue {
public:
    void push(Event event) {
        {
            const std::lock_guard lock(mutex_);
            if (closed_) return;
            events_.push_back(std::move(event));
        }
        ready_.notify_one();
    }

    /// Takes the oldest event; nothing if the deadline passes, or if the queue is closed and empty.
    std::optional<Event> wait(const Deadline& deadline) {
        std::unique_lock lock(mutex_);
        await_condition(ready_, lock, deadline, [this] { return closed_ || !events_.empty(); });
        if (events_.empty()) return std::nullopt;
        Event event = std::move(events_.front());
        events_.pop_front();
        return event;
    }

    std::optional<Event> try_take() { return wait(Deadline::now()); }

    void clear() {
        const std::lock_guard lock(mutex_);
        events_.clear();
    }

    void close() {
        {
            const std::lock_guard lock(mutex_);
            closed_ = true;
        }
        ready_.notify_all();
    }

    bool closed() {
        const std::lock_guard lock(mutex_);
        return closed_;
    }

private:
    std::mutex mutex_;
    std::condition_variable ready_;
    std::deque<Event> events_;
    bool closed_ = false;
};

}  // namespace viaduct
