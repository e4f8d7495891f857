// SPDX-License-Identifier: BSD-3-Clause
// The region that a work queue has used last, so that most requests need no look-up.
#pragma once

#include "backends/loopback/region_table.hpp"

namespace viaduct::loopback {

/// A region of one table, and the ways in which a queue may use it: bits that the owner of the cache defines. Not
/// thread-safe.
class RegionCache {
public:
    /// Starts with no region of this table. Call it before the other functions.
    void follow(const wire::RegionTable& table) noexcept {
        *this = {};
        table_ = &table;
    }

    /// Reports whether the memory may be used in all these ways. `uses_of(const RegionView&)` returns the ways in which
    /// a region may be used. It is called if another key was used before, or if any key of the table has become invalid
    /// since then; what it returns for a region must not change until follow().
    template <class Uses>
    [[gnu::always_inline]] bool allows(std::uint32_t key, std::uint64_t address, std::uint64_t bytes, unsigned uses,
                                       Uses uses_of) noexcept {
        if (is_other(key)) [[unlikely]]
            read(key, uses_of);
        return is_within(address, bytes, uses);
    }

    /// The same without a look-up. Returns false if the memory is not in the region that was used last.
    [[gnu::always_inline]] bool allows(std::uint32_t key, std::uint64_t address, std::uint64_t bytes,
                                       unsigned uses) const noexcept {
        return !is_other(key) && is_within(address, bytes, uses);
    }

    /// Reports whether the region that was used last may be used in this way.
    bool known_as(unsigned use) const noexcept { return (denied_ & use) == 0; }

private:
    [[gnu::always_inline]] bool is_other(std::uint32_t key) const noexcept {
        return key != key_ || table_->generation.load(std::memory_order_acquire) != generation_;
    }

    [[gnu::always_inline]] bool is_within(std::uint64_t address, std::uint64_t bytes, unsigned uses) const noexcept {
        std::uint64_t end = 0;
        return (denied_ & uses) == 0 && !__builtin_add_overflow(address - base_, bytes, &end) && end <= length_;
    }

    /// A key that is not valid may become so without a new generation, so it is not cached.
    template <class Uses>
    [[gnu::noinline]] void read(std::uint32_t key, Uses uses_of) noexcept {
        const std::uint64_t generation = table_->generation.load(std::memory_order_acquire);  // before the region
        follow(*table_);
        const auto region = look_up(*table_, key);
        if (!region) return;
        key_ = key;
        generation_ = generation;
        base_ = region->base;
        length_ = region->length;
        denied_ = ~uses_of(*region);
    }

    const wire::RegionTable* table_ = nullptr;
    std::uint32_t key_ = 0;  // 0: no region, of which all uses are denied
    unsigned denied_ = ~0u;
    std::uint64_t generation_ = 0;
    std::uint64_t base_ = 0;
    std::uint64_t length_ = 0;
};

}  // namespace viaduct::loopback
