// SPDX-License-Identifier: BSD-3-Clause
// What the system says about the address space of this process.
#pragma once

#include <cstdint>

namespace viaduct::testing {

struct Mapping {
    bool complete = false;  ///< every byte of the range is mapped and readable
    bool writable = false;  ///< every byte is writable as well
};

/// Looks a range up in /proc/self/maps.
Mapping find_mapping(const void* address, std::uint64_t length);

}  // namespace viaduct::testing
