// SPDX-License-Identifier: BSD-3-Clause
#include "backends/loopback/area_copy.hpp"

#include <atomic>
#include <chrono>

namespace viaduct::loopback {

bool AreaCopy::choose(std::byte* target, const std::byte* source, std::uint64_t length) noexcept {
    if (reinterpret_cast<std::uintptr_t>(target) % streaming_alignment != 0)
        return copy_guarded(target, source, length);
    if (streamed_left_ != 0) {
        --streamed_left_;
        return copy_streaming(target, source, length);
    }
    const bool streams = streamed_cost_ == 0;
    const auto begin = std::chrono::steady_clock::now();
    const bool copied = streams ? copy_streaming(target, source, length) : copy_guarded(target, source, length);
    std::atomic_thread_fence(std::memory_order_seq_cst);  // until the stores are done
    const std::chrono::nanoseconds time = std::chrono::steady_clock::now() - begin;
    const std::uint64_t cost = (static_cast<std::uint64_t>(time.count()) << 20) / length + 1;
    if (streams) {
        streamed_cost_ = cost;
    } else {
        (cost > 2 * streamed_cost_ ? streamed_left_ : cached_left_) = unmeasured;
        streamed_cost_ = 0;
    }
    return copied;
}

}  // namespace viaduct::loopback
