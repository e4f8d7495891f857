// SPDX-License-Identifier: BSD-3-Clause
// The memory regions of a NIC, found by their keys on the data path.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "core/device.hpp"

namespace viaduct::vipl {

/// A hash table with open addressing. find() takes no lock and is a few nanoseconds; the others take one.
class RegionTable {
public:
    RegionTable();
    ~RegionTable();

    /// The key of the region must not be in the table. Throws std::bad_alloc.
    void insert(std::unique_ptr<MemoryRegion> region);

    std::size_t size() const noexcept;

    /// Null where there is no such region.
    MemoryRegion* find(std::uint32_t key) const noexcept {
        const Slot* slot = slots_.load(std::memory_order_acquire)->find(key);
        return slot == nullptr ? nullptr : slot->region.load(std::memory_order_acquire);
    }

    /// The same, for a descriptor that is posted with the key: the table keeps in mind that the region holds some.
    MemoryRegion* find_for_descriptor(std::uint32_t key) const noexcept {
        Slot* slot = slots_.load(std::memory_order_acquire)->find(key);
        if (slot == nullptr) return nullptr;
        if (!slot->holds_descriptors.load(std::memory_order_relaxed)) [[unlikely]]
            slot->holds_descriptors.store(true, std::memory_order_relaxed);
        return slot->region.load(std::memory_order_acquire);
    }

    /// What was taken out of the table; no region where there is none.
    struct Erased {
        std::unique_ptr<MemoryRegion> region;
        bool held_descriptors = false;
    };
    Erased erase(std::uint32_t key) noexcept;

private:
    static constexpr std::uint32_t free_key = 0;  // no region has it

    /// A slot that was used keeps its key after the region is gone, so that searches pass over it; the next insertion
    /// that comes by takes it.
    struct Slot {
        std::atomic<std::uint32_t> key{free_key};
        std::atomic<MemoryRegion*> region{nullptr};
        std::atomic<bool> holds_descriptors{false};
    };

    struct Slots {
        explicit Slots(std::size_t size) : mask(size - 1), at(size) {}

        std::size_t home(std::uint32_t key) const noexcept {
            return (key * std::uint64_t{0x9E3779B97F4A7C15} >> 32) & mask;
        }

        /// The first slot that bears the key; null: none.
        Slot* find(std::uint32_t key) noexcept {
            std::size_t index = home(key);
            for (std::size_t seen = 0; seen <= mask; ++seen, index = (index + 1) & mask) {
                const std::uint32_t found = at[index].key.load(std::memory_order_acquire);
                if (found == free_key) return nullptr;
                if (found == key) return &at[index];
            }
            return nullptr;
        }

        void insert(MemoryRegion* region, bool holds_descriptors) noexcept;

        const std::size_t mask;
        std::vector<Slot> at;
    };

    void grow();

    std::atomic<Slots*> slots_;
    mutable std::mutex mutex_;  // guards what follows and all changes
    std::size_t count_ = 0;
    std::vector<std::unique_ptr<Slots>> generations_;  // the last is in use; a reader may still be in an earlier one
};

}  // namespace viaduct::vipl
