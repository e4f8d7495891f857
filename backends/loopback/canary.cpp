// SPDX-License-Identifier: BSD-3-Clause
#include "backends/loopback/canary.hpp"

#include <sys/mman.h>

#include <array>
#include <cerrno>
#include <span>

#include "backends/support/random.hpp"

namespace viaduct::loopback {
namespace {

constexpr std::size_t page_bytes = sizeof(wire::Canary);

/// Address ranges without mappings by default: between the low and the high mappings of programs and, for the thread
/// sanitizer, just below the high mappings.
struct Range {
    std::uint64_t begin;
    std::uint64_t end;
};
constexpr std::array ranges{Range{0x110000000000, 0x500000000000}, Range{0x7e9000000000, 0x7ef000000000}};
constexpr int max_tries = 8;

/// The address is a hint that the kernel follows if it is free.
void* map_near(std::uint64_t place) noexcept {
    return mmap(reinterpret_cast<void*>(place), page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/// Returns null if no free address is found.
void* map_within(const Range& range) noexcept {
    for (int tries = 0; tries < max_tries; ++tries) {
        std::uint64_t number = 0;
        if (!support::fill_random(std::as_writable_bytes(std::span(&number, 1))).ok()) break;
        const std::uint64_t place = range.begin + number % ((range.end - range.begin) / page_bytes) * page_bytes;
        void* const page = map_near(place);
        if (page == reinterpret_cast<void*>(place)) return page;
        if (page != MAP_FAILED) munmap(page, page_bytes);
    }
    return nullptr;
}

/// If no random address in the ranges is available, lets the kernel choose one, which few other programs use.
void* map_somewhere() noexcept {
    for (const Range& range : ranges)
        if (void* const page = map_within(range)) return page;
    return map_near(0);
}

}  // namespace

Result<Canary> Canary::create(std::uint64_t token) noexcept {
    void* const page = map_somewhere();
    if (page == MAP_FAILED) return Status::from_errno(errno, "mmap of a page");
    Canary canary;
    canary.page_.reset(static_cast<wire::Canary*>(page));
    // A child has registered no memory, but may reuse its parent's process id later.
    if (madvise(page, page_bytes, MADV_DONTFORK) != 0) return Status::from_errno(errno, "madvise");
    canary.page_->token = token;
    return canary;
}

void Canary::Unmap::operator()(wire::Canary* page) const noexcept { munmap(page, page_bytes); }

}  // namespace viaduct::loopback
