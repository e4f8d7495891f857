// SPDX-License-Identifier: BSD-3-Clause
// What a key of a region or of a window permits, to its owner and to peers.
#pragma once

#include <cstdint>

#include "viaduct/attributes.hpp"

namespace viaduct::support {

namespace region_flags {
inline constexpr std::uint32_t remote_write = 1;
inline constexpr std::uint32_t remote_read = 2;
inline constexpr std::uint32_t local_write = 4;      ///< the owner may write and the pages are writable
inline constexpr std::uint32_t mappable = 8;         ///< the pages belong to a memfd, which the owner sends
                                                     ///< on request if it cannot shrink
inline constexpr std::uint32_t writable_pages = 16;  ///< the pages are writable
inline constexpr std::uint32_t window = 32;          ///< a part of a region, for peers
inline constexpr std::uint32_t remote_atomic = 64;
inline constexpr std::uint32_t file = 128;  ///< at least some of the pages belong to a file, so flushes must reach it
}  // namespace region_flags

constexpr std::uint32_t remote_flags(Access access) noexcept {
    return (access.remote_write ? region_flags::remote_write : 0) |
           (access.remote_read ? region_flags::remote_read : 0) |
           (access.remote_atomic ? region_flags::remote_atomic : 0);
}

/// Returns the flags of a region from the properties of its memory and the access that the owner allows. Other flags
/// of `memory` are ignored.
constexpr std::uint32_t flags_of_region(std::uint32_t memory, Access access) noexcept {
    memory &= region_flags::file | region_flags::writable_pages | region_flags::mappable;
    const bool local_write = access.local_write && (memory & region_flags::writable_pages) != 0;
    return memory | (local_write ? region_flags::local_write : 0) | remote_flags(access);
}

/// Returns the flags of a window from those of its region.
constexpr std::uint32_t flags_of_window(std::uint32_t region, Access access) noexcept {
    constexpr std::uint32_t of_memory = region_flags::file | region_flags::writable_pages;
    return (region & of_memory) | region_flags::window | remote_flags(access);
}

/// How a peer uses a region.
enum class RemoteUse : std::uint8_t { Write, Read, Flush, Atomic };

/// A consistent copy of a table entry.
struct RegionView {
    std::uint64_t base = 0;
    std::uint64_t length = 0;
    std::uint32_t domain = 0;
    std::uint32_t flags = 0;  ///< region_flags
    std::uint32_t only_through = 0;

    bool covers(std::uint64_t address, std::uint64_t bytes) const noexcept {
        const std::uint64_t offset = address - base;
        return offset <= length && bytes <= length - offset;
    }

    bool has_file() const noexcept { return (flags & region_flags::file) != 0; }

    /// Reports whether peers can map the region: it is mapped from a file that cannot shrink, and all of it is
    /// accessible.
    bool is_mappable() const noexcept {
        constexpr std::uint32_t open =
            region_flags::remote_write | region_flags::remote_read | region_flags::remote_atomic;
        return (flags & region_flags::mappable) != 0 && (flags & open) != 0 && (flags & region_flags::window) == 0;
    }

    /// Reports whether the owner may use it as local memory.
    bool is_usable(bool to_write) const noexcept {
        const std::uint32_t wanted = to_write ? region_flags::local_write : 0;
        return (flags & (wanted | region_flags::window)) == wanted;
    }

    /// The protection rule for peers: the region belongs to the domain of the endpoint that the peer is connected to,
    /// and both the endpoint and the region allow the access through the connection `through`.
    bool permits(RemoteUse use, Access accepted, std::uint32_t of_domain, std::uint32_t through) const noexcept {
        return accepts(use, accepted) && domain == of_domain && (only_through == 0 || only_through == through + 1);
    }
    bool allows(RemoteUse use, Access accepted, std::uint32_t of_domain, std::uint32_t through, std::uint64_t address,
                std::uint64_t bytes) const noexcept {
        return permits(use, accepted, of_domain, through) && covers(address, bytes) &&
               (use != RemoteUse::Atomic || address % 8 == 0);
    }

private:
    bool accepts(RemoteUse use, Access accepted) const noexcept {
        const auto has = [this](std::uint32_t wanted) { return (flags & wanted) == wanted; };
        const bool writable = has(region_flags::writable_pages);
        const bool write = accepted.remote_write && writable && has(region_flags::remote_write);
        const bool read = accepted.remote_read && has(region_flags::remote_read);
        switch (use) {
            case RemoteUse::Write: return write;
            case RemoteUse::Read: return read;
            case RemoteUse::Flush: return write || read;
            case RemoteUse::Atomic: return accepted.remote_atomic && writable && has(region_flags::remote_atomic);
        }
        return false;
    }
};

}  // namespace viaduct::support
