// SPDX-License-Identifier: BSD-3-Clause
#include "backends/loopback/canary.hpp"

#include <sys/mman.h>
#include <sys/random.h>

#include <cerrno>

namespace viaduct::loopback {
namespace {

constexpr std::size_t page_bytes = sizeof(wire::Canary);

// Where programs have nothing by themselves: above the heap of a program at a low address, below one at a high address.
constexpr std::uint64_t first_place = 0x110000000000;
constexpr std::uint64_t place_count = 0x3f0000000000 / page_bytes;
constexpr int max_tries = 8;

void* map_at(std::uint64_t place, int flags) noexcept {
    return mmap(reinterpret_cast<void*>(place), page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags,
                -1, 0);
}

/// Any address where the system or a sanitizer does not give a random one: still one that few programs have.
void* map_somewhere() noexcept {
    for (int tries = 0; tries < max_tries; ++tries) {
        std::uint64_t number = 0;
        if (getrandom(&number, sizeof number, 0) != sizeof number) break;
        const std::uint64_t place = first_place + number % place_count * page_bytes;
        void* const page = map_at(place, MAP_FIXED_NOREPLACE);
        if (page == reinterpret_cast<void*>(place)) return page;
        if (page != MAP_FAILED) munmap(page, page_bytes);  // a kernel that takes the address for a hint
    }
    return map_at(0, 0);
}

}  // namespace

Result<Canary> Canary::create(std::uint64_t token) noexcept {
    void* const page = map_somewhere();
    if (page == MAP_FAILED) return Status::from_errno(errno, "mmap of a page");
    Canary canary;
    canary.page_.reset(static_cast<wire::Canary*>(page));
    // A child, which may get the number of its parent one day, has not registered anything.
    if (madvise(page, page_bytes, MADV_DONTFORK) != 0) return Status::from_errno(errno, "madvise");
    canary.page_->token = token;
    return canary;
}

void Canary::Unmap::operator()(wire::Canary* page) const noexcept { munmap(page, page_bytes); }

}  // namespace viaduct::loopback
