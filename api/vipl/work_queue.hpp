// SPDX-License-Identifier: BSD-3-Clause
// A send or receive queue of a VI, as the calls that complete descriptors see it (guide, section 3.5).
#pragma once

#include <memory>

#include "api/vipl/descriptor.hpp"
#include "api/vipl/notify.hpp"
#include "core/endpoint.hpp"

namespace viaduct::vipl {

class Cq;
class Vi;

class WorkQueue {
public:
    using NotifyHandler = void (*)(VIP_PVOID context, VIP_NIC_HANDLE nic, VIP_VI_HANDLE vi, VIP_DESCRIPTOR* descriptor);

    /// Without `cq`, the core's queue is this queue's alone.
    WorkQueue(Vi& vi, QueueKind kind, std::shared_ptr<CompletionQueue> queue, Cq* cq) noexcept
        : vi_(vi), kind_(kind), queue_(std::move(queue)), cq_(cq), notifier_(*queue_) {}

    const std::shared_ptr<CompletionQueue>& completions() const noexcept { return queue_; }
    Cq* cq() const noexcept { return cq_; }

    /// Descriptors that are posted and not complete, as far as has been seen.
    std::uint32_t outstanding() const noexcept;
    bool empty() const noexcept;

    /// Takes the descriptor at the head: VIP_SUCCESS or VIP_DESCRIPTOR_ERROR, the latter with NULL where the queue is
    /// empty; else VIP_NOT_DONE, and nothing is written.
    VIP_RETURN done(VIP_DESCRIPTOR** descriptor) noexcept;
    VIP_RETURN wait(const Deadline& deadline, VIP_DESCRIPTOR** descriptor) noexcept;
    VIP_RETURN notify(VIP_PVOID context, NotifyHandler handler);
    void cancel_notifies() noexcept { notifier_.stop(); }

    DescriptorList complete;  ///< taken from the completion queue and not yet by the program; guarded by the Cq

private:
    Vi& vi_;
    const QueueKind kind_;
    const std::shared_ptr<CompletionQueue> queue_;
    Cq* const cq_;
    Notifier notifier_;
};

}  // namespace viaduct::vipl
