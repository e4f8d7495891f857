// SPDX-License-Identifier: BSD-3-Clause
// The registered regions and bound windows of a device, in a table that peers can read, and the files that the regions
// are mapped from.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "backends/loopback/layout.hpp"
#include "backends/loopback/mapping.hpp"
#include "backends/support/region_view.hpp"
#include "core/attributes.hpp"
#include "core/base/unique_fd.hpp"
#include "core/work.hpp"

namespace viaduct::loopback {

using support::RegionView;
using support::RemoteUse;

/// Reads an entry of this process's or a peer's table. Returns nothing if the key is not or no longer valid.
inline std::optional<RegionView> look_up(const wire::RegionTable& table, std::uint32_t key) noexcept {
    const wire::RegionEntry& entry = table.entries[key % wire::max_regions];
    if (key == 0 || entry.key.load(std::memory_order_acquire) != key) return std::nullopt;
    const RegionView view{
        .base = entry.base.load(std::memory_order_acquire),
        .length = entry.length.load(std::memory_order_acquire),
        .domain = static_cast<std::uint32_t>(entry.rights.load(std::memory_order_acquire) >> 32),
        .flags = static_cast<std::uint32_t>(entry.rights.load(std::memory_order_acquire)),
        .only_through = entry.only_through.load(std::memory_order_acquire),
    };
    if (entry.key.load(std::memory_order_relaxed) != key) return std::nullopt;
    return view;
}

/// The file that a region is mapped from, so that a peer can map the same memory.
struct BackingFile {
    UniqueFd fd;
    std::uint64_t offset = 0;  ///< of the first byte of the region
};

/// A prepared bind of a window.
struct Binding {
    std::uint32_t window = 0;
    std::uint32_t region = 0;  ///< the key of the region
    std::uint64_t base = 0;
    std::uint64_t length = 0;  ///< 0: unbind
    Access access;
};

class OwnRegionTable {
public:
    /// Throws std::bad_alloc.
    static Result<OwnRegionTable> create();

    int memory_fd() const noexcept { return memory_.get(); }
    const wire::RegionTable& table() const noexcept { return *mapping_.as<wire::RegionTable>(); }

    /// Publishes a region and returns its key. InvalidParameter: the memory is not mapped. NoResources: the table is
    /// full.
    Result<std::uint32_t> add(void* address, std::uint64_t length, std::uint32_t domain, Access access);
    void set_rights(std::uint32_t key, std::uint32_t domain, Access access) noexcept;
    void remove(std::uint32_t key) noexcept;

    /// Memory windows. A window has a permanent number, which is not valid as a key. Each binding has a key of its own.
    ///
    /// Creates a window. Throws std::bad_alloc. NoResources: the table is full.
    Result<std::uint32_t> add_window(std::uint32_t domain, WindowScope scope);
    void remove_window(std::uint32_t window) noexcept;

    /// Stores a binding until bind() and returns its future key. Throws and fails like add_window().
    Result<std::uint32_t> prepare(const Binding& binding);

    /// Executes a prepared binding when its request is executed: ends the previous binding of the window and starts the
    /// new one. LocalProtection: domain, range or access rights do not match. LocalFormat: the key was not prepared.
    CompletionCode bind(std::uint32_t key, std::uint32_t domain, std::uint32_t connection) noexcept;
    void forget(std::uint32_t key) noexcept;  ///< the binding will not be executed

    /// Ends the binding of a window that is restricted to a connection, on request of the peer. Returns false if there
    /// is no such window.
    bool invalidate(std::uint32_t key, std::uint32_t connection) noexcept;
    void end_windows_of(std::uint32_t connection) noexcept;

    /// Returns a duplicate of the descriptor of a region's file, for a peer that wants to map it. Finds the file on
    /// first use, because the search takes as long as the process has descriptors. If there is none, the region is not
    /// mappable any more. Throws std::bad_alloc.
    std::optional<BackingFile> backing(std::uint32_t key);

private:
    struct Window {
        std::uint32_t domain;
        WindowScope scope;
        std::uint32_t shown = 0;         ///< the current key or an invalidated one; 0: none
        std::uint32_t only_through = 0;  ///< as in RegionEntry
    };
    struct Row {
        std::uint64_t base;
        std::uint64_t length;
        std::uint64_t rights;
        std::uint32_t only_through;
    };

    OwnRegionTable() = default;

    // The mutex must be held.
    std::uint32_t take_key() noexcept;  ///< 0: the table is full
    /// Takes a key and stores `value` under it in `map`. If that throws, no key is taken.
    template <class Value>
    std::uint32_t take_key_for(std::unordered_map<std::uint32_t, Value>& map, Value value);
    void give_back(std::uint32_t key) noexcept;
    void publish(std::uint32_t key, const Row& row) noexcept;
    void end(std::uint32_t key) noexcept;
    /// Ends what caches know about the table.
    void start_generation() noexcept {
        mapping_.as<wire::RegionTable>()->generation.fetch_add(1, std::memory_order_release);
    }
    wire::RegionEntry& entry(std::uint32_t key) noexcept {
        return mapping_.as<wire::RegionTable>()->entries[key % wire::max_regions];
    }

    UniqueFd memory_;
    Mapping mapping_;
    std::unique_ptr<std::mutex> mutex_ = std::make_unique<std::mutex>();  // guards the members below
    // A ring of the free keys, oldest first, so that stale keys are not reused soon.
    std::unique_ptr<std::uint32_t[]> free_ = std::make_unique_for_overwrite<std::uint32_t[]>(wire::max_regions);
    std::uint32_t free_begin_ = 0;
    std::uint32_t free_end_ = 0;
    std::uint32_t used_ = 0;
    std::unordered_map<std::uint32_t, BackingFile> files_;  // of the regions that peers have mapped
    std::unordered_map<std::uint32_t, Window> windows_;
    std::unordered_map<std::uint32_t, Binding> prepared_;
};

}  // namespace viaduct::loopback
