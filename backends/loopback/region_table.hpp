// SPDX-License-Identifier: BSD-3-Clause
// The registered regions and bound windows of a device, in a table that peers can read, and the files that the regions
// are mapped from.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>

#include "backends/loopback/doorbell.hpp"
#include "backends/loopback/layout.hpp"
#include "backends/support/windows.hpp"
#include "core/base/unique_fd.hpp"
#include "viaduct/attributes.hpp"
#include "viaduct/detail/mutex.hpp"

namespace viaduct::loopback {

using support::RegionView;
using support::RemoteUse;

/// Reads an entry of this process's or a peer's table. Returns nothing if the key is not or no longer valid.
inline std::optional<RegionView> look_up(const wire::RegionTable& table, std::uint32_t key) noexcept {
    const wire::RegionEntry& entry = table.entries[key % wire::max_regions];
    if (key == 0 || entry.key.load(std::memory_order_acquire) != key) return std::nullopt;
    const std::uint64_t rights = entry.rights.load(std::memory_order_acquire);  // once: both halves change together
    const RegionView view{
        .base = entry.base.load(std::memory_order_acquire),
        .length = entry.length.load(std::memory_order_acquire),
        .domain = static_cast<std::uint32_t>(rights >> 32),
        .flags = static_cast<std::uint32_t>(rights),
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

class OwnRegionTable : public support::Windows<OwnRegionTable> {
public:
    /// Throws std::bad_alloc.
    static Result<OwnRegionTable> create();

    int memory_fd() const noexcept { return memory_.fd.get(); }
    const wire::RegionTable& table() const noexcept { return *memory_.mapping.as<wire::RegionTable>(); }

    std::optional<RegionView> find_region(std::uint32_t key) const noexcept { return look_up(table(), key); }

    void set_rights(std::uint32_t key, std::uint32_t domain, Access access) noexcept;
    void remove(std::uint32_t key) noexcept;

    /// Returns a duplicate of the descriptor of a region's file, for a peer that wants to map it. Finds the file on
    /// first use, because the search takes as long as the process has descriptors. If there is none, the region is not
    /// mappable any more. Nothing or no descriptor: there is none, or it cannot be passed now. Throws std::bad_alloc.
    std::optional<BackingFile> backing(std::uint32_t key);

private:
    friend class support::Windows<OwnRegionTable>;
    OwnRegionTable() = default;

    // For Windows.
    static constexpr const char* no_key = "all region keys are in use";
    Mutex& mutex() noexcept VIADUCT_RETURNS_LOCK(*mutex_) { return *mutex_; }
    std::uint32_t take_key() noexcept VIADUCT_REQUIRES(*mutex_);
    void give_back(std::uint32_t key) noexcept VIADUCT_REQUIRES(*mutex_);
    void publish(std::uint32_t key, const RegionView& view) noexcept VIADUCT_REQUIRES(*mutex_);
    void end(std::uint32_t key) noexcept VIADUCT_REQUIRES(*mutex_);

    /// Ends what caches know about the table.
    void start_generation() noexcept VIADUCT_REQUIRES(*mutex_) {
        memory_.mapping.as<wire::RegionTable>()->generation.fetch_add(1, std::memory_order_release);
    }
    wire::RegionEntry& entry(std::uint32_t key) noexcept {
        return memory_.mapping.as<wire::RegionTable>()->entries[key % wire::max_regions];
    }

    SharedMemory memory_;
    std::unique_ptr<Mutex> mutex_ = std::make_unique<Mutex>();
    // A ring of the free keys, oldest first, so that stale keys are not reused soon.
    std::unique_ptr<std::uint32_t[]> free_ VIADUCT_GUARDED_BY(*mutex_) =
        std::make_unique_for_overwrite<std::uint32_t[]>(wire::max_regions);
    std::uint32_t free_begin_ VIADUCT_GUARDED_BY(*mutex_) = 0;
    std::uint32_t free_end_ VIADUCT_GUARDED_BY(*mutex_) = 0;
    std::uint32_t used_ VIADUCT_GUARDED_BY(*mutex_) = 0;
    std::unordered_map<std::uint32_t, BackingFile> files_
        VIADUCT_GUARDED_BY(*mutex_);  // of the regions that peers have mapped
};

}  // namespace viaduct::loopback
