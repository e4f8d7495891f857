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
    ranges_in_process.fetch_add(1);
}

void RevokedMemory::remove(std::span<const std::byte> memory, std::size_t regions) {
    const std::uintptr_t begin = begin_of(memory);
    const std::uintptr_t end = begin + memory.size();
    const LockGuard lock(mutex_);
    if (ranges_.empty() && ranges_.capacity() >= regions) return;
    std::vector<Range> rest;
    rest.reserve(2 * (2 * ranges_.size() + regions));  // a range may become two
    for (const Range& range : ranges_) {
        const Range before{range.begin, std::min(range.end, begin)};
        const Range after{std::max(range.begin, end), range.end};
        if (before.begin < before.end) rest.push_back(before);
        if (after.begin < after.end) rest.push_back(after);
    }
    ranges_in_process.fetch_add(rest.size() - ranges_.size());
    ranges_ = std::move(rest);
}

void RevokedMemory::clear() noexcept {
    const LockGuard lock(mutex_);
    ranges_in_process.fetch_sub(ranges_.size());
    ranges_.clear();
}

}  // namespace viaduct::vipl
