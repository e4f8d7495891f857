// SPDX-License-Identifier: BSD-3-Clause
#include "backends/loopback/backing.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <array>
#include <cinttypes>
#include <cstdio>
#include <memory>
#include <string>

#include "backends/loopback/doorbell.hpp"

namespace viaduct::loopback {
namespace {

/// A line of /proc/self/maps.
struct Area {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::uint64_t offset = 0;
    dev_t device = 0;
    ino_t inode = 0;
    bool readable = false;
    bool writable = false;
    bool shared = false;
    std::string path;
};

bool parse(const char* line, Area& area) {
    std::array<char, 5> rights{};
    unsigned major = 0;
    unsigned minor = 0;
    unsigned long inode = 0;
    int path = 0;
    if (std::sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %lu %n", &area.begin, &area.end, rights.data(),
                    &area.offset, &major, &minor, &inode, &path) < 7)
        return false;
    area.device = makedev(major, minor);
    area.inode = inode;
    area.readable = rights[0] == 'r';
    area.writable = rights[1] == 'w';
    area.shared = rights[3] == 's';
    area.path = line + path;
    if (!area.path.empty() && area.path.back() == '\n') area.path.pop_back();
    return true;
}

/// Opens a path anew if the file of the area is behind it. (The device number in the maps is not that of stat(2) on
/// every file system: inode and path decide.)
UniqueFd open_file_of(const Area& area, const char* path) noexcept {
    const auto is_it = [&](const struct stat& info) { return info.st_ino == area.inode && S_ISREG(info.st_mode); };
    struct stat info {};
    if (stat(path, &info) != 0 || !is_it(info)) return {};
    UniqueFd fd(open(path, (area.writable ? O_RDWR : O_RDONLY) | O_CLOEXEC));
    if (!fd || fstat(fd.get(), &info) != 0 || !is_it(info)) return {};
    return fd;
}

/// By way of a descriptor that the process holds.
UniqueFd open_held_file(const Area& area) noexcept {
    DIR* directory = opendir("/proc/self/fd");
    if (directory == nullptr) return {};
    UniqueFd found;
    while (const dirent* item = readdir(directory)) {
        std::array<char, 64> path{};
        std::snprintf(path.data(), path.size(), "/proc/self/fd/%.32s", item->d_name);
        struct stat info {};
        if (stat(path.data(), &info) != 0 || info.st_dev != area.device) continue;
        found = open_file_of(area, path.data());
        if (found) break;
    }
    closedir(directory);
    return found;
}

/// Only memfds can be sealed; other files need not be looked for.
UniqueFd open_sealed_memfd(const Area& area) noexcept {
    if (!area.path.starts_with("/memfd:")) return {};
    UniqueFd fd = open_held_file(area);
    if (!fd) {
        std::array<char, 64> link{};
        std::snprintf(link.data(), link.size(), "/proc/self/map_files/%" PRIx64 "-%" PRIx64, area.begin, area.end);
        fd = open_file_of(area, link.data());
    }
    return fd && cannot_shrink(fd.get()) ? std::move(fd) : UniqueFd();
}

}  // namespace

Result<MemoryInfo> inspect_memory(const void* address, std::uint64_t length) {
    const auto begin = reinterpret_cast<std::uint64_t>(address);
    const std::uint64_t end = begin + length;
    if (address == nullptr || length == 0 || end < begin)
        return Status(Code::InvalidParameter, "empty or wrapping range");
    const auto close = [](std::FILE* file) { std::fclose(file); };
    const std::unique_ptr<std::FILE, decltype(close)> maps(std::fopen("/proc/self/maps", "re"));
    if (maps == nullptr) return Status::from_errno(errno, "/proc/self/maps");

    MemoryInfo info{.writable = true, .has_file = false, .file = {}};
    Area first;
    bool one_file = true;
    std::uint64_t reached = begin;
    std::array<char, 4608> line;
    while (reached < end && std::fgets(line.data(), line.size(), maps.get()) != nullptr) {
        Area area;
        if (!parse(line.data(), area) || area.end <= reached) continue;
        if (area.begin > reached || !area.readable) break;
        if (reached == begin) first = area;
        const bool continues = area.shared && area.inode != 0 && area.inode == first.inode &&
                               area.device == first.device && area.offset - first.offset == area.begin - first.begin;
        one_file = one_file && continues;
        info.writable = info.writable && area.writable;
        info.has_file = info.has_file || (area.shared && area.inode != 0);
        reached = area.end;
    }
    if (reached < end) return Status(Code::InvalidParameter, "memory that is not mapped");
    if (one_file) {
        info.file.fd = open_sealed_memfd(first);
        info.file.offset = first.offset + (begin - first.begin);
    }
    return info;
}

}  // namespace viaduct::loopback
