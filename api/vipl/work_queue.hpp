// SPDX-License-Identifier: BSD-3-Clause
// A send or receive queue of a VI, as used by the calls that complete descriptors (guide, section 3.5).
#pragma once

#include <atomic>
#include <memory>

#include "api/vipl/descriptor.hpp"
#include "api/vipl/notify.hpp"
#include "api/vipl/region_table.hpp"
#include "core/base/fifo.hpp"
#include "viaduct/endpoint.hpp"

namespace viaduct::vipl {

class Cq;
class Vi;

class WorkQueue {
public:
    using NotifyHandler = void (*)(VIP_PVOID context, VIP_NIC_HANDLE nic, VIP_VI_HANDLE vi, VIP_DESCRIPTOR* descriptor);

    /// If `cq` is null, `queue` is used by this work queue only.
    WorkQueue(Vi& vi, QueueKind kind, std::shared_ptr<CompletionQueue> queue, Cq* cq) noexcept
        : vi_(vi), kind_(kind), queue_(std::move(queue)), cq_(cq), notifier_(*queue_) {}

    Cq* cq() const noexcept { return cq_; }

    /// Returns the number of descriptors that are posted and not known to be complete.
    std::uint32_t outstanding() const noexcept;
    bool empty() const noexcept;

    /// Takes the descriptor at the head. Returns VIP_SUCCESS or VIP_DESCRIPTOR_ERROR; the latter with NULL if the queue
    /// is empty. Otherwise returns VIP_NOT_DONE and writes nothing.
    VIP_RETURN done(VIP_DESCRIPTOR** descriptor) noexcept;
    VIP_RETURN wait(const Deadline& deadline, VIP_DESCRIPTOR** descriptor);
    VIP_RETURN notify(VIP_PVOID context, NotifyHandler handler);
    void cancel_notifies() noexcept { notifier_.stop(); }

    /// The memory of the last descriptor that was posted. Its key differs from all others if that is gone.
    const DescriptorMemory& last_memory() const noexcept { return *memory_.load(std::memory_order_acquire); }

    /// Returns memory without a domain if no region has this key or it is too small for a descriptor.
    const DescriptorMemory& find_memory(VIP_MEM_HANDLE key) noexcept {
        const DescriptorMemory& memory = last_memory();
        return memory.key.load(std::memory_order_acquire) == key ? memory : find_other_memory(key);
    }

    /// For Nic::forget_revoked(): completions are counted while memory is revoked. has_passed_mark(): what was posted
    /// when the mark was set has completed since. A descriptor that is lost is checked again when it is polled.
    void count_checked(bool lost) noexcept {
        if (lost)
            lost_ = true;
        else
            ++checked_;
    }
    void set_mark() noexcept {
        const std::uint64_t posted = outstanding();  // before checked_, which may be counted meanwhile
        mark_ = checked_.load() + posted;
    }
    bool has_passed_mark() const noexcept { return outstanding() == 0 || (checked_.load() >= mark_ && !lost_); }

    Fifo<Done> complete;  ///< taken from the completion queue but not yet by the program; guarded by the Cq

private:
    [[gnu::always_inline]] VIP_RETURN take(VIP_DESCRIPTOR** descriptor) noexcept;
    [[gnu::noinline]] VIP_RETURN done_specially(VIP_DESCRIPTOR** descriptor) noexcept;
    [[gnu::noinline]] const DescriptorMemory& find_other_memory(VIP_MEM_HANDLE key) noexcept;

    Vi& vi_;
    const QueueKind kind_;
    const std::shared_ptr<CompletionQueue> queue_;
    Cq* const cq_;
    Notifier notifier_;
    std::atomic<bool> is_special_{cq_ != nullptr};  // the queue has a CQ, or handlers were asked for

    static inline const DescriptorMemory no_memory_;
    std::atomic<const DescriptorMemory*> memory_{&no_memory_};  // of the last descriptor that was posted
    std::atomic<std::uint64_t> checked_{0};
    std::atomic<bool> lost_{false};
    std::uint64_t mark_ = 0;  // guarded by Nic::region_attributes
};

}  // namespace viaduct::vipl
