// SPDX-License-Identifier: BSD-3-Clause
#include "backends/loopback/region_table.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

namespace viaduct::loopback {
namespace {

constexpr std::uint32_t key_step = wire::max_regions;  // the upper half of a key counts how often an entry was reused

std::uint64_t rights_of(std::uint32_t domain, std::uint32_t flags) noexcept {
    return std::uint64_t{domain} << 32 | flags;
}

// ---- The files of regions ----------------------------------------------------------------------------------------

constexpr Status not_it{Code::InvalidParameter, "it is another file"};

/// Reports whether it may be found later.
bool is_unknown(const Result<UniqueFd>& file) noexcept { return file.status().code() == Code::NoResources; }

/// Opens a path if it refers to the file of the area. (On some file systems the device number in the maps is not that
/// of stat(2), so the inode and the path are compared.)
Result<UniqueFd> open_file_of(const support::MappedArea& area, const char* path) noexcept {
    const auto is_it = [&](const struct stat& info) { return info.st_ino == area.inode && S_ISREG(info.st_mode); };
    struct stat info {};
    if (stat(path, &info) != 0) return Status::from_errno(errno, "stat of a region's file");
    if (!is_it(info)) return not_it;
    UniqueFd fd(open(path, (area.writable ? O_RDWR : O_RDONLY) | O_CLOEXEC));
    if (!fd) return Status::from_errno(errno, "opening of a region's file");
    if (fstat(fd.get(), &info) != 0 || !is_it(info)) return not_it;
    return fd;
}

/// Returns a number above those of all descriptors of the process.
Result<int> descriptor_limit() noexcept {
    constexpr std::string_view label = "FDSize:";
    std::array<char, 2048> text;
    const UniqueFd file(open("/proc/self/status", O_RDONLY | O_CLOEXEC));
    if (!file) return Status::from_errno(errno, "/proc/self/status");
    const ssize_t size = read(file.get(), text.data(), text.size() - 1);
    if (size <= 0) return 0;
    text[static_cast<std::size_t>(size)] = '\0';
    const char* found = std::strstr(text.data(), label.data());
    return found == nullptr ? 0 : static_cast<int>(std::strtol(found + label.size(), nullptr, 10));
}

/// Looks for the file among the open descriptors of the process. Memory is usually created before or after all
/// connections, so the search starts at both ends. Reading /proc/self/fd takes several times as long.
Result<UniqueFd> open_held_file(const support::MappedArea& area) noexcept {
    const auto open_if_same = [&area](int fd) -> Result<UniqueFd> {
        struct stat info {};
        if (fstat(fd, &info) != 0 || info.st_dev != area.device || info.st_ino != area.inode) return not_it;
        std::array<char, 64> path{};
        std::snprintf(path.data(), path.size(), "/proc/self/fd/%d", fd);
        return open_file_of(area, path.data());
    };
    const auto limit = descriptor_limit();
    if (!limit.ok()) return limit.status();
    int low = 0;
    for (int high = limit.value() - 1; low <= high; ++low, --high) {
        for (const int fd : {low, high}) {
            auto found = open_if_same(fd);
            if (found.ok() || is_unknown(found)) return found;
        }
    }
    return not_it;
}

/// The link is fast, but needs the capability CAP_CHECKPOINT_RESTORE.
Result<UniqueFd> open_sealed_memfd(const support::MappedArea& area) noexcept {
    std::array<char, 64> link{};
    std::snprintf(link.data(), link.size(), "/proc/self/map_files/%" PRIx64 "-%" PRIx64, area.begin, area.end);
    auto fd = open_file_of(area, link.data());
    if (!fd.ok() && !is_unknown(fd)) fd = open_held_file(area);
    if (fd.ok() && !cannot_shrink(fd->get())) return not_it;
    return fd;
}

/// Finds the memfd that the range is mapped from. NoResources: it is not known, for instance because no descriptor is
/// free. Other errors: peers cannot map the same memory. Takes milliseconds in a process with thousands of descriptors.
Result<BackingFile> find_file_of(const void* address, std::uint64_t length) {
    auto memory = support::inspect_memory(address, length);
    if (!memory.ok()) return memory.status();
    if (!memory->one_memfd) return not_it;
    const support::MappedArea& first = memory->first;
    auto fd = open_sealed_memfd(first);
    if (!fd.ok()) return fd.status();
    return BackingFile{.fd = std::move(*fd),
                       .offset = first.offset + (reinterpret_cast<std::uint64_t>(address) - first.begin)};
}

}  // namespace

// ---- The table ---------------------------------------------------------------------------------------------------

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
