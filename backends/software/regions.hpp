// SPDX-License-Identifier: BSD-3-Clause
// The registered regions and bound windows of the devices at one address. Keys are random, so that peers cannot guess
// them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>

#include "backends/support/random.hpp"
#include "backends/support/windows.hpp"
#include "viaduct/attributes.hpp"
#include "viaduct/status.hpp"

namespace viaduct::software {

using support::RegionView;
using support::RemoteUse;

/// Not thread-safe. Functions that return a key throw std::bad_alloc.
class Regions : public support::Windows<Regions> {
public:
    static constexpr std::uint32_t max = 1 << 17;

    /// NoResources: also if there are too many regions.
    Result<std::uint32_t> add(void* address, std::uint64_t length, const support::MemoryInfo& memory,
                              std::uint32_t domain, Access access) {
        if (regions_.size() >= max) return Status(Code::NoResources, "too many regions");
        return Windows::add(address, length, memory, domain, access);
    }
    void set_rights(std::uint32_t key, std::uint32_t domain, Access access) noexcept {
        RegionView& region = regions_.find(key)->second;
        region.domain = domain;
        region.flags = support::flags_of_region(region.flags, access);
    }
    void remove(std::uint32_t key) noexcept { regions_.erase(key); }

    std::optional<RegionView> find_region(std::uint32_t key) const noexcept {
        const RegionView* const found = find(key);
        return found == nullptr ? std::nullopt : std::optional(*found);
    }

    /// Returns null if the key is not or no longer valid.
    const RegionView* find(std::uint32_t key) const noexcept {
        const auto found = regions_.find(key);
        return found == regions_.end() ? nullptr : &found->second;
    }

private:
    friend class support::Windows<Regions>;

    // For Windows.
    static support::NoLock& mutex() noexcept { return no_lock_; }
    static constexpr const char* no_key = "the system gives no random number for a key";
    std::uint32_t take_key() const noexcept {
        std::uint32_t key = 0;
        do
            if (!support::fill_random(std::as_writable_bytes(std::span(&key, 1))).ok()) return 0;
        while (key == 0 || regions_.contains(key) || has(key));
        return key;
    }
    static void give_back(std::uint32_t) noexcept {}
    void publish(std::uint32_t key, const RegionView& view) { regions_.emplace(key, view); }
    void end(std::uint32_t key) noexcept { remove(key); }

    static inline support::NoLock no_lock_;
    std::unordered_map<std::uint32_t, RegionView> regions_;
};

}  // namespace viaduct::software
