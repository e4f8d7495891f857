// SPDX-License-Identifier: BSD-3-Clause
// What the InfiniBand extension can ask an IA, an endpoint and an event dispatcher for: how often something happened.
#pragma once

#include <array>
#include <atomic>
#include <span>

#include "api/udat/provider/api.hpp"

namespace viaduct::dat {

/// Exact where one thread counts at a time, which is what the objects of the data path ask of their consumers anyway.
class Counter {
public:
    void add(DAT_UINT64 amount) noexcept {
        value_.store(value_.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
    }
    DAT_UINT64 value() const noexcept { return value_.load(std::memory_order_relaxed); }
    void clear() noexcept { value_.store(0, std::memory_order_relaxed); }

private:
    std::atomic<DAT_UINT64> value_{0};
};

/// The counters of one object, by their numbers (DCNT_...).
template <std::size_t Count>
class Counters {
public:
    void add(int counter, DAT_UINT64 amount = 1) noexcept { values_[static_cast<std::size_t>(counter)].add(amount); }
    std::span<Counter> all() noexcept { return values_; }

private:
    std::array<Counter, Count> values_;
};

/// One counter goes to its place in the array, as all of them do where `wanted` is DCNT_..._ALL_COUNTERS.
DAT_RETURN query_counters(DAT_HANDLE handle, int wanted, DAT_UINT64* values, bool reset) noexcept;

/// To standard output: this is what the call is for.
DAT_RETURN print_counters(DAT_HANDLE handle, int wanted, bool reset) noexcept;

}  // namespace viaduct::dat
