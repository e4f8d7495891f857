// SPDX-License-Identifier: BSD-3-Clause
// A completion queue: the completions in the hardware queue, preceded by those that were added without the hardware or
// were taken from the hardware queue early to make room.
#pragma once

#include <atomic>
#include <unordered_map>
#include <vector>

#include "backends/verbs/channel.hpp"
#include "backends/verbs/work_queue.hpp"
#include "core/base/fifo.hpp"

namespace viaduct::verbs {

class Device;
class RegionTable;
class SharedReceiveQueue;
class WindowTable;

/// Thread-safe. Each poll takes one lock. Lock order: the mutex of a work queue, this lock, the mutex of a channel.
///
/// The hardware queue never overruns: work queues reserve places in it before they post, and it grows as far as the
/// device allows. Memory for all its completions is reserved, too, so that they can be taken out at any time. The
/// capacity that the consumer requested limits only completions that do not come from the hardware.
class CompletionQueue final : public backend::CompletionQueue {
public:
    static Result<std::unique_ptr<CompletionQueue>> create(Device& device, const backend::CompletionQueueInit& init);
    ~CompletionQueue() override;

    std::size_t poll(std::span<Completion> out) noexcept override;
    bool poll_one(Completion& out) noexcept override;
    bool ready() noexcept override;
    Status arm(Arm what) noexcept override;
    Status resize(std::uint32_t capacity) noexcept override;

    ibv_cq* get() const noexcept { return hardware_.get(); }
    std::uint64_t context() const noexcept { return context_; }
    const RegionTable& regions() const noexcept;
    WindowTable& windows() const noexcept;

    /// Reserves places for the completions of requests; other work queues may have to give back unused ones. The
    /// caller may hold the mutex of its work queue. QueueFull: the device does not support more. NoResources: out of
    /// memory.
    Status reserve(std::uint32_t places) noexcept;

    /// Takes all completions out of the hardware queue.
    void progress() noexcept;

    /// For a channel: disarms the queue and reports whether it was armed.
    bool disarm() noexcept { return armed_.exchange(Armed::No, std::memory_order_acq_rel) != Armed::No; }

    /// Registers an endpoint that uses a shared receive queue, by the number of its queue pair. NoResources: as
    /// make_places(). Throws std::bad_alloc.
    Status attach(std::uint32_t number, WorkQueue& receives, const SharedReceiveQueue& shared, std::uint32_t depth);
    void detach(std::uint32_t number, const SharedReceiveQueue& shared) noexcept;

    /// Called when the shared queue has grown, because all of its receives may complete here. NoResources: the device
    /// does not support that many.
    Status make_places(const SharedReceiveQueue& shared, std::uint32_t depth) noexcept;

    /// Registers a work queue. Throws std::bad_alloc.
    void attach(WorkQueue& queue) {
        const LockGuard lock(mutex_);
        queues_.push_back(&queue);
    }

    /// Called when a work queue is destroyed. Its completions stay; its places are released.
    void forget(const WorkQueue& queue, std::uint32_t places) noexcept;

    SpinLock& mutex() noexcept VIADUCT_RETURNS_LOCK(mutex_) { return mutex_; }

    void release(std::uint32_t places) noexcept VIADUCT_REQUIRES(mutex_) { reserved_ -= places; }

    /// Adds a completion that does not come from the hardware. On overrun the completion is dropped and reported.
    void add(const Completion& completion, WorkQueue& queue) noexcept VIADUCT_REQUIRES(mutex_);

private:
    struct Entry {
        Completion completion;
        WorkQueue* queue;  ///< the queue in which it occupies a place, or null
    };

    enum class Armed : std::uint8_t { No, Solicited, Any };

    /// The places that the endpoints of a shared receive queue share.
    struct Share {
        std::uint32_t endpoints = 0;
        std::uint32_t places = 0;
    };

    CompletionQueue(Device& device, const backend::CompletionQueueInit& init);
    Status take_places(std::uint32_t places) noexcept VIADUCT_REQUIRES(mutex_);
    bool grow(std::uint32_t places) noexcept VIADUCT_REQUIRES(mutex_);
    void take_back_places() noexcept VIADUCT_REQUIRES(mutex_);
    [[gnu::noinline]] void drain() noexcept VIADUCT_REQUIRES(mutex_);
    void buffer(const Entry& entry) noexcept VIADUCT_REQUIRES(mutex_);
    void notify() noexcept VIADUCT_REQUIRES(mutex_);
    std::size_t take_buffered(std::span<Completion> out) noexcept VIADUCT_REQUIRES(mutex_);
    std::size_t fetch(std::span<Completion> out) noexcept VIADUCT_REQUIRES(mutex_);
    bool interpret(const ibv_wc& result, Completion& completion) noexcept VIADUCT_REQUIRES(mutex_);
    bool interpret_shared(Slot& slot, const ibv_wc& result, Completion& completion) noexcept VIADUCT_REQUIRES(mutex_);
    [[gnu::noinline]] bool finish_poll(Completion& out) noexcept VIADUCT_RELEASE(mutex_);

    Device& device_;
    const std::uint64_t context_;
    Channel* const channel_;
    std::atomic<Armed> armed_{Armed::No};
    SpinLock mutex_;
    CompletionQueueOwner hardware_;
    ibv_wc result_ VIADUCT_GUARDED_BY(mutex_){};             // of poll_one()
    std::uint32_t reserved_ VIADUCT_GUARDED_BY(mutex_) = 0;  // places in the hardware queue
    std::vector<WorkQueue*> queues_ VIADUCT_GUARDED_BY(mutex_);
    std::uint32_t capacity_ VIADUCT_GUARDED_BY(mutex_);
    Fifo<Entry> buffered_ VIADUCT_GUARDED_BY(mutex_);
    std::size_t failures_ VIADUCT_GUARDED_BY(mutex_) = 0;  // number of buffered_ completions with errors
    std::unordered_map<std::uint32_t, WorkQueue*> shared_receivers_ VIADUCT_GUARDED_BY(mutex_);
    std::unordered_map<const SharedReceiveQueue*, Share> shares_ VIADUCT_GUARDED_BY(mutex_);
};

}  // namespace viaduct::verbs
