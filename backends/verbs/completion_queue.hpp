// SPDX-License-Identifier: BSD-3-Clause
// A completion queue: what the hardware has completed, and before it what was completed without it or taken from it
// early to make room.
#pragma once

#include <atomic>
#include <unordered_map>

#include "backends/support/fifo.hpp"
#include "backends/verbs/channel.hpp"
#include "backends/verbs/work_queue.hpp"

namespace viaduct::verbs {

class Device;
class RegionTable;
class SharedReceiveQueue;
class WindowTable;

/// Thread-safe: one lock, taken for each poll, after the mutex of a work queue and before that of a channel.
///
/// The queue of the hardware never overruns: every request reserves a place in it first, and it grows as far as the
/// device allows. There is memory for all that completes there, too, so that it can be taken over at any time. The
/// capacity that the consumer asked for bounds only what is completed without the hardware.
class CompletionQueue final : public backend::CompletionQueue {
public:
    static Result<std::unique_ptr<CompletionQueue>> create(Device& device, const backend::CompletionQueueInit& init);
    ~CompletionQueue() override;

    [[gnu::hot]] std::size_t poll(std::span<Completion> out) noexcept override;
    bool ready() noexcept override;
    Status arm(Arm what) noexcept override;
    Status resize(std::uint32_t capacity) noexcept override;

    ibv_cq* get() const noexcept { return hardware_.get(); }
    std::uint64_t context() const noexcept { return context_; }
    const RegionTable& regions() const noexcept;
    WindowTable& windows() const noexcept;

    /// Takes a place for the completion of a request; release() gives it back. QueueFull: the device has no more.
    /// NoResources: there is no memory for more.
    Status reserve(std::uint32_t places = 1) noexcept {
        if (reserved_.fetch_add(places, std::memory_order_relaxed) + places <= places_.load(std::memory_order_relaxed))
            return {};
        return grow(places);
    }
    void release(std::uint32_t places = 1) noexcept { reserved_.fetch_sub(places, std::memory_order_relaxed); }

    /// Takes over all that the hardware has completed.
    void progress() noexcept;

    /// For a channel: whether the queue was armed, which it is no more.
    bool disarm() noexcept { return armed_.exchange(Armed::No, std::memory_order_acq_rel) != Armed::No; }

    /// Endpoints whose receives come from a shared queue, by the number of their queue pair.
    void attach(std::uint32_t number, WorkQueue& receives, const SharedReceiveQueue& shared, std::uint32_t depth);
    void detach(std::uint32_t number, const SharedReceiveQueue& shared) noexcept;

    /// The shared queue has grown: all that wait there may complete here.
    void make_places(const SharedReceiveQueue& shared, std::uint32_t depth) noexcept;

    /// The queue goes; what it has completed stays.
    void forget(const WorkQueue& queue) noexcept;

    SpinLock& mutex() noexcept { return mutex_; }

    /// With mutex() held: adds a completion that the hardware does not know. Overrun: dropped, and reported.
    void add(const Completion& completion, WorkQueue& queue) noexcept;

private:
    struct Entry {
        Completion completion;
        WorkQueue* queue;  ///< whose place it takes; null: nobody's
    };

    enum class Armed : std::uint8_t { No, Solicited, Any };

    /// What endpoints of one shared queue have here together.
    struct Share {
        std::uint32_t endpoints = 0;
        std::uint32_t places = 0;
    };

    CompletionQueue(Device& device, const backend::CompletionQueueInit& init);
    [[gnu::cold, gnu::noinline]] Status grow(std::uint32_t places) noexcept;
    [[gnu::noinline]] void drain() noexcept;
    void buffer(const Entry& entry) noexcept;
    void count_places() noexcept;
    void notify() noexcept;
    [[gnu::noinline]] std::size_t take_buffered(std::span<Completion> out) noexcept;
    std::size_t fetch(std::span<Completion> out) noexcept;
    bool interpret(const ibv_wc& result, Completion& completion, WorkQueue*& queue) noexcept;

    Device& device_;
    const std::uint64_t context_;
    Channel* const channel_;
    std::atomic<Armed> armed_{Armed::No};
    std::atomic<std::uint32_t> places_{0};    // in the hardware's queue, as far as there is memory to take them over
    std::atomic<std::uint32_t> reserved_{0};  // of those
    SpinLock mutex_;                          // guards what follows
    CompletionQueueOwner hardware_;
    std::uint32_t capacity_;
    support::Fifo<Entry> buffered_;
    std::size_t failures_ = 0;  // of those
    std::unordered_map<std::uint32_t, WorkQueue*> shared_receivers_;
    std::unordered_map<const SharedReceiveQueue*, Share> shares_;
};

}  // namespace viaduct::verbs
