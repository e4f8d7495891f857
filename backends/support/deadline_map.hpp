// SPDX-License-Identifier: BSD-3-Clause
// The items that an agent's thread has to handle at a certain time, in order.
#pragma once

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <utility>

#include "viaduct/deadline.hpp"

namespace viaduct::support {

/// Not thread-safe.
template <class T>
class DeadlineMap {
public:
    /// Adds an item and reports whether a thread that sleeps for timeout_ms() would be late and must be woken. An item
    /// with an infinite deadline is not stored. Throws std::bad_alloc.
    bool add(const Deadline& deadline, T item) {
        if (deadline.infinite()) return false;
        items_.emplace(deadline, std::move(item));
        if (!(deadline < wakes_)) return false;
        wakes_ = deadline;
        return true;
    }

    /// Removes an item added with this deadline, if it is still in the map.
    void remove(const Deadline& deadline, const T& item) noexcept {
        const auto [first, last] = items_.equal_range(deadline);
        for (auto it = first; it != last; ++it)
            if (is_same(it->second, item)) {
                items_.erase(it);
                return;
            }
    }

    /// Removes and returns the item with the earliest deadline, if that has passed.
    std::optional<T> take_due() noexcept {
        if (items_.empty() || !items_.begin()->first.passed()) return std::nullopt;
        std::optional<T> due(std::move(items_.begin()->second));
        items_.erase(items_.begin());
        return due;
    }

    /// Returns the time until the earliest deadline as a timeout for poll(2) and epoll_wait(2), or -1 if the map is
    /// empty. For a moment after an item was removed it may be shorter: often a similar item follows, for which nobody
    /// has to be woken then.
    int timeout_ms() noexcept {
        const Deadline earliest = items_.empty() ? Deadline::never() : items_.begin()->first;
        const bool removed = wakes_ < earliest && !wakes_.passed();
        wakes_ = removed ? std::min(earliest, Deadline::after(moment)) : earliest;
        return wakes_.poll_timeout_ms();
    }

private:
    static constexpr std::chrono::milliseconds moment{100};

    static bool is_same(const T& one, const T& other) noexcept {
        if constexpr (requires { one.owner_before(other); })  // a std::weak_ptr
            return !one.owner_before(other) && !other.owner_before(one);
        else
            return one == other;
    }

    std::multimap<Deadline, T> items_;
    Deadline wakes_ = Deadline::never();  // when the thread wakes at the latest
};

}  // namespace viaduct::support
