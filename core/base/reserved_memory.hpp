// SPDX-License-Identifier: BSD-3-Clause
// Address space for tables that grow in place.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <new>

namespace viaduct {

/// Maps zeroed memory of which only the pages that are used take up memory. Release it with munmap(2). Throws
/// std::bad_alloc.
inline void* reserve_memory(std::size_t bytes) {
    void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    return memory;
}

}  // namespace viaduct
