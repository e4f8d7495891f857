// SPDX-License-Identifier: BSD-3-Clause
#include "api/vipl/revoked_memory.hpp"

#include <algorithm>

namespace viaduct::vipl {
namespace {

std::uintptr_t begin_of(std::span<const std::byte> memory) noexcept {
    return reinterpret_cast<std::uintptr_t>(memory.data());
}

}  // namespace

bool RevokedMemory::contains(const void* address) const noexcept {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    const LockGuard lock(mutex_);
    return std::ranges::any_of(ranges_, [at](const Range& range) { return at >= range.begin && at < range.end; });
}

void RevokedMemory::add(std::span<const std::byte> memory) noexcept {
    const LockGuard lock(mutex_);
    ranges_.push_back({begin_of(memory), begin_of(memory) + memory.size()});
    DeliveryChecks::add(1);
}

void RevokedMemory::reserve(std::size_t regions) {
    const LockGuard lock(mutex_);
    const std::size_t needed = 2 * ranges_.size() + regions;  // remove() may make two of each
    if (ranges_.capacity() < needed) ranges_.reserve(2 * needed);
}

void RevokedMemory::remove(std::span<const std::byte> memory) noexcept {
    const std::uintptr_t begin = begin_of(memory);
    const std::uintptr_t end = begin + memory.size();
    const LockGuard lock(mutex_);
    const std::size_t count = ranges_.size();
    for (std::size_t i = 0; i != count; ++i) {
        const Range after{std::max(ranges_[i].begin, end), ranges_[i].end, ranges_[i].old};
        ranges_[i].end = std::min(ranges_[i].end, begin);
        if (after.begin < after.end) ranges_.push_back(after);
    }
    std::erase_if(ranges_, [](const Range& range) { return range.begin >= range.end; });
    DeliveryChecks::add(ranges_.size() - count);
}

bool RevokedMemory::empty() const noexcept {
    const LockGuard lock(mutex_);
    return ranges_.empty();
}

void RevokedMemory::forget_old() noexcept {
    const LockGuard lock(mutex_);
    DeliveryChecks::remove(std::erase_if(ranges_, [](const Range& range) { return range.old; }));
    for (Range& range : ranges_) range.old = true;
}

}  // namespace viaduct::vipl
