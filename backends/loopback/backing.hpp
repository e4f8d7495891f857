// SPDX-License-Identifier: BSD-3-Clause
// Inspects the mappings of a range of this process's memory.
#pragma once

#include <cstdint>

#include "backends/loopback/region_table.hpp"

namespace viaduct::loopback {

struct MemoryInfo {
    bool writable = false;  ///< every page of the range is writable
    bool has_file = false;  ///< part of the range is a shared mapping of a file
    BackingFile file;       ///< without a descriptor if peers cannot map the same memory
};

/// InvalidParameter: part of the range is not mapped or not readable.
Result<MemoryInfo> inspect_memory(const void* address, std::uint64_t length);

}  // namespace viaduct::loopback
