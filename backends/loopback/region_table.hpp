// SPDX-License-Identifier: BSD-3-Clause
// The registered regions of a device and what its windows show, in a table that peers can read, and the files behind
// them.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "backends/loopback/layout.hpp"
#include "backends/loopback/mapping.hpp"
#include "core/attributes.hpp"
#include "core/base/unique_fd.hpp"
#include "core/work.hpp"

namespace viaduct::loopback {

/// What a peer wants with a region.
enum class RemoteUse : std::uint8_t { Write, Read, Flush, Atomic };

/// What one look at a table entry says. The values were consistent at the time of the look.
struct RegionView {
    std::uint64_t base = 0;
    std::uint64_t length = 0;
    std::uint32_t domain = 0;
    std::uint32_t flags = 0;  ///< wire::region_flags
    std::uint32_t only_through = 0;

    bool covers(std::uint64_t address, std::uint64_t bytes) const noexcept {
        return address >= base && address - base <= length && bytes <= length - (address - base);
    }

    bool has_file() const noexcept { return (flags & wire::region_flags::file) != 0; }

    /// Whether peers can map it: a file that cannot shrink stands behind it, and it is open to them as a whole.
    bool is_mappable() const noexcept {
        constexpr std::uint32_t open =
            wire::region_flags::remote_write | wire::region_flags::remote_read | wire::region_flags::remote_atomic;
        return (flags & wire::region_flags::mappable) != 0 && (flags & open) != 0 &&
               (flags & wire::region_flags::window) == 0;
    }

    /// Whether the owner may use it as local memory.
    bool is_usable(bool to_write) const noexcept {
        const std::uint32_t wanted = to_write ? wire::region_flags::local_write : 0;
        return (flags & (wanted | wire::region_flags::window)) == wanted;
    }

    /// The protection rule for peers: the region belongs to the domain of the endpoint that they are connected to, and
    /// both the endpoint and the region accept the use, `through` this connection.
    bool allows(RemoteUse use, Access accepted, std::uint32_t of_domain, std::uint32_t through, std::uint64_t address,
                std::uint64_t bytes) const noexcept {
        return accepts(use, accepted) && domain == of_domain && (only_through == 0 || only_through == through + 1) &&
               covers(address, bytes) && (use != RemoteUse::Atomic || address % 8 == 0);
    }

private:
    bool accepts(RemoteUse use, Access accepted) const noexcept {
        const auto has = [this](std::uint32_t wanted) { return (flags & wanted) == wanted; };
        const bool writable = has(wire::region_flags::writable_pages);
        const bool write = accepted.remote_write && writable && has(wire::region_flags::remote_write);
        const bool read = accepted.remote_read && has(wire::region_flags::remote_read);
        switch (use) {
            case RemoteUse::Write: return write;
            case RemoteUse::Read: return read;
            case RemoteUse::Flush: return write || read;
            case RemoteUse::Atomic: return accepted.remote_atomic && writable && has(wire::region_flags::remote_atomic);
        }
        return false;
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
        .only_through = entry.only_through.load(std::memory_order_acquire),
    };
    if (entry.key.load(std::memory_order_relaxed) != key) return std::nullopt;
    return view;
}

/// A file that stands behind a region, so that a peer can map the same memory.
struct BackingFile {
    UniqueFd fd;
    std::uint64_t offset = 0;  ///< of the region's first byte
};

/// What a window is to show.
struct Binding {
    std::uint32_t window = 0;
    std::uint32_t region = 0;  ///< its key
    std::uint64_t base = 0;
    std::uint64_t length = 0;  ///< 0: nothing
    Access access;
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

    /// Windows. Each has a number for life, which is the key of nothing; what it shows has a key of its own each time.
    /// Makes a window. Throws std::bad_alloc. NoResources: table full.
    Result<std::uint32_t> add_window(std::uint32_t domain, WindowScope scope);
    void remove_window(std::uint32_t window) noexcept;

    /// Keeps a binding until its turn comes, and gives the key that it will have. Throws and fails as add_window().
    Result<std::uint32_t> prepare(const Binding& binding);

    /// The turn of a binding has come, in the queue of an endpoint: ends what the window showed and shows that.
    /// LocalProtection: domain, range or rights do not fit. LocalFormat: nobody has prepared this key.
    CompletionCode bind(std::uint32_t key, std::uint32_t domain, std::uint32_t connection) noexcept;
    void forget(std::uint32_t key) noexcept;  ///< its turn never comes

    /// Ends what a window shows through a connection alone, as its peer wishes. False: no window of that kind.
    bool invalidate(std::uint32_t key, std::uint32_t connection) noexcept;
    void end_windows_of(std::uint32_t connection) noexcept;

    /// A duplicate of the descriptor behind a region, for a peer that wants to map it.
    std::optional<BackingFile> backing(std::uint32_t key) noexcept;

private:
    struct Window {
        std::uint32_t domain;
        WindowScope scope;
        std::uint32_t shown = 0;         ///< the key in force, or one that has ended; 0: none
        std::uint32_t only_through = 0;  ///< as in the table
    };
    struct Row {
        std::uint64_t base;
        std::uint64_t length;
        std::uint64_t rights;
        std::uint32_t only_through;
    };

    OwnRegionTable() = default;

    // With the mutex held.
    std::uint32_t take_key() noexcept;  ///< 0: table full
    /// Takes a key under which `map` keeps `value`; none where that throws.
    template <class Value>
    std::uint32_t take_key_for(std::unordered_map<std::uint32_t, Value>& map, Value value);
    void give_back(std::uint32_t key) noexcept;
    void publish(std::uint32_t key, const Row& row) noexcept;
    void end(std::uint32_t key) noexcept;
    wire::RegionEntry& entry(std::uint32_t key) noexcept {
        return mapping_.as<wire::RegionTable>()->entries[key % wire::max_regions];
    }

    UniqueFd memory_;
    Mapping mapping_;
    std::unique_ptr<std::mutex> mutex_ = std::make_unique<std::mutex>();  // guards what follows
    // Keys to give out next, a ring of all that there can be; oldest first so that stale ones stay stale for long.
    std::unique_ptr<std::uint32_t[]> free_ = std::make_unique_for_overwrite<std::uint32_t[]>(wire::max_regions);
    std::uint32_t free_begin_ = 0;
    std::uint32_t free_end_ = 0;
    std::uint32_t used_ = 0;
    std::unordered_map<std::uint32_t, BackingFile> files_;
    std::unordered_map<std::uint32_t, Window> windows_;
    std::unordered_map<std::uint32_t, Binding> prepared_;
};

}  // namespace viaduct::loopback
