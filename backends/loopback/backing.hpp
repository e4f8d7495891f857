// SPDX-License-Identifier: BSD-3-Clause
// Inspects the mappings of a range of this process's memory.
#pragma once

#include <cstdint>

#include "backends/loopback/region_table.hpp"

namespace viaduct::loopback {

struct MemoryInfo {
    bool writable = false;   ///< every page of the range is writable
    bool has_file = false;   ///< part of the range is a shared mapping of a file
    bool one_memfd = false;  ///< the range is a shared mapping of one memfd, which peers may be able to map, too
};

/// InvalidParameter: part of the range is not mapped or not readable.
Result<MemoryInfo> inspect_memory(const void* address, std::uint64_t length);

/// Finds the memfd that the range is mapped from. Without a descriptor: peers cannot map the same memory. Takes
/// milliseconds in a process with thousands of descriptors.
BackingFile find_file_of(const void* address, std::uint64_t length);

}  // namespace viaduct::loopback
