// SPDX-License-Identifier: BSD-3-Clause
#include "backends/loopback/region_table.hpp"

#include <fcntl.h>

#include "backends/loopback/backing.hpp"

namespace viaduct::loopback {
namespace {

constexpr std::uint32_t key_step = wire::max_regions;  // the upper half of a key counts how often an entry was reused

std::uint64_t rights_of(std::uint32_t domain, std::uint32_t flags) noexcept {
    return std::uint64_t{domain} << 32 | flags;
}

}  // namespace

Result<OwnRegionTable> OwnRegionTable::create() {
    auto memory = SharedMemory::create("viaduct-regions", sizeof(wire::RegionTable), true);
    if (!memory.ok()) return memory.status();
    OwnRegionTable table;
    table.memory_ = std::move(*memory);
    return table;
}

void OwnRegionTable::set_rights(std::uint32_t key, std::uint32_t domain, Access access) noexcept {
    const LockGuard lock(*mutex_);
    wire::RegionEntry& slot = entry(key);
    const auto flags = static_cast<std::uint32_t>(slot.rights.load(std::memory_order_relaxed));
    slot.rights.store(rights_of(domain, support::flags_of_region(flags, access)), std::memory_order_release);
    start_generation();
}

void OwnRegionTable::remove(std::uint32_t key) noexcept {
    const LockGuard lock(*mutex_);
    end(key);
    files_.erase(key);
}

std::uint32_t OwnRegionTable::take_key() noexcept {
    if (used_ < wire::max_regions) return used_++ | key_step;
    return free_begin_ != free_end_ ? free_[free_begin_++ % wire::max_regions] : 0;
}

void OwnRegionTable::give_back(std::uint32_t key) noexcept {
    std::uint32_t next = key + key_step;
    if (next < key_step) next += key_step;  // 0 would mark entry 0 as free
    free_[free_end_++ % wire::max_regions] = next;
}

void OwnRegionTable::publish(std::uint32_t key, const RegionView& view) noexcept {
    wire::RegionEntry& slot = entry(key);
    slot.base.store(view.base, std::memory_order_relaxed);
    slot.length.store(view.length, std::memory_order_relaxed);
    slot.rights.store(rights_of(view.domain, view.flags), std::memory_order_relaxed);
    slot.only_through.store(view.only_through, std::memory_order_relaxed);
    slot.key.store(key, std::memory_order_release);
}

void OwnRegionTable::end(std::uint32_t key) noexcept {
    if (key == 0 || entry(key).key.load(std::memory_order_relaxed) != key) return;
    entry(key).key.store(0, std::memory_order_seq_cst);
    start_generation();
    give_back(key);
}

std::optional<BackingFile> OwnRegionTable::backing(std::uint32_t key) {
    const auto region = look_up(table(), key);
    if (!region || !region->is_mappable()) return std::nullopt;
    const auto duplicate = [](const BackingFile& file) {
        return BackingFile{UniqueFd(fcntl(file.fd.get(), F_DUPFD_CLOEXEC, 0)), file.offset};
    };
    {
        const LockGuard lock(*mutex_);
        if (const auto known = files_.find(key); known != files_.end()) return duplicate(known->second);
    }
    auto file = find_file_of(reinterpret_cast<const void*>(region->base), region->length);
    if (file.status().code() == Code::NoResources) return std::nullopt;  // the peer may ask again
    const LockGuard lock(*mutex_);
    wire::RegionEntry& slot = entry(key);
    if (slot.key.load(std::memory_order_relaxed) != key) return std::nullopt;  // removed during the search
    if (!file.ok()) {
        slot.rights.fetch_and(~std::uint64_t{wire::region_flags::mappable});
        return std::nullopt;
    }
    return duplicate(files_.try_emplace(key, std::move(*file)).first->second);
}

}  // namespace viaduct::loopback
