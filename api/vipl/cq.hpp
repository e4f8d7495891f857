// SPDX-License-Identifier: BSD-3-Clause
// Completion queues (guide, sections 3.5.7, 3.5.8, 3.5.11 and 3.6).
#pragma once

#include <memory>

#include "api/vipl/handles.hpp"
#include "api/vipl/notify.hpp"
#include "core/base/event_channel.hpp"
#include "core/base/fifo.hpp"
#include "viaduct/completion_queue.hpp"
#include "viaduct/detail/mutex.hpp"

namespace viaduct::vipl {

class WorkQueue;

/// Identifies the queue and the VI of a complete descriptor. The VI may have been destroyed by the time the entry is
/// read.
struct CqEntry {
    VIP_VI_HANDLE vi = nullptr;
    bool receive = false;
};

/// Distributes the completions of the core's queue to the work queues, and keeps an entry for each descriptor that is
/// taken before its entry. Only these have the limit that the program asked for; the core's queue has the largest size.
class Cq final : public WithHandle<Cq, 3> {
public:
    static constexpr const char* invalid_handle = no_cq;

    using NotifyHandler = void (*)(VIP_PVOID context, VIP_NIC_HANDLE nic, VIP_VI_HANDLE vi, VIP_BOOLEAN receive);

    static Result<std::unique_ptr<Cq>> create(Nic& nic, std::uint32_t capacity);
    ~Cq();

    Nic& nic() const noexcept { return nic_; }
    const std::shared_ptr<CompletionQueue>& queue() const noexcept { return queue_; }

    /// Discards the requests for handlers, and waits for one that runs.
    void end_handlers() noexcept;

    /// Takes the next entry. Returns false if there is none.
    bool next_entry(CqEntry& entry) noexcept;

    VIP_RETURN wait(const Deadline& deadline, CqEntry& entry);
    void notify(VIP_PVOID context, NotifyHandler handler);
    VIP_RETURN resize(std::uint32_t capacity);

    /// Implements WorkQueue::done() and empty() for the work queues of this completion queue.
    [[gnu::noinline]] VIP_RETURN done(WorkQueue& queue, VIP_DESCRIPTOR** descriptor) noexcept;
    bool empty(const WorkQueue& queue) noexcept;

private:
    Cq(Nic& nic, std::uint32_t capacity);

    /// Move a complete descriptor to its work queue, and make an entry for it. Return false if there is none.
    bool take_one(CqEntry& entry) noexcept VIADUCT_REQUIRES(mutex_);
    bool deliver(Completion& completion, CqEntry& entry) noexcept VIADUCT_REQUIRES(mutex_);
    void keep(const CqEntry& entry) noexcept VIADUCT_REQUIRES(mutex_);
    [[gnu::cold]] void lose(const CqEntry& entry) noexcept VIADUCT_REQUIRES(mutex_);
    void tell_waiters() noexcept VIADUCT_REQUIRES(mutex_) { left_.set(!entries_.empty()); }

    /// A descriptor that is readable while entries are left that were not taken for who waits; -1 if it could not be
    /// created.
    int left_fd() noexcept;

    Nic& nic_;
    std::shared_ptr<CompletionQueue> queue_;
    Mutex mutex_;  // guards the lists of complete descriptors of the work queues, too
    std::size_t capacity_ VIADUCT_GUARDED_BY(mutex_);  // of entries_
    Fifo<CqEntry> entries_ VIADUCT_GUARDED_BY(mutex_);
    ReadableFlag left_ VIADUCT_GUARDED_BY(mutex_);  // the core's queue knows nothing of entries_
    std::unique_ptr<Notifier> notifier_;
};

}  // namespace viaduct::vipl
