// SPDX-License-Identifier: BSD-3-Clause
// Receives that the hardware hands to whichever queue pair gets a message.
#pragma once

#include <atomic>
#include <mutex>
#include <vector>

#include "backends/verbs/owners.hpp"
#include "backends/verbs/work_queue.hpp"
#include "core/backend.hpp"

namespace viaduct::verbs {

class Device;
class ProtectionDomain;

/// Thread-safe. Its mutex is taken before those of the completion queues.
class SharedReceiveQueue final : public backend::SharedReceiveQueue {
public:
    static Result<std::unique_ptr<SharedReceiveQueue>> create(Device& device, const ProtectionDomain& domain,
                                                              std::uint32_t depth);
    ~SharedReceiveQueue() override;

    Status post_receive(std::span<const ReceiveRequest> requests, std::size_t& posted) noexcept override;
    Status arm_limit(std::uint32_t limit) noexcept override;
    Status resize(std::uint32_t depth) noexcept override;
    std::uint32_t outstanding() const noexcept override;

    ibv_srq* get() const noexcept { return hardware_.get(); }
    std::uint32_t depth() const noexcept { return depth_; }

    /// Completion queues that may say that a receive was taken; each as often as it serves endpoints.
    void attach(CompletionQueue& queue);
    void detach(const CompletionQueue& queue) noexcept;

    /// Gives the slot of a receive that was taken back to its queue.
    static void free(Slot& slot) noexcept;

private:
    SharedReceiveQueue(Device& device, std::uint32_t depth);
    Status post(const ReceiveRequest& request) noexcept;
    bool make_room() noexcept;

    Device& device_;
    const std::uint32_t depth_;
    SharedQueueOwner hardware_;
    std::unique_ptr<Slot[]> slots_;
    std::mutex mutex_;  // guards what follows
    std::vector<CompletionQueue*> completions_;
    std::mutex free_mutex_;  // guards what follows; a leaf
    std::vector<Slot*> free_;
};

}  // namespace viaduct::verbs
