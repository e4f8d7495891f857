// SPDX-License-Identifier: BSD-3-Clause
// The counters that the InfiniBand extension can query: how often an event occurred on an IA, an endpoint or an event
// dispatcher.
#pragma once

#include <array>
#include <span>

#include "api/udat/provider/api.hpp"
#include "core/base/counter.hpp"

namespace viaduct::dat {

/// The counters of one object, by their numbers (DCNT_...). Exact if only one thread counts at a time, which consumers
/// must ensure anyway for the objects of the data path.
template <std::size_t Count>
class Counters {
public:
    void add(int counter, DAT_UINT64 amount = 1) noexcept { values_[static_cast<std::size_t>(counter)].add(amount); }
    std::span<Counter> all() noexcept { return values_; }

private:
    std::array<Counter, Count> values_;
};

/// Writes one counter to its place in the array, or all counters if `wanted` is DCNT_..._ALL_COUNTERS.
DAT_RETURN query_counters(DAT_HANDLE handle, int wanted, DAT_UINT64* values, bool reset) noexcept;

/// Prints to standard output, which is the purpose of the call.
DAT_RETURN print_counters(DAT_HANDLE handle, int wanted, bool reset) noexcept;

}  // namespace viaduct::dat
