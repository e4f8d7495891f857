// SPDX-License-Identifier: BSD-3-Clause
#include "backends/support/memory_map.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>

#include <array>
#include <cerrno>
#include <cinttypes>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>

#include "core/base/unique_fd.hpp"

namespace viaduct::support {
namespace {

/// Parses a line of /proc/self/maps. Returns false if its area ends at or before the address.
bool parse(const char* line, std::uint64_t address, MappedArea& area) {
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
    bool opened() const noexcept { return static_cast<bool>(fd_); }

    /// Finds the area that contains the address. Returns false if the address is not mapped.
    bool find(std::uint64_t address, MappedArea& area) {
        if (text_ != nullptr) return read(address, area);
        std::array<char, PATH_MAX> name{};
        MapQuery query{
            .address = address, .name_bytes = name.size(), .name = reinterpret_cast<std::uint64_t>(name.data())};
        if (ioctl(fd_.get(), map_query, &query) != 0) {
            if (errno == ENOENT) return false;
            // The kernel is too old, or the name is too long.
            text_.reset(std::fopen("/proc/self/maps", "re"));
            if (text_ == nullptr) throw std::bad_alloc();  // out of memory or descriptors
            (void)std::setvbuf(text_.get(), nullptr, _IOFBF, text_bytes);
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

    bool read(std::uint64_t address, MappedArea& area) {
        std::array<char, 4608> line;
        while (std::fgets(line.data(), line.size(), text_.get()) != nullptr)
            if (parse(line.data(), address, area)) return area.begin <= address;
        return false;
    }

    UniqueFd fd_{open("/proc/self/maps", O_RDONLY | O_CLOEXEC)};
    // Used if the kernel does not support queries.
    std::unique_ptr<std::FILE, int (*)(std::FILE*)> text_{nullptr, std::fclose};
};

}  // namespace

bool is_memfd(const MappedArea& area) noexcept { return area.path.starts_with("/memfd:"); }

Result<MemoryInfo> inspect_memory(const void* address, std::uint64_t length) {
    const auto begin = reinterpret_cast<std::uint64_t>(address);
    const std::uint64_t end = begin + length;
    Areas areas;
    if (!areas.opened()) return Status::from_errno(errno, "/proc/self/maps");

    MemoryInfo info{.writable = true, .has_file = false, .one_file = true, .one_memfd = false, .first = {}};
    const MappedArea& first = info.first;
    MappedArea area;
    std::uint64_t reached = begin;
    while (reached < end && areas.find(reached, area) && area.readable) {
        if (reached == begin) info.first = area;
        info.one_file = info.one_file && area.shared && area.inode != 0 && area.inode == first.inode &&
                        area.device == first.device && area.offset - first.offset == area.begin - first.begin;
        info.writable = info.writable && area.writable;
        info.has_file = info.has_file || (area.shared && area.inode != 0);
        reached = area.end;
    }
    if (reached < end) return Status(Code::InvalidParameter, "the memory is not mapped");
    info.one_memfd = info.one_file && is_memfd(first);
    return info;
}

}  // namespace viaduct::support
