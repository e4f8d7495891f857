// SPDX-License-Identifier: BSD-3-Clause
// Inspects how memory of this process is mapped.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "viaduct/status.hpp"

namespace viaduct::support {

/// A mapping of this process.
struct MappedArea {
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

/// What is known about a range.
struct MemoryInfo {
    bool writable = false;   ///< every page of the range is writable
    bool has_file = false;   ///< part of the range is a shared mapping of a file
    bool one_file = false;   ///< the range is a shared mapping of one file
    bool one_memfd = false;  ///< the range is a shared mapping of one memfd
    MappedArea first;        ///< contains the first byte
};

/// InvalidParameter: part of the range is not mapped or not readable. Throws std::bad_alloc.
Result<MemoryInfo> inspect_memory(const void* address, std::uint64_t length);

bool is_memfd(const MappedArea& area) noexcept;

}  // namespace viaduct::support
