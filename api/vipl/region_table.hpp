// SPDX-License-Identifier: BSD-3-Clause
// The memory regions of a NIC, looked up by key on the data path.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "viaduct/detail/mutex.hpp"
#include "viaduct/device.hpp"

namespace viaduct::vipl {

/// What a post checks of a region that contains descriptors. It is not destroyed before the table, but may describe
/// another region later, so the key is read first.
struct DescriptorMemory {
    static constexpr std::uint64_t no_key = ~std::uint64_t{0};  // differs from all handles, even forged ones

    std::atomic<std::uint64_t> key{no_key};  ///< no_key: no region, or one that has not held descriptors so far
    std::atomic<const ProtectionDomain*> domain{nullptr};
    std::atomic<std::uintptr_t> begin{0};
    std::atomic<std::uint64_t> room{0};  ///< after a control segment at `begin`
};

/// A hash table with open addressing. find() takes no lock and a few nanoseconds.
class RegionTable {
public:
    RegionTable();
    ~RegionTable();

    /// The table must not contain the key of the region. Throws std::bad_alloc.
    void insert(std::unique_ptr<MemoryRegion> region);

    std::size_t size() const noexcept;

    /// Returns null if there is no such region.
    MemoryRegion* find(std::uint32_t key) const noexcept {
        const Slot* slot = slots_.load(std::memory_order_acquire)->find(key);
        return slot == nullptr ? nullptr : slot->region.load(std::memory_order_acquire);
    }

    /// Like find(), for posting a descriptor with this key: records that the region contains descriptors. Returns null
    /// also if the region is too small for one. The key in the result becomes no_key when the region is erased.
    const DescriptorMemory* find_for_descriptor(std::uint32_t key) noexcept;

    /// Whether any region contains the address. Takes as long as there are regions.
    bool covers(const void* address) const noexcept;

    /// As MemoryRegion::modify(), for a region of the table. The caller prevents that regions are inserted or erased
    /// meanwhile.
    Status modify(MemoryRegion& region, std::shared_ptr<ProtectionDomain> domain, Access access);

    /// The region removed from the table, or no region.
    struct Erased {
        std::unique_ptr<MemoryRegion> region;
        bool held_descriptors = false;
    };
    Erased erase(std::uint32_t key) noexcept;

private:
    static constexpr std::uint32_t free_key = 0;  // never the key of a region; such a slot has no region

    /// A used slot keeps its key after the region is removed, so that searches continue past it. A later insertion
    /// reuses it.
    struct Slot {
        std::atomic<std::uint32_t> key{free_key};
        std::atomic<MemoryRegion*> region{nullptr};
        DescriptorMemory descriptors;
    };

    struct Slots {
        explicit Slots(std::size_t size) : mask(size - 1), at(size) {}

        std::size_t home(std::uint32_t key) const noexcept {
            return (key * std::uint64_t{0x9E3779B97F4A7C15} >> 32) & mask;
        }

        /// Returns the first slot with the key, or null.
        Slot* find(std::uint32_t key) noexcept;

        Slot& insert(MemoryRegion* region) noexcept;

        const std::size_t mask;
        std::vector<Slot> at;
    };

    void grow() VIADUCT_REQUIRES(mutex_);

    std::atomic<Slots*> slots_;
    mutable Mutex mutex_;  // guards all changes, too
    std::size_t count_ VIADUCT_GUARDED_BY(mutex_) = 0;
    std::vector<std::unique_ptr<Slots>> generations_
        VIADUCT_GUARDED_BY(mutex_);  // the last one is in use; readers may still use earlier ones
};

}  // namespace viaduct::vipl
