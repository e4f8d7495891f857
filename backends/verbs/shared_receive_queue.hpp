// SPDX-License-Identifier: BSD-3-Clause
// Receives that the hardware passes to any queue pair that gets a message.
#pragma once

#include <deque>
#include <unordered_map>
#include <vector>

#include "backends/verbs/owners.hpp"
#include "backends/verbs/work_queue.hpp"
#include "core/backend.hpp"
#include "viaduct/detail/mutex.hpp"

namespace viaduct::verbs {

class Device;
class ProtectionDomain;

/// Thread-safe. Lock order: the locks of the work queues, this mutex, then those of the completion queues.
class SharedReceiveQueue final : public backend::SharedReceiveQueue {
public:
    static Result<std::unique_ptr<SharedReceiveQueue>> create(Device& device, const ProtectionDomain& domain,
                                                              std::uint32_t depth, std::uint64_t context);
    ~SharedReceiveQueue() override;

    Status post_receive(std::span<const ReceiveRequest> requests, std::size_t& posted) noexcept override;
    Status arm_limit(std::uint32_t limit) noexcept override;
    Status resize(std::uint32_t depth) noexcept override;
    std::uint32_t outstanding() const noexcept override {
        const LockGuard lock(mutex_);
        poll_completions();
        return known_outstanding();
    }

    ibv_srq* get() const noexcept { return hardware_.get(); }

    /// Registers an endpoint that uses this queue, by the number of its queue pair. Its completion queue reports when
    /// receives are used and has room for all of them. NoResources: it cannot have. Throws std::bad_alloc.
    Status attach(CompletionQueue& queue, std::uint32_t number, WorkQueue& receives);
    void detach(CompletionQueue& queue, std::uint32_t number) noexcept;

    /// Called when the device reports that the number of receives is below the limit.
    void on_limit() noexcept;

    /// Returns the slot of a used receive to its queue.
    static void free(Slot& slot) noexcept;

private:
    struct SharedSlot : Slot {
        SharedReceiveQueue* owner;
    };

    SharedReceiveQueue(Device& device, std::uint32_t depth, std::uint64_t context)
        : device_(device), context_(context), depth_(depth) {}
    Status post(const ReceiveRequest& request) VIADUCT_REQUIRES(mutex_);
    bool make_room() noexcept VIADUCT_REQUIRES(mutex_) {
        if (known_outstanding() < depth_) return true;
        poll_completions();
        return known_outstanding() < depth_;
    }
    SharedSlot& take_slot();
    std::uint32_t known_outstanding() const noexcept {
        const LockGuard lock(free_mutex_);
        return static_cast<std::uint32_t>(slots_.size() - free_.size());
    }
    void poll_completions() const noexcept VIADUCT_REQUIRES(mutex_);
    Status change(ibv_srq_attr attributes, ibv_srq_attr_mask what) noexcept {
        const int error = ibv_modify_srq(hardware_.get(), &attributes, what);
        return error == 0 ? Status() : Status::from_errno(error, "ibv_modify_srq");
    }
    void report_limit() noexcept VIADUCT_REQUIRES(mutex_);

    Device& device_;
    const std::uint64_t context_;
    SharedQueueOwner hardware_;
    mutable Mutex mutex_;
    std::uint32_t depth_ VIADUCT_GUARDED_BY(mutex_);
    std::uint32_t limit_ VIADUCT_GUARDED_BY(mutex_) = 0;  // 0: disarmed
    std::unordered_map<CompletionQueue*, std::uint32_t> completions_
        VIADUCT_GUARDED_BY(mutex_);                                 // with the number of endpoints of each
    mutable Mutex free_mutex_;                                      // innermost lock
    std::deque<SharedSlot> slots_ VIADUCT_GUARDED_BY(free_mutex_);  // the maximum number used at the same time so far
    std::vector<SharedSlot*> free_ VIADUCT_GUARDED_BY(free_mutex_);
};

}  // namespace viaduct::verbs
