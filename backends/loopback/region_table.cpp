// SPDX-License-Identifier: BSD-3-Clause
#include "backends/loopback/region_table.hpp"

#include <fcntl.h>

#include "backends/loopback/backing.hpp"
#include "backends/loopback/doorbell.hpp"

namespace viaduct::loopback {
namespace {

constexpr std::uint32_t key_step = wire::max_regions;  // the upper half of a key counts the uses of an entry

/// All flags of a region from what its memory is and what its owner allows.
std::uint32_t region_flags(std::uint32_t memory, Access access) noexcept {
    const bool local_write = access.local_write && (memory & wire::region_flags::writable_pages) != 0;
    return memory | (local_write ? wire::region_flags::local_write : 0) |
           (access.remote_write ? wire::region_flags::remote_write : 0) |
           (access.remote_read ? wire::region_flags::remote_read : 0);
}

std::uint64_t rights_of(std::uint32_t domain, std::uint32_t flags) noexcept {
    return std::uint64_t{domain} << 32 | flags;
}

}  // namespace

Result<OwnRegionTable> OwnRegionTable::create() {
    auto memory = create_memfd("viaduct-regions", sizeof(wire::RegionTable));
    if (!memory.ok()) return memory.status();
    auto mapping = Mapping::map(memory->get(), sizeof(wire::RegionTable), PROT_READ | PROT_WRITE);
    if (!mapping.ok()) return mapping.status();
    if (const Status status = seal_memfd(memory->get(), true); !status.ok()) return status;
    OwnRegionTable table;
    table.memory_ = std::move(*memory);
    table.mapping_ = std::move(*mapping);
    return table;
}

Result<std::uint32_t> OwnRegionTable::add(void* address, std::uint64_t length, std::uint32_t domain, Access access) {
    auto memory = inspect_memory(address, length);
    if (!memory.ok()) return memory.status();
    const std::lock_guard lock(*mutex_);
    std::uint32_t key = 0;
    if (used_ < wire::max_regions) {
        key = used_++ | key_step;
    } else if (!free_.empty()) {
        key = free_.front();
        free_.pop_front();
    } else {
        return Status(Code::NoResources, "all region keys are in use");
    }
    std::uint32_t flags = memory->writable ? wire::region_flags::writable_pages : 0;
    if (memory->file.fd) {
        flags |= wire::region_flags::mappable;
        files_[key] = std::move(memory->file);
    }
    wire::RegionEntry& slot = entry(key);
    slot.base.store(reinterpret_cast<std::uint64_t>(address), std::memory_order_relaxed);
    slot.length.store(length, std::memory_order_relaxed);
    slot.rights.store(rights_of(domain, region_flags(flags, access)), std::memory_order_relaxed);
    slot.key.store(key, std::memory_order_release);
    return key;
}

void OwnRegionTable::set_rights(std::uint32_t key, std::uint32_t domain, Access access) noexcept {
    const std::lock_guard lock(*mutex_);
    wire::RegionEntry& slot = entry(key);
    const auto kept = static_cast<std::uint32_t>(slot.rights.load(std::memory_order_relaxed)) &
                      (wire::region_flags::writable_pages | wire::region_flags::mappable);
    slot.rights.store(rights_of(domain, region_flags(kept, access)), std::memory_order_release);
}

void OwnRegionTable::remove(std::uint32_t key) noexcept {
    const std::lock_guard lock(*mutex_);
    entry(key).key.store(0, std::memory_order_seq_cst);
    files_.erase(key);
    std::uint32_t next = key + key_step;
    if (next < key_step) next += key_step;  // 0 would make entry 0 look free
    free_.push_back(next);
}

std::optional<BackingFile> OwnRegionTable::backing(std::uint32_t key) noexcept {
    const std::lock_guard lock(*mutex_);
    const auto found = files_.find(key);
    if (found == files_.end()) return std::nullopt;
    return BackingFile{UniqueFd(fcntl(found->second.fd.get(), F_DUPFD_CLOEXEC, 0)), found->second.offset};
}

}  // namespace viaduct::loopback
