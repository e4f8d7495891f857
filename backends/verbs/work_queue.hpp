// SPDX-License-Identifier: BSD-3-Clause
// The common part of the work queues of an endpoint: the requests in the hardware, in order.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "backends/support/traffic.hpp"
#include "backends/verbs/rdma_core.hpp"
#include "core/backend.hpp"
#include "core/base/spin_lock.hpp"

namespace viaduct::verbs {

class CompletionQueue;
class Link;
class ProtectionDomain;
class WorkQueue;

/// The record of a request until it completes. Its address is the work request id.
struct Slot {
    /// What is reported to the consumer.
    enum class Report : std::uint8_t {
        Failure,   ///< an unsignaled request
        Always,    ///< a signaled request whose success has no other effect
        Examined,  ///< a signaled request: success is only what examine() makes of it
        Never,     ///< a marker: not a request of the consumer
        Received,  ///< a receive: success is reported with the length of the message
    };

    // Constant fields, which have the same values for all requests of a queue: `queue`, and of the completion
    // `endpoint_context`, `immediate` and `observed`.
    WorkQueue* queue;       ///< null for a slot of a shared queue
    Completion completion;  ///< of the request, if it succeeds
    union {
        Sge first_piece{};     ///< receives: the first SGE, of length 0 if there is none
        std::uint64_t window;  ///< binds in the hardware: the number of the window; otherwise 0
    };
    std::uint32_t next;  ///< the position in the queue behind this request
    Report report;
    CompletionCode fault;
};

struct Translation {
    bool silent = false;   ///< requests that the peer refuses succeed; see RefusedWrite
    bool reliable = true;  ///< an error of the consumer ends the connection, like an error of the hardware
    const ProtectionDomain* domain = nullptr;
    unsigned invalidated = IBV_WC_WITH_INV;  ///< the hardware's flag for a message that has invalidated a window
};

/// Locks: posting requires mutex(), completing requires the lock of the completion queue. Lock order: mutex() first.
///
/// Requests in the hardware are in the ring, from retired_ to posted_. Requests that wait elsewhere (receives before
/// the connection, and completions that are not polled yet) are only counted.
///
/// The queue holds places in the completion queue for as many requests as were outstanding at the same time so far, so
/// that a post need not reserve one.
class WorkQueue {
public:
    enum class Mode : std::uint8_t {
        Idle,     ///< not connected: sends are flushed, receives are kept for the next connection
        Live,     ///< requests are posted to the hardware
        Stalled,  ///< an error occurred on a reliable connection: requests wait to be flushed
        Broken,   ///< requests are flushed immediately
    };

    WorkQueue(QueueKind kind, const backend::EndpointInit& init);
    virtual ~WorkQueue();
    WorkQueue(const WorkQueue&) = delete;
    WorkQueue& operator=(const WorkQueue&) = delete;

    SpinLock& mutex() const noexcept VIADUCT_RETURNS_LOCK(mutex_) { return mutex_; }
    CompletionQueue& completions() const noexcept { return completions_; }
    std::uint32_t depth() const noexcept { return depth_; }
    std::uint32_t max_sges() const noexcept { return max_sges_; }
    std::uint32_t outstanding() const noexcept {
        const std::uint32_t retired = retired_.load(std::memory_order_acquire);
        return posted_.load(std::memory_order_relaxed) - retired + waiting_.load(std::memory_order_relaxed);
    }
    std::uint64_t endpoint_context() const noexcept { return endpoint_context_; }

    /// Adds the counters of what was received and refused. Needs no lock.
    void add_to(EndpointCounters& counters) const noexcept {
        received_.add_to(counters);
        counters.refusals += refusals_.value();
    }

    Mode mode() const noexcept VIADUCT_REQUIRES(mutex_) { return mode_; }
    void set_mode(Mode mode) noexcept VIADUCT_REQUIRES(mutex_) {
        mode_ = mode;
        renew_direct();
    }
    void activate(ibv_qp* queue_pair, const Translation& translation, Link* link) noexcept VIADUCT_REQUIRES(mutex_);

    // Called by the completion queue, which holds its lock, for the functions below.
    /// Converts a completion of the hardware. Returns false if it is not reported to the consumer.
    bool complete(const Slot& slot, const ibv_wc& result, Completion& completion) noexcept {
        return complete_plainly(slot, result, completion) || examine(slot, result, completion);
    }

    /// As complete() of the slot's queue, for requests that succeeded and have no immediate data. Returns false,
    /// without changing anything, for all others, and for slots of a shared queue.
    static bool complete_plainly(const Slot& slot, const ibv_wc& result, Completion& completion) noexcept {
        if (result.status != IBV_WC_SUCCESS) return false;
        if (slot.report == Slot::Report::Always) {
            completion = slot.completion;
        } else {
            if (slot.report != Slot::Report::Received || result.opcode != IBV_WC_RECV ||
                (result.wc_flags & ~unsigned{IBV_WC_GRH}) != 0)
                return false;
            completion = slot.completion;
            completion.bytes = result.byte_len;
            slot.queue->received_.add(CountedOperation::Receive, Way::Device, result.byte_len);
        }
        slot.queue->retire(slot);
        return true;
    }
    void complete_shared(const Slot& slot, const ibv_wc& result, Completion& completion) noexcept;

    /// Counts a completion from when it leaves the ring until it is polled.
    void kept() noexcept { count(); }
    void taken() noexcept { uncount(); }

    /// Reports whether every request before that position is complete. Takes the lock of the completion queue.
    bool is_retired(std::uint32_t position) noexcept;

    /// Returns how the first request of this connection failed, other than by being flushed, or Success. Takes the lock
    /// of the completion queue.
    CompletionCode failure() noexcept;

    /// Flushes the requests that the hardware has not completed. The hardware must no longer use the queue. Takes the
    /// lock of the completion queue.
    void flush() noexcept VIADUCT_REQUIRES(mutex_);

    /// For the completion queue, which holds its lock and mutex(): returns the places that are not needed.
    std::uint32_t give_back() noexcept VIADUCT_REQUIRES(mutex_);

protected:
    /// Reports whether a request at this position, which is the next one, can be posted to the hardware without further
    /// checks: the queue is live, has room and a place in the completion queue, and set_direct() permits it.
    bool is_direct(std::uint32_t position) noexcept VIADUCT_REQUIRES(mutex_) {
        return is_known_direct(position) || find_room(position);
    }
    /// As is_direct(), but may also return false because a closer look is needed to know.
    bool is_known_direct(std::uint32_t position) const noexcept VIADUCT_REQUIRES(mutex_) {
        return position != direct_end_;
    }
    void set_direct(bool permitted) noexcept VIADUCT_REQUIRES(mutex_) {
        direct_ = permitted;
        renew_direct();
    }

    /// Returns false if there is no room for a request.
    bool make_room() noexcept { return outstanding() < depth_ || collect(); }

    /// Reports whether there is a slot for the next request. Completed requests occupy no slot, even if they have not
    /// been polled.
    bool has_slot() const noexcept { return in_ring() <= mask_; }

    /// Makes sure that there is a place in the completion queue for the next request. Errors: as
    /// CompletionQueue::reserve().
    Status make_place() noexcept VIADUCT_REQUIRES(mutex_) {
        if (outstanding() < places_) return {};
        return add_places();
    }

    /// Returns the slot of the next request. push() adds it to the queue before the hardware can complete it, and so
    /// does push_directly() if is_direct(). unpush() reverts that. For push(), all fields of the slot must be set; for
    /// push_directly(), its constant fields are set already.
    std::uint32_t position() const noexcept { return posted_.load(std::memory_order_relaxed); }
    Slot& slot_at(std::uint32_t position) noexcept { return ring_[position & mask_]; }
    void push_directly(std::uint32_t position) noexcept { posted_.store(position + 1, std::memory_order_relaxed); }
    void push() noexcept VIADUCT_REQUIRES(mutex_) {
        push_directly(position());
        direct_end_ = position();
        if (prepared_ <= mask_) prepared_ = std::max(prepared_, direct_end_);
    }
    void unpush() noexcept VIADUCT_REQUIRES(mutex_) {
        posted_.store(position() - 1, std::memory_order_relaxed);
        direct_end_ = position();  // which may have been at the end
    }
    void count() noexcept { waiting_.fetch_add(1, std::memory_order_relaxed); }
    void uncount() noexcept { waiting_.fetch_sub(1, std::memory_order_relaxed); }

    /// Says why a request fails.
    [[gnu::cold, gnu::noinline]] void tell(std::uint64_t context, CompletedOperation operation, CompletionCode code,
                                           const Reason& why) const noexcept;
    [[gnu::cold, gnu::noinline]] void flush_at_once(std::uint64_t context, CompletedOperation operation) noexcept {
        count();
        complete_now(context, operation, CompletionCode::Flushed);
    }
    /// Completes a request immediately.
    void complete_now(std::uint64_t context, CompletedOperation operation, CompletionCode code) noexcept;

    ibv_qp* queue_pair_ = nullptr;

private:
    std::uint32_t in_ring() const noexcept { return position() - retired_.load(std::memory_order_acquire); }
    [[gnu::cold, gnu::noinline]] bool collect() noexcept;
    [[gnu::cold, gnu::noinline]] Status add_places() noexcept VIADUCT_REQUIRES(mutex_);
    void renew_direct() noexcept VIADUCT_REQUIRES(mutex_);
    bool find_room(std::uint32_t position) noexcept VIADUCT_REQUIRES(mutex_) {
        const std::uint32_t base = retired_.load(std::memory_order_acquire) - waiting_.load(std::memory_order_relaxed);
        if (position - base >= direct_limit_) return false;
        direct_end_ = base + direct_limit_;
        if (prepared_ <= mask_) [[unlikely]]
            prepare(position);
        return true;
    }
    [[gnu::cold, gnu::noinline]] void prepare(std::uint32_t position) noexcept VIADUCT_REQUIRES(mutex_);
    [[gnu::noinline]] bool examine(const Slot& slot, const ibv_wc& result, Completion& completion) noexcept;

    /// Also retires the requests before it: they were unsignaled and succeeded, because failures are reported. The slot
    /// may be used for another request at once.
    void retire(const Slot& slot) noexcept { retired_.store(slot.next, std::memory_order_release); }
    void add_message(const ibv_wc& result, Completion& completion) noexcept;
    CompletionCode code_of(const Slot& slot, const ibv_wc& result) const noexcept;
    [[gnu::cold, gnu::noinline]] CompletionCode code_of_failure(const Slot& slot, const ibv_wc& result) const noexcept;
    CompletionCode code_of_receive(const Slot& slot, const ibv_wc& result) const noexcept;
    void describe(const Slot& slot, const ibv_wc& result, CompletionCode code, Completion& completion) noexcept;
    void report(const ibv_wc& result, CompletionCode code) noexcept;

    const QueueKind kind_;
    CompletionQueue& completions_;
    const std::uint32_t depth_;
    const std::uint32_t max_sges_;
    const std::uint32_t mask_;
    const std::uint64_t endpoint_context_;
    EndpointObserver& observer_;
    const std::unique_ptr<std::byte[]> memory_;  // of the ring; not initialized, because most slots of a deep queue are
                                                 // never used
    Slot* const ring_;
    std::atomic<std::uint32_t> posted_{0};   // position of the next request; written with mutex_ held
    std::atomic<std::uint32_t> retired_{0};  // position of the first request that is not complete; written with the
                                             // completion queue's lock held
    std::atomic<std::uint32_t> waiting_{0};  // outstanding requests that are not in the ring
    mutable SpinLock mutex_;
    Mode mode_ VIADUCT_GUARDED_BY(mutex_) = Mode::Idle;
    bool direct_ VIADUCT_GUARDED_BY(mutex_) = true;
    std::uint32_t direct_limit_ VIADUCT_GUARDED_BY(mutex_) = 0;  // of outstanding requests, for direct posts
    std::uint32_t direct_end_ VIADUCT_GUARDED_BY(mutex_) =
        0;  // the position up to which that limit is known to be kept
    std::uint32_t prepared_ VIADUCT_GUARDED_BY(mutex_) =
        0;  // number of slots whose constant fields are set; not before the next slot
    std::uint32_t places_ VIADUCT_GUARDED_BY(mutex_) = 0;  // in the completion queue
    // Guarded by the lock of the completion queue, a class that is not defined here:
    Translation translation_;
    Link* link_ = nullptr;  // errors are reported to it
    CompletionCode failure_ = CompletionCode::Success;
    support::TrafficCounters<CountedOperation::Receive, CountedOperation::ReceiveImmediate, Way::Device, Way::Device>
        received_;
    Counter refusals_;
};

}  // namespace viaduct::verbs
