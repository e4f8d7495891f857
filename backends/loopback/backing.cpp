// SPDX-License-Identifier: BSD-3-Clause
#include "backends/loopback/backing.hpp"

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

#include "backends/loopback/doorbell.hpp"
#include "backends/support/memory_map.hpp"

namespace viaduct::loopback {
namespace {

/// Opens a path if it refers to the file of the area. (On some file systems the device number in the maps is not that
/// of stat(2), so the inode and the path are compared.)
UniqueFd open_file_of(const support::MappedArea& area, const char* path) noexcept {
    const auto is_it = [&](const struct stat& info) { return info.st_ino == area.inode && S_ISREG(info.st_mode); };
    struct stat info {};
    if (stat(path, &info) != 0 || !is_it(info)) return {};
    UniqueFd fd(open(path, (area.writable ? O_RDWR : O_RDONLY) | O_CLOEXEC));
    if (!fd || fstat(fd.get(), &info) != 0 || !is_it(info)) return {};
    return fd;
}

/// Returns a number above those of all descriptors of the process.
int descriptor_limit() noexcept {
    constexpr std::string_view label = "FDSize:";
    std::array<char, 2048> text;
    const UniqueFd file(open("/proc/self/status", O_RDONLY | O_CLOEXEC));
    const ssize_t size = read(file.get(), text.data(), text.size() - 1);
    if (size <= 0) return 0;
    text[static_cast<std::size_t>(size)] = '\0';
    const char* found = std::strstr(text.data(), label.data());
    return found == nullptr ? 0 : static_cast<int>(std::strtol(found + label.size(), nullptr, 10));
}

/// Looks for the file among the open descriptors of the process. Memory is usually created before or after all
/// connections, so the search starts at both ends. Reading /proc/self/fd takes several times as long.
UniqueFd open_held_file(const support::MappedArea& area) noexcept {
    const auto open_if_same = [&area](int fd) -> UniqueFd {
        struct stat info {};
        if (fstat(fd, &info) != 0 || info.st_dev != area.device || info.st_ino != area.inode) return {};
        std::array<char, 64> path{};
        std::snprintf(path.data(), path.size(), "/proc/self/fd/%d", fd);
        return open_file_of(area, path.data());
    };
    int low = 0;
    for (int high = descriptor_limit() - 1; low <= high; ++low, --high) {
        if (UniqueFd found = open_if_same(low)) return found;
        if (UniqueFd found = open_if_same(high)) return found;
    }
    return {};
}

/// The link is fast, but needs the capability CAP_CHECKPOINT_RESTORE.
UniqueFd open_sealed_memfd(const support::MappedArea& area) noexcept {
    std::array<char, 64> link{};
    std::snprintf(link.data(), link.size(), "/proc/self/map_files/%" PRIx64 "-%" PRIx64, area.begin, area.end);
    UniqueFd fd = open_file_of(area, link.data());
    if (!fd) fd = open_held_file(area);
    return fd && cannot_shrink(fd.get()) ? std::move(fd) : UniqueFd();
}

}  // namespace

BackingFile find_file_of(const void* address, std::uint64_t length) {
    auto memory = support::inspect_memory(address, length);
    if (!memory.ok() || !memory->one_memfd) return {};
    const support::MappedArea& first = memory->first;
    return {.fd = open_sealed_memfd(first),
            .offset = first.offset + (reinterpret_cast<std::uint64_t>(address) - first.begin)};
}

}  // namespace viaduct::loopback
