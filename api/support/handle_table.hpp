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

#include "core/base/fork.hpp"
#include "core/base/reserved_memory.hpp"

namespace viaduct {

/// Handles are 64-bit values that are never 0: kind (8 bits, chosen by the owner of the table so that handles of
/// different tables differ), generation (32 bits), offset of the slot (24 bits). find() takes no lock; insert() and
/// erase() do. The table does not own the objects.
template <class Object>
class HandleTable {
public:
    explicit HandleTable(std::uint8_t kind) noexcept : kind_(kind) {}
    ~HandleTable() {
        mutex_.retire();
        if (mask_.load(std::memory_order_relaxed) == offset_mask)
            ::munmap(slots_.load(std::memory_order_relaxed), mapped_bytes);
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
            std::uint64_t{kind_} << 56 | std::uint64_t{++generations_[index]} << 24 | index * sizeof(Slot);
        slot.handle.store(handle, std::memory_order_release);
        return handle;
    }

    /// The object, or null if the handle is not, or no longer, one of this table.
    [[gnu::always_inline]] Object* find(std::uint64_t handle) const noexcept {
        const std::uint64_t mask = mask_.load(std::memory_order_acquire);  // before the slots, which change first
        const auto* const slots = reinterpret_cast<const std::byte*>(slots_.load(std::memory_order_relaxed));
        const auto& slot = *reinterpret_cast<const Slot*>(slots + (handle & mask));
        if (slot.handle.load(std::memory_order_acquire) != handle) [[unlikely]]
            return nullptr;
        Object* object = slot.object.load(std::memory_order_relaxed);
        if (object == nullptr) __builtin_unreachable();
        return object;
    }

    /// Invalidates the handle. Returns the object, or null if another call did so first.
    Object* erase(std::uint64_t handle) noexcept {
        const std::lock_guard lock(mutex_);
        Object* object = find(handle);
        if (object == nullptr) return nullptr;
        const auto index = static_cast<std::uint32_t>((handle & offset_mask) / sizeof(Slot));
        slots_.load(std::memory_order_relaxed)[index].handle.store(0, std::memory_order_release);
        free_.push_back(index);
        return object;
    }

    /// Whether the handle was valid when a parent process forked this one, and its slot was not used since.
    bool was_inherited(std::uint64_t handle) const noexcept {
        const std::uint64_t place = (handle & mask_.load(std::memory_order_acquire)) / sizeof(Slot);
        const Slot& slot = slots_.load(std::memory_order_relaxed)[place];
        return handle != 0 && slot.handle.load() == 0 && reinterpret_cast<std::uint64_t>(slot.object.load()) == handle;
    }

private:
    struct Slot {
        std::atomic<std::uint64_t> handle{0};
        std::atomic<Object*> object{nullptr};  // in the slot of an inherited handle: this handle
    };
    static constexpr std::uint32_t max_slots = 1 << 20;
    static constexpr std::size_t mapped_bytes = max_slots * sizeof(Slot);
    static constexpr std::uint64_t offset_mask = mapped_bytes - sizeof(Slot);
    static_assert(mapped_bytes <= std::size_t{1} << 24);

    /// In slot 0, where no handle belongs: as the offset of another slot, it is never found. Thus 0, the handle in
    /// unused slots, is not found either.
    static constexpr std::uint64_t no_handle = sizeof(Slot);

    /// Maps the slots. Slot 0 is not used. Throws std::bad_alloc.
    void map_slots() {
        generations_.reserve(64);
        void* memory = reserve_memory(mapped_bytes);
        auto* const slots = static_cast<Slot*>(memory);  // all zeros, as Slot() makes them
        slots[0].handle.store(no_handle, std::memory_order_relaxed);
        slots_.store(slots, std::memory_order_relaxed);
        mask_.store(offset_mask, std::memory_order_release);
        generations_.push_back(0);
    }

    /// In a forked child: invalidates the handles of the parent.
    static void forget_all(void* table) noexcept {
        auto& own = *static_cast<HandleTable*>(table);
        for (std::uint32_t index = 1; index < own.generations_.size(); ++index) {
            Slot& slot = own.slots_.load(std::memory_order_relaxed)[index];
            const std::uint64_t handle = slot.handle.exchange(0);
            if (handle == 0) continue;
            slot.object.store(reinterpret_cast<Object*>(handle), std::memory_order_relaxed);
            own.free_.push_back(index);
        }
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

    static inline Slot no_slots_[2] = {{.handle = no_handle, .object = nullptr}, {}};

    std::atomic<std::uint64_t> mask_{sizeof(Slot)};  // of the offset
    std::atomic<Slot*> slots_{no_slots_};
    ProcessMutex mutex_{forget_all, this};  // guards the members below and all changes
    std::vector<std::uint32_t> generations_;
    std::vector<std::uint32_t> free_;
    std::uint8_t kind_;
};

}  // namespace viaduct
