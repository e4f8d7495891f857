// SPDX-License-Identifier: BSD-3-Clause
#include "backends/support/mapped_memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include "core/base/waiting.hpp"

namespace viaduct::support {
namespace {

#ifndef MADV_POPULATE_READ  // since Linux 5.14
constexpr int MADV_POPULATE_READ = 22;
constexpr int MADV_POPULATE_WRITE = 23;
#endif

/// With MS_ASYNC, msync(2) writes nothing and only checks that the whole range is mapped. On kernels that cannot check
/// each page, this is the only check.
bool is_there(std::uint64_t first_page, std::uint64_t pages, std::uint64_t page_bytes, Probe probe) noexcept {
    auto* const begin = reinterpret_cast<void*>(first_page * page_bytes);
    const CancellationHold hold;
    if (msync(begin, pages * page_bytes, MS_ASYNC) != 0) return false;
    const int advice = probe == Probe::Writing ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;
    if (madvise(begin, pages * page_bytes, advice) == 0) return true;
    auto* const known = reinterpret_cast<void*>(reinterpret_cast<std::uint64_t>(&begin) / page_bytes * page_bytes);
    return madvise(known, page_bytes, advice) != 0;
}

std::uint64_t usable_bytes(const Sge& piece, std::uint64_t page_bytes, Probe probe) noexcept {
    if (piece.length == 0) return 0;
    const auto begin = reinterpret_cast<std::uint64_t>(piece.address);
    const std::uint64_t first = begin / page_bytes;
    const std::uint64_t count = (begin + piece.length - 1) / page_bytes - first + 1;
    if (is_there(first, count, page_bytes, probe)) return piece.length;
    std::uint64_t mapped = 0;  // number of pages known to be mapped
    for (std::uint64_t missing = count; missing - mapped > 1;) {
        const std::uint64_t middle = mapped + (missing - mapped) / 2;
        (is_there(first, middle, page_bytes, probe) ? mapped : missing) = middle;
    }
    const std::uint64_t end = (first + mapped) * page_bytes;
    return end > begin ? end - begin : 0;
}

}  // namespace

std::uint64_t usable_bytes(std::span<const Sge> pieces, Probe probe) noexcept {
    static const auto page_bytes = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
    std::uint64_t total = 0;
    for (const Sge& piece : pieces) {
        const std::uint64_t mapped = usable_bytes(piece, page_bytes, probe);
        total += mapped;
        if (mapped != piece.length) break;
    }
    return total;
}

}  // namespace viaduct::support
