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

/// Counts, in the process, what requires that a completion is checked before its descriptor is written: ranges of
/// revoked memory, and VIs that have had a catastrophic error.
class DeliveryChecks {
public:
    /// Completions check this first; it costs one load. If revoked memory was registered again, what its owner did to
    /// it before comes before what the caller does to it.
    static bool any() noexcept { return count.load(std::memory_order_acquire) != 0; }

    static void add(std::size_t more) noexcept { count.fetch_add(more); }
    static void remove(std::size_t fewer) noexcept { count.fetch_sub(fewer); }

private:
    static inline std::atomic<std::size_t> count{0};
};

/// Deregistered memory that contained descriptors. Thread-safe. Almost always empty: a range is kept only if the region
/// contained descriptors and work is outstanding.
class RevokedMemory {
public:
    ~RevokedMemory() { DeliveryChecks::remove(ranges_.size()); }

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

    mutable Mutex mutex_;
    std::vector<Range> ranges_ VIADUCT_GUARDED_BY(mutex_);
};

}  // namespace viaduct::vipl
