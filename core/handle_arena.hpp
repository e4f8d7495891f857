// SPDX-License-Identifier: BSD-3-Clause
// Handles that are pointers, for an API whose dispatchers read the first word of a handle before they know whether it
// is one. A handle points to a slot that stays mapped for the life of the process; the slot knows whether it is alive.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "core/export.hpp"

namespace viaduct {

/// Thread-safe; find() and table_of() take no lock. One for the whole process, whose libraries share its handles. A
/// slot is used again late, and only where `idle_slots` others have ended since, so that a stale handle is found out.
class VIADUCT_EXPORT HandleArena {
public:
    /// Never destroyed.
    static HandleArena& instance() noexcept { return instance_; }

    /// A handle for an object, its first word the table. Null where all slots are in use. Throws std::bad_alloc.
    void* insert(const void* table, std::uint8_t kind, void* object);

    /// Ends a handle; its first word stays. False where it is not a live one: of several calls, one gets true.
    bool erase(void* handle, std::uint8_t kind) noexcept;

    /// The object of a live handle of that kind, else null.
    void* find(const void* handle, std::uint8_t kind) const noexcept {
        const Slot* slot = slot_of(handle);
        if (slot == nullptr || slot->kind.load(std::memory_order_acquire) != kind) return nullptr;
        return slot->object.load(std::memory_order_relaxed);
    }

    /// The kind of a live handle, else 0.
    std::uint8_t kind_of(const void* handle) const noexcept {
        const Slot* slot = slot_of(handle);
        return slot == nullptr ? std::uint8_t{0} : slot->kind.load(std::memory_order_acquire);
    }

    /// Whether the pointer leads into the arena: only then is it, or was it, a handle of ours.
    bool contains(const void* pointer) const noexcept {
        std::size_t offset = 0;
        return contains(pointer, offset);
    }

    /// The first word of a live handle, else null.
    [[gnu::always_inline]] const void* table_of(const void* handle) const noexcept {
        const Slot* slot = slot_of(handle);
        return slot == nullptr || slot->kind.load(std::memory_order_acquire) == 0 ? nullptr : slot->table;
    }

private:
    struct Slot {
        const void* table;
        std::atomic<void*> object;
        std::atomic<std::uint8_t> kind;  // 0: not alive
        Slot* next;                      // of those that ended, in the order in which they did
    };
    static_assert(sizeof(Slot) == 32);

    static constexpr std::size_t capacity = std::size_t{1} << 20;
    static constexpr std::size_t idle_slots = 4096;

    constexpr HandleArena() noexcept = default;

    bool contains(const void* pointer, std::size_t& offset) const noexcept {
        const std::size_t used = used_.load(std::memory_order_acquire);  // before the base: see take_slot()
        offset = reinterpret_cast<std::uintptr_t>(pointer) - base_.load(std::memory_order_relaxed);
        return offset < used;
    }
    [[gnu::always_inline]] const Slot* slot_of(const void* handle) const noexcept {
        std::size_t offset = 0;
        return contains(handle, offset) && offset % sizeof(Slot) == 0 ? static_cast<const Slot*>(handle) : nullptr;
    }
    Slot* take_slot();

    static HandleArena instance_;

    std::atomic<std::uintptr_t> base_{0};  // set before used_ first grows
    std::atomic<std::size_t> used_{0};     // bytes of slots that ever were in use
    std::mutex mutex_;                     // guards what follows, and changes of slots
    Slot* oldest_idle_ = nullptr;
    Slot* newest_idle_ = nullptr;
    std::size_t idle_ = 0;
};

}  // namespace viaduct
