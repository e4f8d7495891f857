// SPDX-License-Identifier: BSD-3-Clause
// Handles that are pointers to readable memory. A handle points to a slot, which begins with the bytes that programs
// may read (its face) and records whether the handle is valid. Slots remain mapped until the process ends.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <new>

#include "core/base/fork.hpp"
#include "core/base/reserved_memory.hpp"
#include "viaduct/detail/mutex.hpp"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>
#endif

namespace viaduct {

/// Thread-safe; lookups take no lock. A slot is reused only after `idle_slots` other handles have been invalidated, so
/// that stale handles are detected.
template <std::size_t face_bytes>
class HandleSlots {
public:
    constexpr HandleSlots() noexcept = default;

    /// Creates a handle for an object, which is not null. `make_face(void*)` fills in the face, which is that of the
    /// handle that used the slot before, or all zeros. Null: all slots are in use. Throws std::bad_alloc.
    void* insert(std::uint8_t type, void* object, auto make_face) {
        const LockGuard lock(mutex_);
        Slot* slot = take_slot();
        if (slot == nullptr) return nullptr;
        make_face(static_cast<void*>(slot->face.data()));
        slot->next = nullptr;
        slot->uses.store(slot->uses.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
        slot->object.store(object, std::memory_order_relaxed);
        slot->kind.store(kind_of(type), std::memory_order_release);
        const std::size_t place = place_of(slot);
        if (place == used_.load(std::memory_order_relaxed)) used_.store(place + 1, std::memory_order_release);
        return slot;
    }

    /// Invalidates a handle if it is that of this object; its face remains. Returns whether it was. Of concurrent
    /// calls, one returns true.
    bool end(void* handle, std::uint8_t type, const void* object) noexcept {
        const LockGuard lock(mutex_);
        if (object == nullptr || find(handle, type) != object) return false;
        end(static_cast<Slot*>(handle));
        return true;
    }

    /// Finds several handles with fewer loads. Handles that are created later may not be found.
    class View {
    public:
        explicit View(const HandleSlots& slots) noexcept
            : outside_(slots.outside_.load(std::memory_order_acquire)),
              base_(reinterpret_cast<std::uintptr_t>(slots.base_.load(std::memory_order_relaxed))) {}

        /// As HandleSlots::find().
        [[gnu::always_inline]] void* find(const void* handle, std::uint8_t type) const noexcept {
            const std::uintptr_t offset = reinterpret_cast<std::uintptr_t>(handle) - base_;
            return (offset & outside_) == 0 ? find_held(handle, type) : nullptr;
        }

    private:
        const std::uintptr_t outside_;  // read before the base: see take_slot()
        const std::uintptr_t base_;
    };

    /// The object of a valid handle of this type, otherwise null.
    [[gnu::always_inline]] void* find(const void* handle, std::uint8_t type) const noexcept {
        return View(*this).find(handle, type);
    }

    /// As find(), for a pointer to a slot.
    [[gnu::always_inline]] static void* find_held(const void* handle, std::uint8_t type) noexcept {
        const auto* slot = static_cast<const Slot*>(handle);
        if (slot->kind.load(std::memory_order_acquire) != kind_of(type)) return nullptr;
        void* object = slot->object.load(std::memory_order_relaxed);
        if (object == nullptr) __builtin_unreachable();
        return object;
    }

    /// As find(), for a handle of any type.
    void* find_any(const void* handle) const noexcept {
        if (!holds(handle)) return nullptr;
        const auto* slot = static_cast<const Slot*>(handle);
        return slot->kind.load(std::memory_order_acquire) == 0 ? nullptr : slot->object.load(std::memory_order_relaxed);
    }

    /// Whether the pointer is, or was, one of these handles, so that its face can be read.
    [[gnu::always_inline]] bool holds(const void* pointer) const noexcept {
        const std::size_t used = used_.load(std::memory_order_acquire);  // before the base, which is set first
        return place_of(pointer) < used;
    }

    /// Whether the pointer points into the used slots.
    bool contains(const void* pointer) const noexcept {
        const std::size_t used = used_.load(std::memory_order_acquire);
        return offset_of(pointer) / sizeof(Slot) < used;
    }

    /// Whether the handle was valid when a parent process forked this one, and its slot was not used since.
    bool was_inherited(const void* handle) const noexcept {
        if (!holds(handle)) return false;
        const auto* slot = static_cast<const Slot*>(handle);
        return slot->kind.load() == 0 && slot->object.load() == handle;
    }

    /// The number of a handle's slot: unique among valid handles, and not reused soon.
    std::uint32_t number_of(const void* handle) const noexcept { return static_cast<std::uint32_t>(place_of(handle)); }

    /// Tells a handle, which must be or have been valid, from earlier and later ones with the same slot. To be asked
    /// after find().
    static std::uint32_t use_of(const void* handle) noexcept {
        return static_cast<const Slot*>(handle)->uses.load(std::memory_order_relaxed);
    }

    static constexpr std::size_t face_size = face_bytes;

private:
    static constexpr std::uint8_t kind_of(std::uint8_t type) noexcept { return static_cast<std::uint8_t>(type + 1); }

    struct Contents {
        std::array<std::byte, face_bytes> face;
        std::atomic<void*> object;        // in the slot of an inherited handle: the slot
        std::atomic<std::uint8_t> kind;   // kind_of(its type), or 0: not valid
        std::atomic<std::uint32_t> uses;  // the number of handles that have had the slot
        void* next;                       // the slot that was invalidated after this one
    };
    /// Its size is a power of two.
    struct alignas(std::bit_ceil(sizeof(Contents))) Slot : Contents {};

    static constexpr std::size_t region_bytes = std::size_t{32} << 20;
    static constexpr std::size_t max_slots = region_bytes / sizeof(Slot);
    static constexpr std::size_t idle_slots = 4096;

    [[gnu::always_inline]] std::uintptr_t offset_of(const void* pointer) const noexcept {
        return reinterpret_cast<std::uintptr_t>(pointer) -
               reinterpret_cast<std::uintptr_t>(base_.load(std::memory_order_relaxed));
    }

    /// The number of a slot. If the pointer is not the address of a slot, the number is larger than that of any slot.
    [[gnu::always_inline]] std::size_t place_of(const void* pointer) const noexcept {
        return std::rotr(offset_of(pointer), std::countr_zero(sizeof(Slot)));
    }

    Slot* take_slot() VIADUCT_REQUIRES(mutex_) {
        const std::size_t used = used_.load(std::memory_order_relaxed);
        if (idle_ > idle_slots || (used == max_slots && idle_ != 0)) {
            Slot* slot = oldest_idle_;
            oldest_idle_ = static_cast<Slot*>(slot->next);
            if (--idle_ == 0) newest_idle_ = nullptr;
            return slot;
        }
        if (used == max_slots) return nullptr;
        if (used == 0) {
            base_.store(static_cast<Slot*>(reserve_memory(region_bytes)), std::memory_order_relaxed);
            outside_.store(~(region_bytes - sizeof(Slot)), std::memory_order_release);
        }
        Slot* const memory = base_.load(std::memory_order_relaxed) + used;
#if defined(__SANITIZE_ADDRESS__)
        // Objects of valid handles have not leaked. The search for leaks reads all of a region.
        constexpr std::size_t region_slots = 1024;
        if (used % region_slots == 0) __lsan_register_root_region(memory, region_slots * sizeof(Slot));
#endif
        return new (static_cast<void*>(memory)) Slot{};
    }

    /// In a forked child: invalidates the handles of the parent.
    static void forget_all(void* slots) noexcept {
        auto& own = *static_cast<HandleSlots*>(slots);
        own.mutex_.assume_held();
        for (std::size_t place = 0; place < own.used_.load(); ++place) {
            Slot* const slot = own.base_.load() + place;
            if (slot->kind.load() == 0) continue;
#if defined(__SANITIZE_ADDRESS__)
            __lsan_ignore_object(slot->object.load());  // the child keeps what its parent has made
#endif
            slot->object.store(slot);
            own.end(slot);
        }
    }

    void end(Slot* slot) noexcept VIADUCT_REQUIRES(mutex_) {
        slot->kind.store(0, std::memory_order_release);
        if (newest_idle_ == nullptr)
            oldest_idle_ = slot;
        else
            newest_idle_->next = slot;
        newest_idle_ = slot;
        ++idle_;
    }

    static inline constinit Slot no_slot_{};

    // Before there are slots, only the address of no_slot_ is read.
    std::atomic<std::uintptr_t> outside_{~std::uintptr_t{0}};  // the bits that the offset of no slot has
    std::atomic<Slot*> base_{&no_slot_};
    std::atomic<std::size_t> used_{0};      // number of slots that have been used
    ProcessMutex mutex_{forget_all, this};  // guards changes of slots, too
    Slot* oldest_idle_ VIADUCT_GUARDED_BY(mutex_) = nullptr;
    Slot* newest_idle_ VIADUCT_GUARDED_BY(mutex_) = nullptr;
    std::size_t idle_ VIADUCT_GUARDED_BY(mutex_) = 0;
};

}  // namespace viaduct
