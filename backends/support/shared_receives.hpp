// SPDX-License-Identifier: BSD-3-Clause
// The posted receives of a shared receive queue that is software, with its depth and its limit.
#pragma once

#include <cstdint>
#include <utility>

#include "backends/support/fifo.hpp"
#include "backends/support/receive.hpp"
#include "core/status.hpp"

namespace viaduct::support {

/// Not thread-safe.
class SharedReceives {
public:
    SharedReceives(std::uint32_t depth, std::uint32_t max_sges) : max_sges_(max_sges), depth_(depth) {}

    bool empty() const noexcept { return receives_.empty(); }
    std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(receives_.size()); }

    /// QueueFull; InvalidParameter: too many SGEs; NoResources. Throws std::bad_alloc.
    Status post(const ReceiveRequest& request) {
        if (receives_.size() >= depth_) return {Code::QueueFull, "the shared receive queue is full"};
        if (request.sges.size() > max_sges_) return {Code::InvalidParameter, "too many pieces"};
        if (!receives_.reserve(receives_.size() + 1)) return {Code::NoResources, "out of memory"};
        receives_.vacant().assign(request);
        receives_.commit();
        return {};
    }

    /// Swaps the oldest receive with `to`. There must be one.
    void take(Receive& to) noexcept {
        std::swap(to, receives_.front());
        receives_.pop();
    }

    /// Arms the limit; 0 disarms it.
    void arm(std::uint32_t limit) noexcept { limit_ = limit; }

    /// Reports, once, that fewer receives are posted than the limit.
    bool reached_limit() noexcept {
        if (receives_.size() >= limit_) return false;
        limit_ = 0;
        return true;
    }

    /// Errors as backend::SharedReceiveQueue::resize().
    Status resize(std::uint32_t depth) noexcept {
        if (depth < limit_) return {Code::InvalidParameter, "the new depth is less than the armed limit"};
        if (receives_.size() > depth) return {Code::Busy, "the new depth is less than the number of posted receives"};
        depth_ = depth;
        return {};
    }

private:
    const std::uint32_t max_sges_;
    std::uint32_t depth_;
    std::uint32_t limit_ = 0;  // 0: disarmed
    Fifo<Receive> receives_{16};
};

}  // namespace viaduct::support
