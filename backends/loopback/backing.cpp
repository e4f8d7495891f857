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
#include <utility>

#include "backends/loopback/doorbell.hpp"
#include "backends/support/memory_map.hpp"

namespace viaduct::loopback {
namespace {

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

}  // namespace

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

}  // namespace viaduct::loopback
