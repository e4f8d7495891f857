// SPDX-License-Identifier: BSD-3-Clause
#include "core/handle_arena.hpp"

#include <sys/mman.h>

#include <new>

namespace viaduct {

constinit HandleArena HandleArena::instance_;

HandleArena::Slot* HandleArena::take_slot() {
    const std::size_t used = used_.load(std::memory_order_relaxed);
    if (idle_ > idle_slots || (used == capacity * sizeof(Slot) && idle_ != 0)) {
        Slot* slot = oldest_idle_;
        oldest_idle_ = slot->next;
        if (--idle_ == 0) newest_idle_ = nullptr;
        return slot;
    }
    if (used == capacity * sizeof(Slot)) return nullptr;
    if (base_.load(std::memory_order_relaxed) == 0) {
        void* memory = ::mmap(nullptr, capacity * sizeof(Slot), PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED) throw std::bad_alloc();
        base_.store(reinterpret_cast<std::uintptr_t>(memory), std::memory_order_relaxed);
    }
    auto* slot = new (reinterpret_cast<void*>(base_.load(std::memory_order_relaxed) + used)) Slot{};
    used_.store(used + sizeof(Slot), std::memory_order_release);
    return slot;
}

void* HandleArena::insert(const void* table, std::uint8_t kind, void* object) {
    const std::lock_guard lock(mutex_);
    Slot* slot = take_slot();
    if (slot == nullptr) return nullptr;
    slot->table = table;
    slot->next = nullptr;
    slot->object.store(object, std::memory_order_relaxed);
    slot->kind.store(kind, std::memory_order_release);
    return slot;
}

bool HandleArena::erase(void* handle, std::uint8_t kind) noexcept {
    const std::lock_guard lock(mutex_);
    if (kind_of(handle) != kind) return false;
    auto* slot = static_cast<Slot*>(handle);
    slot->kind.store(0, std::memory_order_release);
    (newest_idle_ == nullptr ? oldest_idle_ : newest_idle_->next) = slot;
    newest_idle_ = slot;
    ++idle_;
    return true;
}

}  // namespace viaduct
