// SPDX-License-Identifier: BSD-3-Clause
// How a producer copies into the area: through the caches, or past them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/guarded_memory.hpp"

namespace viaduct::loopback {

/// If the consumer's processor is far away, each cache line that it has read must be fetched from there before it is
/// written again, and once more by the consumer after that. Stores past the caches do neither, and are several times as
/// fast; but if the processors share a cache, it is faster to stay in it. So both ways are measured now and then
/// (docs/adr/0033-past-the-caches.md). Not thread-safe.
class AreaCopy {
public:
    /// As copy_guarded().
    bool operator()(std::byte* target, const std::byte* source, std::uint64_t length) noexcept {
        if (length < least || reinterpret_cast<std::uintptr_t>(target) % streaming_alignment != 0)
            return copy_guarded(target, source, length);
        if (turn_++ < measured) [[unlikely]]
            return measure(target, source, length);
        return past_caches_ ? copy_streaming(target, source, length) : copy_guarded(target, source, length);
    }

private:
    static constexpr std::uint64_t least = 1024;  // bytes; less fits into the processor's store buffer
    static constexpr std::uint8_t measured = 2;   // of 256 copies: one past the caches, then one through them

    [[gnu::noinline]] bool measure(std::byte* target, const std::byte* source, std::uint64_t length) noexcept;

    std::uint32_t cost_past_caches_ = 0;  // ns for each KiB
    std::uint8_t turn_ = 0;
    bool past_caches_ = false;
};

}  // namespace viaduct::loopback
