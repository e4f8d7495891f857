// SPDX-License-Identifier: BSD-3-Clause
#include "backends/software/regions.hpp"

#include <span>

#include "backends/support/random.hpp"

namespace viaduct::software {

std::uint32_t Regions::take_key() const noexcept {
    std::uint32_t key = 0;
    do
        if (!support::fill_random(std::as_writable_bytes(std::span(&key, 1))).ok()) return 0;
    while (key == 0 || regions_.contains(key) || has(key));
    return key;
}

std::optional<RegionView> Regions::find_region(std::uint32_t key) const noexcept {
    const RegionView* const found = find(key);
    return found == nullptr ? std::nullopt : std::optional(*found);
}

Result<std::uint32_t> Regions::add(void* address, std::uint64_t length, const support::MemoryInfo& memory,
                                   std::uint32_t domain, Access access) {
    if (regions_.size() >= max) return Status(Code::NoResources, "too many regions");
    const std::uint32_t flags = (memory.writable ? support::region_flags::writable_pages : 0) |
                                (memory.has_file ? support::region_flags::file : 0);
    const std::uint32_t key = take_key();
    if (key == 0) return Status(Code::NoResources, "the system gives no random number for a key");
    regions_.emplace(key, RegionView{.base = reinterpret_cast<std::uint64_t>(address),
                                     .length = length,
                                     .domain = domain,
                                     .flags = support::flags_of_region(flags, access),
                                     .only_through = 0});
    return key;
}

void Regions::set_rights(std::uint32_t key, std::uint32_t domain, Access access) noexcept {
    RegionView& region = regions_.find(key)->second;
    const std::uint32_t memory = region.flags & (support::region_flags::writable_pages | support::region_flags::file);
    region.domain = domain;
    region.flags = support::flags_of_region(memory, access);
}

}  // namespace viaduct::software
