// SPDX-License-Identifier: BSD-3-Clause
// Memory that was deregistered while it contained posted descriptors. Their completions must not be written (guide,
// section 3.8.1, Completion Protection Error).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "viaduct/detail/mutex.hpp"

namespace viaduct::vipl {

/// Deregistered memory that contained descriptors. Thread-safe. Almost always empty: a range is kept only if the region
/// contained descriptors and work is outstanding.
class RevokedMemory {
public:
    ~RevokedMemory() { ranges_in_process.fetch_sub(ranges_.size()); }

    /// Reports whether any NIC of the process has such memory. Completions check this first; it costs one load. If the
    /// memory was registered again, what its owner did to it before comes before what the caller does to it.
    static bool any() noexcept { return ranges_in_process.load(std::memory_order_acquire) != 0; }

    bool contains(const void* address) const noexcept;

    /// Makes room for so many calls of add(), also after one of remove(). Throws std::bad_alloc.
    void reserve(std::size_t regions);
    void add(std::span<const std::byte> memory) noexcept;

    /// Called when memory was registered, perhaps again.
    void remove(std::span<const std::byte> memory) noexcept;

    bool empty() const noexcept;

    /// Forgets what the last call found.
    void forget_old() noexcept;

private:
    struct Range {
        std::uintptr_t begin;
        std::uintptr_t end;
        bool old = false;
    };

    static inline std::atomic<std::size_t> ranges_in_process{0};

    mutable Mutex mutex_;
    std::vector<Range> ranges_ VIADUCT_GUARDED_BY(mutex_);
};

}  // namespace viaduct::vipl
