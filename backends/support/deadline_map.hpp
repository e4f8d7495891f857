// SPDX-License-Identifier: BSD-3-Clause
// The items that an agent's thread has to handle at a certain time, in order.
#pragma once

#include <map>
#include <optional>
#include <utility>

#include "core/deadline.hpp"

namespace viaduct::support {

/// Not thread-safe.
template <class T>
class DeadlineMap {
public:
    /// Adds an item and reports whether its deadline is now the earliest one, so that a thread that sleeps until the
    /// earliest deadline must be woken. An item with an infinite deadline is not stored. Throws std::bad_alloc.
    bool add(const Deadline& deadline, T item) {
        if (deadline.infinite()) return false;
        const auto added = items_.emplace(deadline, std::move(item));
        return added == items_.begin();
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
    /// empty.
    int timeout_ms() const noexcept { return items_.empty() ? -1 : items_.begin()->first.poll_timeout_ms(); }

private:
    static bool is_same(const T& one, const T& other) noexcept {
        if constexpr (requires { one.owner_before(other); })  // a std::weak_ptr
            return !one.owner_before(other) && !other.owner_before(one);
        else
            return one == other;
    }

    std::multimap<Deadline, T> items_;
};

}  // namespace viaduct::support
