// SPDX-License-Identifier: BSD-3-Clause
// How a producer copies into the area: through the caches, or past them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/guarded_memory.hpp"

namespace viaduct::loopback {

/// If the consumer's processor is far away, each cache line that it has read must be fetched from there before it is
/// written again, and once more by the consumer after that. Non-temporal stores avoid both, and are several times as
/// fast; but if the processors share a cache, ordinary stores are faster. So both are measured now and then
/// (docs/adr/0033-non-temporal-stores.md). Not thread-safe.
class AreaCopy {
public:
    /// As copy_guarded().
    [[gnu::always_inline]] bool operator()(std::byte* target, const std::byte* source, std::uint64_t length) noexcept {
        if (length <= most_copied_short) return copy_short(target, source, length);
        if (length >= least && !takes_cached()) [[unlikely]]
            return choose(target, source, length);
        return copy_long(target, source, length) != nullptr;
    }

private:
    static constexpr std::uint64_t least = 1024;      // bytes; less fits into the processor's store buffer
    static constexpr std::uint32_t unmeasured = 254;  // copies between two measurements of both ways

    bool takes_cached() noexcept {
        if (cached_left_ == 0) return false;
        --cached_left_;
        return true;
    }
    [[gnu::noinline]] bool choose(std::byte* target, const std::byte* source, std::uint64_t length) noexcept;

    std::uint32_t cached_left_ = 0;    // copies that go through the caches
    std::uint32_t streamed_left_ = 0;  // or past them
    std::uint64_t streamed_cost_ = 0;  // ns for each MiB; 0: not measured
};

}  // namespace viaduct::loopback
