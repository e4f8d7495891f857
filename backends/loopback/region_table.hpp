// SPDX-License-Identifier: BSD-3-Clause
// The registered regions of a device, in a table that peers can read, and the files behind them.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "backends/loopback/fd.hpp"
#include "backends/loopback/layout.hpp"
#include "core/attributes.hpp"

namespace viaduct::loopback {

/// What a peer wants with a region.
enum class RemoteUse : std::uint8_t { Write, Read, Flush };

/// What one look at a table entry says. The values were consistent at the time of the look.
struct RegionView {
    std::uint64_t base = 0;
    std::uint64_t length = 0;
    std::uint32_t domain = 0;
    std::uint32_t flags = 0;  ///< wire::region_flags

    bool covers(std::uint64_t address, std::uint64_t bytes) const noexcept {
        return address >= base && address - base <= length && bytes <= length - (address - base);
    }

    /// Whether peers can map it: a file stands behind it, and it is open to them.
    bool is_mappable() const noexcept {
        constexpr std::uint32_t open = wire::region_flags::remote_write | wire::region_flags::remote_read;
        return (flags & wire::region_flags::mappable) != 0 && (flags & open) != 0;
    }

    /// The protection rule for peers: the region belongs to the domain of the endpoint that they are connected to, and
    /// both the endpoint and the region accept the use.
    bool allows(RemoteUse use, Access accepted, std::uint32_t of_domain, std::uint64_t address,
                std::uint64_t bytes) const noexcept {
        const auto has = [this](std::uint32_t wanted) { return (flags & wanted) == wanted; };
        const bool write =
            accepted.remote_write && has(wire::region_flags::remote_write | wire::region_flags::writable_pages);
        const bool read = accepted.remote_read && has(wire::region_flags::remote_read);
        const bool accepts = use == RemoteUse::Flush ? write || read : use == RemoteUse::Read ? read : write;
        return accepts && domain == of_domain && covers(address, bytes);
    }
};

/// Reads an entry of an own or a peer's table; nothing where the key is not (or no longer) valid.
inline std::optional<RegionView> look_up(const wire::RegionTable& table, std::uint32_t key) noexcept {
    const wire::RegionEntry& entry = table.entries[key % wire::max_regions];
    if (key == 0 || entry.key.load(std::memory_order_acquire) != key) return std::nullopt;
    const RegionView view{
        .base = entry.base.load(std::memory_order_acquire),
        .length = entry.length.load(std::memory_order_acquire),
        .domain = static_cast<std::uint32_t>(entry.rights.load(std::memory_order_acquire) >> 32),
        .flags = static_cast<std::uint32_t>(entry.rights.load(std::memory_order_acquire)),
    };
    if (entry.key.load(std::memory_order_relaxed) != key) return std::nullopt;
    return view;
}

/// A file that stands behind a region, so that a peer can map the same memory.
struct BackingFile {
    UniqueFd fd;
    std::uint64_t offset = 0;  ///< of the region's first byte
};

class OwnRegionTable {
public:
    /// Throws std::bad_alloc.
    static Result<OwnRegionTable> create();

    int memory_fd() const noexcept { return memory_.get(); }
    const wire::RegionTable& table() const noexcept { return *mapping_.as<wire::RegionTable>(); }

    /// Publishes a region and gives its key. InvalidParameter: memory that is not mapped. NoResources: table full.
    Result<std::uint32_t> add(void* address, std::uint64_t length, std::uint32_t domain, Access access);
    void set_rights(std::uint32_t key, std::uint32_t domain, Access access) noexcept;
    void remove(std::uint32_t key) noexcept;

    /// A duplicate of the descriptor behind a region, for a peer that wants to map it.
    std::optional<BackingFile> backing(std::uint32_t key) noexcept;

private:
    OwnRegionTable() = default;
    wire::RegionEntry& entry(std::uint32_t key) noexcept {
        return mapping_.as<wire::RegionTable>()->entries[key % wire::max_regions];
    }

    UniqueFd memory_;
    Mapping mapping_;
    std::unique_ptr<std::mutex> mutex_ = std::make_unique<std::mutex>();  // guards what follows
    std::deque<std::uint32_t> free_;  // keys to give out next, oldest first so that stale ones stay stale for long
    std::uint32_t used_ = 0;
    std::unordered_map<std::uint32_t, BackingFile> files_;
};

}  // namespace viaduct::loopback
