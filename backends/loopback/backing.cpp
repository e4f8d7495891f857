// SPDX-License-Identifier: BSD-3-Clause
#include "backends/loopback/backing.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cinttypes>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <string_view>

#include "backends/loopback/doorbell.hpp"

namespace viaduct::loopback {
namespace {

/// A mapping of this process.
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

/// Parses a line of /proc/self/maps. Returns false if its area ends at or before the address.
bool parse(const char* line, std::uint64_t address, Area& area) {
    char* dash = nullptr;
    area.begin = std::strtoull(line, &dash, 16);
    if (*dash != '-') return false;
    char* rest = nullptr;
    area.end = std::strtoull(dash + 1, &rest, 16);
    if (area.end <= address) return false;
    std::array<char, 5> rights{};
    unsigned major = 0;
    unsigned minor = 0;
    unsigned long inode = 0;
    int path = 0;
    if (std::sscanf(rest, " %4s %" SCNx64 " %x:%x %lu %n", rights.data(), &area.offset, &major, &minor, &inode, &path) <
        5)
        return false;
    area.device = makedev(major, minor);
    area.inode = inode;
    area.readable = rights[0] == 'r';
    area.writable = rights[1] == 'w';
    area.shared = rights[3] == 's';
    area.path = rest + path;
    if (!area.path.empty() && area.path.back() == '\n') area.path.pop_back();
    return true;
}

/// The argument of ioctl(2) with PROCMAP_QUERY (Linux 6.11; older headers lack it).
struct MapQuery {
    std::uint64_t size = sizeof(MapQuery);
    std::uint64_t flags = 0;  // find the area that contains the address
    std::uint64_t address = 0;
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::uint64_t rights = 0;
    std::uint64_t page_bytes = 0;
    std::uint64_t offset = 0;
    std::uint64_t inode = 0;
    std::uint32_t major = 0;
    std::uint32_t minor = 0;
    std::uint32_t name_bytes = 0;
    std::uint32_t build_id_bytes = 0;
    std::uint64_t name = 0;
    std::uint64_t build_id = 0;
};
static_assert(sizeof(MapQuery) == 104);
constexpr unsigned long map_query = _IOWR('f', 17, MapQuery);
constexpr std::uint64_t map_readable = 1;
constexpr std::uint64_t map_writable = 2;
constexpr std::uint64_t map_shared = 8;

/// The mappings of this process, queried in ascending order of addresses.
class Areas {
public:
    Areas() : fd_(open("/proc/self/maps", O_RDONLY | O_CLOEXEC)) {}
    ~Areas() {
        if (text_ != nullptr) std::fclose(text_);
    }
    Areas(const Areas&) = delete;
    Areas& operator=(const Areas&) = delete;

    bool opened() const noexcept { return static_cast<bool>(fd_); }

    /// Finds the area that contains the address. Returns false if the address is not mapped.
    bool find(std::uint64_t address, Area& area) {
        if (text_ != nullptr) return read(address, area);
        std::array<char, PATH_MAX> name{};
        MapQuery query;
        query.address = address;
        query.name_bytes = name.size();
        query.name = reinterpret_cast<std::uint64_t>(name.data());
        if (ioctl(fd_.get(), map_query, &query) != 0) {
            if (errno == ENOENT) return false;
            // The kernel is too old, or the name is too long.
            text_ = std::fopen("/proc/self/maps", "re");
            if (text_ == nullptr) throw std::bad_alloc();  // out of memory or descriptors
            (void)std::setvbuf(text_, nullptr, _IOFBF, text_bytes);
            return read(address, area);
        }
        area = {.begin = query.begin,
                .end = query.end,
                .offset = query.offset,
                .device = makedev(query.major, query.minor),
                .inode = query.inode,
                .readable = (query.rights & map_readable) != 0,
                .writable = (query.rights & map_writable) != 0,
                .shared = (query.rights & map_shared) != 0,
                .path = name.data()};
        return true;
    }

private:
    static constexpr std::size_t text_bytes = 16384;

    bool read(std::uint64_t address, Area& area) {
        std::array<char, 4608> line;
        while (std::fgets(line.data(), line.size(), text_) != nullptr)
            if (parse(line.data(), address, area)) return area.begin <= address;
        return false;
    }

    UniqueFd fd_;
    std::FILE* text_ = nullptr;  // used if the kernel does not support queries
};

/// Opens a path if it refers to the file of the area. (On some file systems the device number in the maps is not that
/// of stat(2), so the inode and the path are compared.)
UniqueFd open_file_of(const Area& area, const char* path) noexcept {
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
UniqueFd open_held_file(const Area& area) noexcept {
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

bool is_memfd(const Area& area) noexcept { return area.path.starts_with("/memfd:"); }

/// The link is fast, but needs the capability CAP_CHECKPOINT_RESTORE.
UniqueFd open_sealed_memfd(const Area& area) noexcept {
    std::array<char, 64> link{};
    std::snprintf(link.data(), link.size(), "/proc/self/map_files/%" PRIx64 "-%" PRIx64, area.begin, area.end);
    UniqueFd fd = open_file_of(area, link.data());
    if (!fd) fd = open_held_file(area);
    return fd && cannot_shrink(fd.get()) ? std::move(fd) : UniqueFd();
}

/// What inspect() finds about a range.
struct Inspected {
    MemoryInfo info;
    Area first;
};

Result<Inspected> inspect(const void* address, std::uint64_t length) {
    const auto begin = reinterpret_cast<std::uint64_t>(address);
    const std::uint64_t end = begin + length;
    Areas areas;
    if (!areas.opened()) return Status::from_errno(errno, "/proc/self/maps");

    Inspected range{.info = {.writable = true, .has_file = false, .one_memfd = true}, .first = {}};
    MemoryInfo& info = range.info;
    const Area& first = range.first;
    Area area;
    std::uint64_t reached = begin;
    while (reached < end && areas.find(reached, area) && area.readable) {
        if (reached == begin) range.first = area;
        const bool continues = area.shared && area.inode != 0 && area.inode == first.inode &&
                               area.device == first.device && area.offset - first.offset == area.begin - first.begin;
        info.one_memfd = info.one_memfd && continues && is_memfd(area);
        info.writable = info.writable && area.writable;
        info.has_file = info.has_file || (area.shared && area.inode != 0);
        reached = area.end;
    }
    if (reached < end) return Status(Code::InvalidParameter, "the memory is not mapped");
    return range;
}

}  // namespace

Result<MemoryInfo> inspect_memory(const void* address, std::uint64_t length) {
    auto range = inspect(address, length);
    if (!range.ok()) return range.status();
    return range->info;
}

BackingFile find_file_of(const void* address, std::uint64_t length) {
    auto range = inspect(address, length);
    if (!range.ok() || !range->info.one_memfd) return {};
    return {.fd = open_sealed_memfd(range->first),
            .offset = range->first.offset + (reinterpret_cast<std::uint64_t>(address) - range->first.begin)};
}

}  // namespace viaduct::loopback
