// SPDX-License-Identifier: BSD-3-Clause
// The region that a work queue has used last, so that most requests need no look-up.
#pragma once

#include "backends/loopback/region_table.hpp"

namespace viaduct::loopback {

/// A region of one table, and the ways in which a queue may use it: bits that the owner of the cache defines. Not
/// thread-safe.
class RegionCache {
public:
    /// Reports whether the memory may be used in all these ways. `uses_of(const RegionView&)` returns the ways in which
    /// a region may be used. It is called if another key was used before, or if any key of the table has become invalid
    /// since then; what it returns for a region must not change until forget().
    template <class Uses>
    [[gnu::always_inline]] bool allows(const wire::RegionTable& table, std::uint32_t key, std::uint64_t address,
                                       std::uint64_t bytes, unsigned uses, Uses uses_of) noexcept {
        if (is_other(table, key)) [[unlikely]]
            read(table, key, uses_of);
        return covers(address, bytes, uses);
    }

    /// The same for the region that was used last, without a look-up. Returns false if the memory is in another one.
    [[gnu::always_inline]] bool allows_again(const wire::RegionTable& table, std::uint32_t key, std::uint64_t address,
                                             std::uint64_t bytes, unsigned uses) const noexcept {
        return !is_other(table, key) && covers(address, bytes, uses);
    }

    void forget() noexcept { *this = {}; }

private:
    [[gnu::always_inline]] bool is_other(const wire::RegionTable& table, std::uint32_t key) const noexcept {
        return key != key_ || table.generation.load(std::memory_order_acquire) != generation_;
    }
    [[gnu::always_inline]] bool covers(std::uint64_t address, std::uint64_t bytes, unsigned uses) const noexcept {
        std::uint64_t end = 0;
        if ((uses_ & uses) != uses || __builtin_add_overflow(address - base_, bytes, &end)) return false;
        return end <= length_;
    }

    /// A key that is not valid may become so without a new generation, so it is not cached.
    template <class Uses>
    [[gnu::noinline]] void read(const wire::RegionTable& table, std::uint32_t key, Uses uses_of) noexcept {
        const std::uint64_t generation = table.generation.load(std::memory_order_acquire);  // before the region
        forget();
        const auto region = look_up(table, key);
        if (!region) return;
        key_ = key;
        generation_ = generation;
        base_ = region->base;
        length_ = region->length;
        uses_ = uses_of(*region);
    }

    std::uint32_t key_ = 0;  // 0: no region, of which no use is allowed
    unsigned uses_ = 0;
    std::uint64_t generation_ = 0;
    std::uint64_t base_ = 0;
    std::uint64_t length_ = 0;
};

}  // namespace viaduct::loopback
