// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstdint>

namespace viaduct::detail {

/// Counts the users of an object.
class UseCount {
public:
    void add() noexcept { users_.fetch_add(1, std::memory_order_relaxed); }
    void remove() noexcept { users_.fetch_sub(1, std::memory_order_acq_rel); }
    bool in_use() const noexcept { return users_.load(std::memory_order_acquire) != 0; }

private:
    std::atomic<std::uint32_t> users_{0};
};

}  // namespace viaduct::detail
