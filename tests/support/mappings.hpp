// SPDX-License-Identifier: BSD-3-Clause
// Queries the address space of this process.
#pragma once

#include <cstdint>

namespace viaduct::testing {

struct Mapping {
    bool complete = false;  ///< every byte of the range is mapped and readable
    bool writable = false;  ///< every byte is writable as well
};

/// Looks up a range in /proc/self/maps.
Mapping find_mapping(const void* address, std::uint64_t length);

}  // namespace viaduct::testing
