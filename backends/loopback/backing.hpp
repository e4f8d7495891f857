// SPDX-License-Identifier: BSD-3-Clause
// Finds the files that memory of this process is mapped from.
#pragma once

#include <cstdint>

#include "backends/loopback/region_table.hpp"

namespace viaduct::loopback {

/// Finds the memfd that the range is mapped from. NoResources: it is not known, for instance because no descriptor is
/// free. Other errors: peers cannot map the same memory. Takes milliseconds in a process with thousands of descriptors.
Result<BackingFile> find_file_of(const void* address, std::uint64_t length);

}  // namespace viaduct::loopback
