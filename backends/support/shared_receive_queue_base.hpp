// SPDX-License-Identifier: BSD-3-Clause
// A shared receive queue that is software.
#pragma once

#include <cstdint>
#include <utility>

#include "backends/support/guarded.hpp"
#include "backends/support/post_each.hpp"
#include "backends/support/sge_list.hpp"
#include "core/backend.hpp"
#include "core/base/fifo.hpp"
#include "viaduct/status.hpp"

namespace viaduct::support {

struct SharedReceiveQueueInit {
    DeviceObserver& observer;
    std::uint32_t max_sges;
    std::uint32_t depth;
    std::uint64_t context;
};

/// The base of a `Queue`, which has these functions:
///   - mutex() and Guard: the lock of the queue, and what holds it;
///   - was_posted(): a receive was posted, for which messages may wait. Called with the lock.
template <class Queue>
class SharedReceiveQueueBase : public backend::SharedReceiveQueue {
public:
    Status post_receive(std::span<const ReceiveRequest> requests, std::size_t& posted) noexcept override {
        posted = 0;
        return guarded([&] {
            const typename Queue::Guard guard(queue().mutex());
            return post_each(requests, posted, [this](const ReceiveRequest& request) { return post(request); });
        });
    }
    Status arm_limit(std::uint32_t limit) noexcept override {
        const typename Queue::Guard guard(queue().mutex());
        limit_ = limit;
        check_limit();
        return {};
    }
    Status resize(std::uint32_t depth) noexcept override {
        const typename Queue::Guard guard(queue().mutex());
        if (depth < limit_) return {Code::InvalidParameter, "the new depth is less than the armed limit"};
        if (receives_.size() > depth) return {Code::Busy, "the new depth is less than the number of posted receives"};
        depth_ = depth;
        return {};
    }
    std::uint32_t outstanding() const noexcept override {
        const typename Queue::Guard guard(queue().mutex());
        return static_cast<std::uint32_t>(receives_.size());
    }

protected:
    /// Swaps the oldest receive with `to`. Returns false if there is none. The lock must be held.
    bool take_oldest(Receive& to) noexcept {
        if (receives_.empty()) return false;
        std::swap(to, receives_.front());
        receives_.pop();
        check_limit();
        return true;
    }

private:
    friend Queue;
    explicit SharedReceiveQueueBase(const SharedReceiveQueueInit& init)
        : observer_(init.observer), max_sges_(init.max_sges), context_(init.context), depth_(init.depth) {}

    const Queue& queue() const noexcept { return static_cast<const Queue&>(*this); }
    Queue& queue() noexcept { return static_cast<Queue&>(*this); }

    Status post(const ReceiveRequest& request) {
        if (receives_.size() >= depth_) return {Code::QueueFull, "the shared receive queue is full"};
        if (request.sges.size() > max_sges_) return {Code::InvalidParameter, "too many pieces"};
        if (!receives_.reserve(receives_.size() + 1)) return {Code::NoResources, "out of memory"};
        receives_.vacant().assign(request);
        receives_.commit();
        queue().was_posted();
        return {};
    }

    /// Reports, once, that fewer receives are posted than the limit.
    void check_limit() noexcept {
        if (receives_.size() >= limit_) return;
        limit_ = 0;
        observer_.on_async_event(
            {.kind = AsyncEventKind::SharedReceiveQueueLimit, .shared_receive_queue_context = context_});
    }

    DeviceObserver& observer_;
    const std::uint32_t max_sges_;
    const std::uint64_t context_;
    // The lock guards the members below.
    std::uint32_t depth_;
    std::uint32_t limit_ = 0;  // 0: disarmed
    Fifo<Receive> receives_{16};
};

}  // namespace viaduct::support
