// SPDX-License-Identifier: BSD-3-Clause
// Memory that was de-registered while descriptors in it were posted: their completions must not be written there
// (guide, section 3.8.1, Completion Protection Error).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

namespace viaduct::vipl {

/// Thread-safe. Almost always empty: it gains a range only where a region held descriptors and work is outstanding.
class RevokedMemory {
public:
    ~RevokedMemory() { clear(); }

    /// Whether any NIC of the process has such memory. One load: completions ask this first.
    static bool any() noexcept { return ranges_in_process.load(std::memory_order_relaxed) != 0; }

    bool contains(const void* address) const noexcept;

    /// Makes room for so many more ranges, one for each region: add() cannot fail. Throws std::bad_alloc.
    void reserve(std::size_t regions);
    void add(std::span<const std::byte> memory) noexcept;

    /// The memory is registered again. Throws std::bad_alloc, and then nothing has changed; followed by reserve().
    void remove(std::span<const std::byte> memory);

    void clear() noexcept;

private:
    struct Range {
        std::uintptr_t begin;
        std::uintptr_t end;
    };

    static inline std::atomic<std::size_t> ranges_in_process{0};

    mutable std::mutex mutex_;  // guards what follows
    std::vector<Range> ranges_;
};

}  // namespace viaduct::vipl
