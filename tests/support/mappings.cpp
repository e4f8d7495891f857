// SPDX-License-Identifier: BSD-3-Clause
#include "tests/support/mappings.hpp"

#include <cinttypes>
#include <cstdio>
#include <memory>

namespace viaduct::testing {

Mapping find_mapping(const void* address, std::uint64_t length) {
    std::uint64_t at = reinterpret_cast<std::uintptr_t>(address);
    const std::uint64_t end = at + length;
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> maps(std::fopen("/proc/self/maps", "re"), std::fclose);
    Mapping found{.complete = false, .writable = true};
    char line[512];
    while (maps && at < end && std::fgets(line, sizeof line, maps.get()) != nullptr) {
        std::uint64_t first = 0;
        std::uint64_t last = 0;
        char rights[5] = {};
        if (std::sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s", &first, &last, rights) != 3 || last <= at) continue;
        if (first > at || rights[0] != 'r') break;
        if (rights[1] != 'w') found.writable = false;
        at = last;
    }
    found.complete = at >= end;
    return found;
}

}  // namespace viaduct::testing
