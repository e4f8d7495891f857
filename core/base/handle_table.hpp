// SPDX-License-Identifier: BSD-3-Clause
// Handles that consist of an index and a generation, so that stale, foreign and forged handles are detected without
// access to freed memory.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace viaduct {

/// Handles are 64-bit values that are never 0: kind (8 bits, chosen by the owner of the table so that handles of
/// different tables differ), generation (32 bits), index (24 bits). find() takes no lock; insert() and erase() do.
/// The table does not own the objects.
template <class Object>
class HandleTable {
public:
    explicit HandleTable(std::uint8_t kind) noexcept : kind_(kind) {}

    /// 0: the table is full. Throws std::bad_alloc.
    std::uint64_t insert(Object* object) {
        const std::lock_guard lock(mutex_);
        std::uint32_t index;
        if (!free_.empty()) {
            index = free_.back();
            free_.pop_back();
        } else {
            if (used_ == chunk_slots * max_chunks) return 0;
            if (used_ % chunk_slots == 0) add_chunk(used_ / chunk_slots);
            index = used_++;
        }
        Slot& slot = (*owned_[index / chunk_slots])[index % chunk_slots];
        slot.object.store(object, std::memory_order_relaxed);
        ++slot.generation;
        const std::uint64_t handle =
            std::uint64_t{kind_} << 56 | std::uint64_t{slot.generation} << 24 | std::uint64_t{index};
        slot.handle.store(handle, std::memory_order_release);
        return handle;
    }

    /// The object, or null if the handle is not, or no longer, one of this table.
    [[gnu::always_inline]] Object* find(std::uint64_t handle) const noexcept {
        const Slot* slot = at(static_cast<std::uint32_t>(handle & 0xFFFFFF));
        if (slot == nullptr || handle == 0 || slot->handle.load(std::memory_order_acquire) != handle) return nullptr;
        return slot->object.load(std::memory_order_relaxed);
    }

    /// Invalidates the handle. Returns the object, or null if another call did so first.
    Object* erase(std::uint64_t handle) noexcept {
        const std::lock_guard lock(mutex_);
        Object* object = find(handle);
        if (object == nullptr) return nullptr;
        const auto index = static_cast<std::uint32_t>(handle & 0xFFFFFF);
        (*owned_[index / chunk_slots])[index % chunk_slots].handle.store(0, std::memory_order_release);
        free_.push_back(index);
        return object;
    }

private:
    static constexpr std::uint32_t chunk_slots = 1024;
    static constexpr std::uint32_t max_chunks = 1024;

    struct Slot {
        std::atomic<std::uint64_t> handle{0};
        std::atomic<Object*> object{nullptr};
        std::uint32_t generation = 0;
    };
    using Chunk = std::array<Slot, chunk_slots>;

    void add_chunk(std::uint32_t number) {
        free_.reserve((owned_.size() + 1) * chunk_slots);  // so that erase() never allocates
        owned_.push_back(std::make_unique<Chunk>());
        chunks_[number].store(owned_.back().get(), std::memory_order_release);
    }

    Slot* at(std::uint32_t index) const noexcept {
        if (index >= chunk_slots * max_chunks) return nullptr;
        Chunk* chunk = chunks_[index / chunk_slots].load(std::memory_order_acquire);
        return chunk == nullptr ? nullptr : &(*chunk)[index % chunk_slots];
    }

    std::array<std::atomic<Chunk*>, max_chunks> chunks_{};
    std::mutex mutex_;  // guards the members below
    std::vector<std::unique_ptr<Chunk>> owned_;
    std::vector<std::uint32_t> free_;
    std::uint32_t used_ = 0;
    std::uint8_t kind_;
};

}  // namespace viaduct
