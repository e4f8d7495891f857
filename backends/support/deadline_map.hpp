// SPDX-License-Identifier: BSD-3-Clause
// What an agent's thread has to do at a time, in order.
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
    /// Whether it is the earliest now, so that whoever sleeps until the earliest has to look again. One that never
    /// comes is not kept. Throws std::bad_alloc.
    bool add(const Deadline& deadline, T item) {
        if (deadline.infinite()) return false;
        const auto added = items_.emplace(deadline, std::move(item));
        return added == items_.begin();
    }

    /// Takes back an item that was added with this deadline, where it is still there.
    void remove(const Deadline& deadline, const T& item) noexcept {
        const auto [first, last] = items_.equal_range(deadline);
        for (auto it = first; it != last; ++it)
            if (it->second == item) {
                items_.erase(it);
                return;
            }
    }

    /// The oldest item whose deadline has passed.
    std::optional<T> take_due() noexcept {
        if (items_.empty() || !items_.begin()->first.passed()) return std::nullopt;
        std::optional<T> due(std::move(items_.begin()->second));
        items_.erase(items_.begin());
        return due;
    }

    /// Until the earliest deadline, as poll(2) and epoll_wait(2) take it: -1 where there is none.
    int timeout_ms() const noexcept { return items_.empty() ? -1 : items_.begin()->first.poll_timeout_ms(); }

private:
    std::multimap<Deadline, T> items_;
};

}  // namespace viaduct::support
