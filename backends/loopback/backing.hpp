// SPDX-License-Identifier: BSD-3-Clause
// Finds out what stands behind a range of this process's memory.
#pragma once

#include <cstdint>

#include "backends/loopback/region_table.hpp"

namespace viaduct::loopback {

struct MemoryInfo {
    bool writable = false;  ///< every page of the range
    bool has_file = false;  ///< a part of the range belongs to a file, by a shared mapping
    BackingFile file;       ///< without descriptor where peers cannot map the same memory
};

/// InvalidParameter: part of the range is not mapped or not readable.
Result<MemoryInfo> inspect_memory(const void* address, std::uint64_t length);

}  // namespace viaduct::loopback
