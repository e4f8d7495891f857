// SPDX-License-Identifier: BSD-3-Clause
// The registered regions and bound windows of the devices at one address. Keys are random, so that peers cannot guess
// them.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "backends/support/region_view.hpp"
#include "core/attributes.hpp"
#include "core/status.hpp"
#include "core/work.hpp"

namespace viaduct::software {

using support::RegionView;
using support::RemoteUse;

/// A prepared bind of a window.
struct Binding {
    std::uint32_t window = 0;
    std::uint32_t region = 0;  ///< the key of the region
    std::uint64_t base = 0;
    std::uint64_t length = 0;  ///< 0: unbind
    Access access;
};

/// Not thread-safe. Functions that return a key throw std::bad_alloc.
class Regions {
public:
    static constexpr std::uint32_t max = 1 << 17;

    /// InvalidParameter: the memory is not mapped. NoResources: there are too many regions.
    Result<std::uint32_t> add(void* address, std::uint64_t length, std::uint32_t domain, Access access);
    void set_rights(std::uint32_t key, std::uint32_t domain, Access access) noexcept;
    void remove(std::uint32_t key) noexcept { regions_.erase(key); }

    /// Returns null if the key is not or no longer valid.
    const RegionView* find(std::uint32_t key) const noexcept {
        const auto found = regions_.find(key);
        return found == regions_.end() ? nullptr : &found->second;
    }

    // Windows: as in OwnRegionTable of the loopback backend. A window has a permanent number; each binding has a key.
    std::uint32_t add_window(std::uint32_t domain, WindowScope scope);
    void remove_window(std::uint32_t window) noexcept;
    std::uint32_t prepare(const Binding& binding);  ///< returns the future key
    CompletionCode bind(std::uint32_t key, std::uint32_t domain, std::uint32_t connection) noexcept;
    void forget(std::uint32_t key) noexcept { prepared_.erase(key); }
    bool invalidate(std::uint32_t key, std::uint32_t connection) noexcept;
    void end_windows_of(std::uint32_t connection) noexcept;

private:
    struct Window {
        std::uint32_t domain;
        WindowScope scope;
        std::uint32_t shown = 0;         // the current key or an invalidated one; 0: none
        std::uint32_t only_through = 0;  // as in RegionView
    };
    std::uint32_t free_key() const noexcept;

    std::unordered_map<std::uint32_t, RegionView> regions_;
    std::unordered_map<std::uint32_t, Window> windows_;
    std::unordered_map<std::uint32_t, Binding> prepared_;
};

}  // namespace viaduct::software
