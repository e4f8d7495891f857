// SPDX-License-Identifier: BSD-3-Clause
#include "api/vipl/region_table.hpp"

#include <algorithm>

#include "api/vipl/api.hpp"

namespace viaduct::vipl {

RegionTable::RegionTable() {
    generations_.push_back(std::make_unique<Slots>(64));
    slots_.store(generations_.back().get(), std::memory_order_release);
}

RegionTable::~RegionTable() {
    for (const Slot& slot : generations_.back()->at) delete slot.region.load(std::memory_order_relaxed);
}

std::size_t RegionTable::size() const noexcept {
    const LockGuard lock(mutex_);
    return count_;
}

bool RegionTable::covers(const void* address) const noexcept {
    const LockGuard lock(mutex_);
    return std::ranges::any_of(slots_.load()->at, [address](const Slot& slot) {
        const MemoryRegion* const region = slot.region.load();
        return region != nullptr && region->covers(address, 1);
    });
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

RegionTable::Slot& RegionTable::Slots::insert(MemoryRegion* region) noexcept {
    std::size_t index = home(region->key());
    while (at[index].region.load(std::memory_order_relaxed) != nullptr) index = (index + 1) & mask;
    DescriptorMemory& memory = at[index].descriptors;
    memory.domain.store(region->domain().get(), std::memory_order_relaxed);
    memory.begin.store(reinterpret_cast<std::uintptr_t>(region->address()), std::memory_order_relaxed);
    memory.room.store(region->length() - sizeof(VIP_CONTROL_SEGMENT), std::memory_order_relaxed);
    at[index].key.store(region->key(), std::memory_order_release);
    at[index].region.store(region, std::memory_order_release);
    return at[index];
}

const DescriptorMemory* RegionTable::find_for_descriptor(std::uint32_t key) noexcept {
    if (key == free_key) return nullptr;
    Slot* slot = slots_.load(std::memory_order_acquire)->find(key);
    if (slot != nullptr && slot->descriptors.key.load(std::memory_order_acquire) == key) return &slot->descriptors;
    const LockGuard lock(mutex_);
    slot = generations_.back()->find(key);
    const MemoryRegion* region = slot == nullptr ? nullptr : slot->region.load(std::memory_order_relaxed);
    if (region == nullptr || region->length() < sizeof(VIP_CONTROL_SEGMENT)) return nullptr;
    slot->descriptors.key.store(key, std::memory_order_release);
    return &slot->descriptors;
}

/// Takes no lock: the backend takes its own, with which observers call covers().
Status RegionTable::modify(MemoryRegion& region, std::shared_ptr<ProtectionDomain> domain, Access access) {
    const Status status = region.modify(std::move(domain), access);
    if (Slot* slot = slots_.load(std::memory_order_acquire)->find(region.key()); slot != nullptr && status.ok())
        slot->descriptors.domain.store(region.domain().get(), std::memory_order_relaxed);
    return status;
}

void RegionTable::insert(std::unique_ptr<MemoryRegion> region) {
    const LockGuard lock(mutex_);
    if (2 * (count_ + 1) > generations_.back()->at.size()) grow();
    generations_.back()->insert(region.release());
    ++count_;
}

RegionTable::Erased RegionTable::erase(std::uint32_t key) noexcept {
    const LockGuard lock(mutex_);
    Slot* slot = generations_.back()->find(key);
    if (slot == nullptr) return {};
    std::unique_ptr<MemoryRegion> region(slot->region.exchange(nullptr, std::memory_order_acq_rel));
    if (region != nullptr) --count_;
    return {std::move(region), slot->descriptors.key.exchange(DescriptorMemory::no_key) == key};
}

void RegionTable::grow() {
    Slots& old = *generations_.back();
    generations_.reserve(generations_.size() + 1);
    auto larger = std::make_unique<Slots>(2 * old.at.size());
    for (Slot& slot : old.at) {
        MemoryRegion* region = slot.region.load(std::memory_order_relaxed);
        if (region == nullptr) continue;
        // The posts that remember the old slot look for the new one.
        larger->insert(region).descriptors.key = slot.descriptors.key.exchange(DescriptorMemory::no_key);
    }
    slots_.store(larger.get(), std::memory_order_release);
    generations_.push_back(std::move(larger));
}

}  // namespace viaduct::vipl
