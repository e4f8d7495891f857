// SPDX-License-Identifier: BSD-3-Clause
#include "api/vipl/region_table.hpp"

namespace viaduct::vipl {

RegionTable::RegionTable() {
    generations_.push_back(std::make_unique<Slots>(64));
    slots_.store(generations_.back().get(), std::memory_order_release);
}

RegionTable::~RegionTable() {
    for (const Slot& slot : generations_.back()->at) delete slot.region.load(std::memory_order_relaxed);
}

std::size_t RegionTable::size() const noexcept {
    const std::lock_guard lock(mutex_);
    return count_;
}

RegionTable::Slot* RegionTable::Slots::find(std::uint32_t key) noexcept {
    std::size_t index = home(key);
    for (std::size_t seen = 0; seen <= mask; ++seen, index = (index + 1) & mask) {
        const std::uint32_t found = at[index].key.load(std::memory_order_acquire);
        if (found == free_key) return nullptr;
        if (found == key) return &at[index];
    }
    return nullptr;
}

void RegionTable::Slots::insert(MemoryRegion* region, bool holds_descriptors) noexcept {
    std::size_t index = home(region->key());
    while (at[index].region.load(std::memory_order_relaxed) != nullptr) index = (index + 1) & mask;
    at[index].holds_descriptors.store(holds_descriptors, std::memory_order_relaxed);
    at[index].key.store(region->key(), std::memory_order_release);
    at[index].region.store(region, std::memory_order_release);
}

void RegionTable::insert(std::unique_ptr<MemoryRegion> region) {
    const std::lock_guard lock(mutex_);
    if (2 * (count_ + 1) > generations_.back()->at.size()) grow();
    generations_.back()->insert(region.release(), false);
    ++count_;
}

RegionTable::Erased RegionTable::erase(std::uint32_t key) noexcept {
    const std::lock_guard lock(mutex_);
    Slot* slot = generations_.back()->find(key);
    if (slot == nullptr) return {};
    std::unique_ptr<MemoryRegion> region(slot->region.exchange(nullptr, std::memory_order_acq_rel));
    if (region != nullptr) --count_;
    return {std::move(region), slot->holds_descriptors.load(std::memory_order_relaxed)};
}

void RegionTable::grow() {
    const Slots& old = *generations_.back();
    generations_.reserve(generations_.size() + 1);
    auto larger = std::make_unique<Slots>(2 * old.at.size());
    for (const Slot& slot : old.at)
        if (MemoryRegion* region = slot.region.load(std::memory_order_relaxed))
            larger->insert(region, slot.holds_descriptors.load(std::memory_order_relaxed));
    slots_.store(larger.get(), std::memory_order_release);
    generations_.push_back(std::move(larger));
}

}  // namespace viaduct::vipl
