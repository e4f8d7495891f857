// SPDX-License-Identifier: BSD-3-Clause
#include "backends/loopback/mapped_memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

namespace viaduct::loopback {
namespace {

/// With MS_ASYNC, msync(2) writes nothing: it only looks whether the whole range is mapped.
bool is_mapped(std::uint64_t first_page, std::uint64_t pages, std::uint64_t page_bytes) noexcept {
    return msync(reinterpret_cast<void*>(first_page * page_bytes), pages * page_bytes, MS_ASYNC) == 0;
}

std::uint64_t mapped_bytes(const Sge& piece, std::uint64_t page_bytes) noexcept {
    if (piece.length == 0) return 0;
    const auto begin = reinterpret_cast<std::uint64_t>(piece.address);
    const std::uint64_t first = begin / page_bytes;
    const std::uint64_t count = (begin + piece.length - 1) / page_bytes - first + 1;
    if (is_mapped(first, count, page_bytes)) return piece.length;
    std::uint64_t mapped = 0;  // pages known to be mapped
    for (std::uint64_t missing = count; missing - mapped > 1;) {
        const std::uint64_t middle = mapped + (missing - mapped) / 2;
        (is_mapped(first, middle, page_bytes) ? mapped : missing) = middle;
    }
    const std::uint64_t end = (first + mapped) * page_bytes;
    return end > begin ? end - begin : 0;
}

}  // namespace

std::uint64_t mapped_bytes(std::span<const Sge> pieces) noexcept {
    static const auto page_bytes = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
    std::uint64_t total = 0;
    for (const Sge& piece : pieces) {
        const std::uint64_t mapped = mapped_bytes(piece, page_bytes);
        total += mapped;
        if (mapped != piece.length) break;
    }
    return total;
}

}  // namespace viaduct::loopback
