// SPDX-License-Identifier: BSD-3-Clause
// A shared receive queue that is software.
#pragma once

#include <cstdint>
#include <utility>

#include "backends/support/guarded.hpp"
#include "backends/support/post_each.hpp"
#include "backends/support/receive.hpp"
#include "core/backend.hpp"
#include "core/base/fifo.hpp"
#include "viaduct/status.hpp"

namespace viaduct::support {

/// The posted receives, with the depth and the limit. Not thread-safe.
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

/// The base of a `Queue`, which has these functions:
///   - raise(event): tells the observer of the device;
///   - mutex() and Guard: the lock of the queue, and what holds it; the others are called with it;
///   - was_posted(): a receive was posted, for which messages may wait.
template <class Queue>
class SharedReceiveQueueBase : public backend::SharedReceiveQueue {
public:
    Status post_receive(std::span<const ReceiveRequest> requests, std::size_t& posted) noexcept override {
        posted = 0;
        return guarded([&] {
            const typename Queue::Guard guard(queue().mutex());
            return post_each(requests, posted, [this](const ReceiveRequest& request) {
                const Status status = receives_.post(request);
                if (status.ok()) queue().was_posted();
                return status;
            });
        });
    }
    Status arm_limit(std::uint32_t limit) noexcept override {
        const typename Queue::Guard guard(queue().mutex());
        receives_.arm(limit);
        check_limit();
        return {};
    }
    Status resize(std::uint32_t depth) noexcept override {
        const typename Queue::Guard guard(queue().mutex());
        return receives_.resize(depth);
    }
    std::uint32_t outstanding() const noexcept override {
        const typename Queue::Guard guard(queue().mutex());
        return receives_.size();
    }

protected:
    /// Swaps the oldest receive with `to`. Returns false if there is none. The lock must be held.
    bool take_oldest(Receive& to) noexcept {
        if (receives_.empty()) return false;
        receives_.take(to);
        check_limit();
        return true;
    }

private:
    friend Queue;
    SharedReceiveQueueBase(std::uint32_t depth, std::uint32_t max_sges, std::uint64_t context)
        : context_(context), receives_(depth, max_sges) {}

    const Queue& queue() const noexcept { return static_cast<const Queue&>(*this); }
    Queue& queue() noexcept { return static_cast<Queue&>(*this); }

    void check_limit() noexcept {
        if (receives_.reached_limit())
            queue().raise({.kind = AsyncEventKind::SharedReceiveQueueLimit, .shared_receive_queue_context = context_});
    }

    const std::uint64_t context_;
    SharedReceives receives_;
};

}  // namespace viaduct::support
