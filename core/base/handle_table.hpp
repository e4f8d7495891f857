// SPDX-License-Identifier: BSD-3-Clause
// Handles that consist of an index and a generation, so that stale, foreign and forged handles are detected without
// access to freed memory.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "core/base/reserved_memory.hpp"

namespace viaduct {

/// Handles are 64-bit values that are never 0: kind (8 bits, chosen by the owner of the table so that handles of
/// different tables differ), generation (32 bits), index (24 bits). find() takes no lock; insert() and erase() do.
/// The table does not own the objects.
template <class Object>
class HandleTable {
public:
    explicit HandleTable(std::uint8_t kind) noexcept : kind_(kind) {}
    ~HandleTable() {
        if (mask_.load(std::memory_order_relaxed) != 0) ::munmap(slots_.load(std::memory_order_relaxed), mapped_bytes);
    }
    HandleTable(const HandleTable&) = delete;
    HandleTable& operator=(const HandleTable&) = delete;

    /// 0: the table is full. Throws std::bad_alloc.
    std::uint64_t insert(Object* object) {
        const std::lock_guard lock(mutex_);
        if (free_.empty() && !add_slot()) return 0;
        const std::uint32_t index = free_.back();
        free_.pop_back();
        Slot& slot = slots_.load(std::memory_order_relaxed)[index];
        slot.object.store(object, std::memory_order_relaxed);
        const std::uint64_t handle =
            std::uint64_t{kind_} << 56 | std::uint64_t{++generations_[index]} << 24 | std::uint64_t{index};
        slot.handle.store(handle, std::memory_order_release);
        return handle;
    }

    /// The object, or null if the handle is not, or no longer, one of this table.
    [[gnu::always_inline]] Object* find(std::uint64_t handle) const noexcept {
        const std::uint64_t mask = mask_.load(std::memory_order_acquire);  // before the slots, which change first
        const Slot& slot = slots_.load(std::memory_order_relaxed)[handle & mask];
        if (slot.handle.load(std::memory_order_acquire) != handle) [[unlikely]]
            return nullptr;
        return slot.object.load(std::memory_order_relaxed);  // null for the handle 0, because slot 0 is never used
    }

    /// Invalidates the handle. Returns the object, or null if another call did so first.
    Object* erase(std::uint64_t handle) noexcept {
        const std::lock_guard lock(mutex_);
        Object* object = find(handle);
        if (object == nullptr) return nullptr;
        const auto index = static_cast<std::uint32_t>(handle & (max_slots - 1));
        slots_.load(std::memory_order_relaxed)[index].handle.store(0, std::memory_order_release);
        free_.push_back(index);
        return object;
    }

private:
    struct Slot {
        std::atomic<std::uint64_t> handle{0};
        std::atomic<Object*> object{nullptr};
    };
    static constexpr std::uint32_t max_slots = 1 << 20;
    static constexpr std::size_t mapped_bytes = max_slots * sizeof(Slot);

    /// Maps the slots. Slot 0 is not used. Throws std::bad_alloc.
    void map_slots() {
        generations_.reserve(64);
        void* memory = reserve_memory(mapped_bytes);
        slots_.store(static_cast<Slot*>(memory), std::memory_order_relaxed);  // all zeros, as Slot() makes them
        mask_.store(max_slots - 1, std::memory_order_release);
        generations_.push_back(0);
    }

    /// Adds a slot to free_. False: all are in use. Throws std::bad_alloc.
    bool add_slot() {
        if (generations_.empty()) map_slots();
        const std::size_t used = generations_.size();
        if (used == max_slots) return false;
        if (free_.capacity() <= used) free_.reserve(2 * used + 64);  // so that erase() never allocates
        generations_.push_back(0);
        free_.push_back(static_cast<std::uint32_t>(used));
        return true;
    }

    static inline Slot no_slots_[1];

    std::atomic<std::uint64_t> mask_{0};  // of the index: 0 while no slots are mapped
    std::atomic<Slot*> slots_{no_slots_};
    std::mutex mutex_;  // guards the members below and all changes
    std::vector<std::uint32_t> generations_;
    std::vector<std::uint32_t> free_;
    std::uint8_t kind_;
};

}  // namespace viaduct
