// SPDX-License-Identifier: BSD-3-Clause
// Handles that are pointers which may be looked at: each begins with a face, bytes that mean something to those who
// look. A handle points to a slot that stays mapped for the life of the process; the slot knows whether it is alive.
#pragma once

#include <sys/mman.h>

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>
#endif

namespace viaduct {

/// Thread-safe; what looks handles up takes no lock. A slot is used again late, and only where `idle_slots` others have
/// ended since, so that a stale handle is found out.
template <std::size_t face_bytes>
class HandleSlots {
public:
    constexpr HandleSlots() noexcept = default;

    /// A handle for an object; `make_face(void*)` fills in its face, which is all zeros. Null where all slots are in
    /// use. Throws std::bad_alloc.
    template <class MakeFace>
    void* insert(std::uint8_t kind, void* object, MakeFace make_face) {
        const std::lock_guard lock(mutex_);
        Slot* slot = take_slot();
        if (slot == nullptr) return nullptr;
        slot->face = {};
        make_face(static_cast<void*>(slot->face.data()));
        slot->next = nullptr;
        slot->object.store(object, std::memory_order_relaxed);
        slot->kind.store(kind, std::memory_order_release);
        return slot;
    }

    /// Ends a handle; its face stays. Returns its object, or null where it is not a live one: of several calls, one
    /// gets it.
    void* take(void* handle, std::uint8_t kind) noexcept {
        const std::lock_guard lock(mutex_);
        void* object = find(handle, kind);
        if (object != nullptr) end(static_cast<Slot*>(handle));
        return object;
    }

    /// Ends a handle if it is still, or not again, that of this object.
    void end(void* handle, std::uint8_t kind, const void* object) noexcept {
        const std::lock_guard lock(mutex_);
        if (find(handle, kind) == object) end(static_cast<Slot*>(handle));
    }

    /// The object of a live handle of that kind, else null.
    [[gnu::always_inline]] void* find(const void* handle, std::uint8_t kind) const noexcept {
        const Slot* slot = slot_of(handle);
        if (slot == nullptr || slot->kind.load(std::memory_order_acquire) != kind) return nullptr;
        return slot->object.load(std::memory_order_relaxed);
    }

    /// The kind of a live handle, else 0.
    [[gnu::always_inline]] std::uint8_t kind_of(const void* handle) const noexcept {
        const Slot* slot = slot_of(handle);
        return slot == nullptr ? std::uint8_t{0} : slot->kind.load(std::memory_order_acquire);
    }

    /// Whether the pointer leads here: only then is it, or was it, a handle of ours.
    bool contains(const void* pointer) const noexcept {
        std::size_t offset = 0;
        return contains(pointer, offset);
    }

    /// The number of a handle's slot: unique among the living, and not soon used again.
    std::uint32_t number_of(const void* handle) const noexcept {
        std::size_t offset = 0;
        (void)contains(handle, offset);
        return static_cast<std::uint32_t>(offset / sizeof(Slot));
    }

private:
    struct Contents {
        std::array<std::byte, face_bytes> face;
        std::atomic<void*> object;
        std::atomic<std::uint8_t> kind;  // 0: not alive
        void* next;                      // of those that ended, in the order in which they did
    };
    /// Of a size that is a power of two.
    struct alignas(std::bit_ceil(sizeof(Contents))) Slot : Contents {};

    static constexpr std::size_t mapped_bytes = std::size_t{32} << 20;
    static constexpr std::size_t idle_slots = 4096;

    bool contains(const void* pointer, std::size_t& offset) const noexcept {
        const std::size_t used = used_.load(std::memory_order_acquire);  // before the base: see take_slot()
        offset = reinterpret_cast<std::uintptr_t>(pointer) - base_.load(std::memory_order_relaxed);
        return offset < used;
    }
    [[gnu::always_inline]] const Slot* slot_of(const void* handle) const noexcept {
        std::size_t offset = 0;
        return contains(handle, offset) && offset % sizeof(Slot) == 0 ? static_cast<const Slot*>(handle) : nullptr;
    }

    Slot* take_slot() {
        const std::size_t used = used_.load(std::memory_order_relaxed);
        if (idle_ > idle_slots || (used == mapped_bytes && idle_ != 0)) {
            Slot* slot = oldest_idle_;
            oldest_idle_ = static_cast<Slot*>(slot->next);
            if (--idle_ == 0) newest_idle_ = nullptr;
            return slot;
        }
        if (used == mapped_bytes) return nullptr;
        if (base_.load(std::memory_order_relaxed) == 0) {
            void* memory = ::mmap(nullptr, mapped_bytes, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
            if (memory == MAP_FAILED) throw std::bad_alloc();
#if defined(__SANITIZE_ADDRESS__)
            __lsan_register_root_region(memory, mapped_bytes);  // what a live handle leads to has not leaked
#endif
            base_.store(reinterpret_cast<std::uintptr_t>(memory), std::memory_order_relaxed);
        }
        auto* slot = new (reinterpret_cast<void*>(base_.load(std::memory_order_relaxed) + used)) Slot{};
        used_.store(used + sizeof(Slot), std::memory_order_release);
        return slot;
    }

    void end(Slot* slot) noexcept {
        slot->kind.store(0, std::memory_order_release);
        if (newest_idle_ == nullptr)
            oldest_idle_ = slot;
        else
            newest_idle_->next = slot;
        newest_idle_ = slot;
        ++idle_;
    }

    std::atomic<std::uintptr_t> base_{0};  // set before used_ first grows
    std::atomic<std::size_t> used_{0};     // bytes of slots that ever were in use
    std::mutex mutex_;                     // guards what follows, and changes of slots
    Slot* oldest_idle_ = nullptr;
    Slot* newest_idle_ = nullptr;
    std::size_t idle_ = 0;
};

}  // namespace viaduct
