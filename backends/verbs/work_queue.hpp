// SPDX-License-Identifier: BSD-3-Clause
// The common part of the work queues of an endpoint: the requests in the hardware, in order.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <memory>

#include "core/backend.hpp"
#include "core/base/spin_lock.hpp"

namespace viaduct::verbs {

class CompletionQueue;
class Link;
class ProtectionDomain;
class SharedReceiveQueue;
class WorkQueue;

/// The record of a request until it completes. Its address is the work request id. Not initialized until it is used,
/// because most slots of a deep queue are never used.
struct Slot {
    WorkQueue* queue;            ///< null for a slot of a shared queue
    SharedReceiveQueue* shared;  ///< the shared queue
    std::uint64_t context;
    union {
        Sge first_piece{};     ///< receives: the first SGE, of length 0 if there is none
        std::uint64_t window;  ///< binds in the hardware: the number of the window; otherwise 0
    };
    std::uint32_t bytes;
    CompletionCode fault;
    CompletedOperation operation;
    bool notifies;     ///< an RDMA write with immediate data
    bool signaled;     ///< the consumer wants a completion on success
    bool in_hardware;  ///< false: waits to be flushed because an earlier request failed
    bool is_marker;    ///< not a request of the consumer, so not reported
};

struct Translation {
    bool silent = false;   ///< failures at the peer are reported to the initiator as success
    bool reliable = true;  ///< an error of the consumer ends the connection, like an error of the hardware
    const ProtectionDomain* domain = nullptr;
    unsigned invalidated = IBV_WC_WITH_INV;  ///< the hardware's flag for a message that has invalidated a window
};

struct WorkQueueInit {
    std::uint32_t depth = 0;
    std::uint32_t max_sges = 0;  ///< per request
    std::uint64_t endpoint_context = 0;
};

/// Locks: posting requires mutex(), completing requires the lock of the completion queue. Lock order: mutex() first.
class WorkQueue {
public:
    enum class Mode : std::uint8_t {
        Idle,     ///< not connected: sends are flushed, receives are kept for the next connection
        Live,     ///< requests are posted to the hardware
        Stalled,  ///< an error occurred on a reliable connection: requests wait to be flushed
        Broken,   ///< requests are flushed immediately
    };

    WorkQueue(QueueKind kind, CompletionQueue& completions, const WorkQueueInit& init);
    virtual ~WorkQueue();
    WorkQueue(const WorkQueue&) = delete;
    WorkQueue& operator=(const WorkQueue&) = delete;

    SpinLock& mutex() noexcept { return mutex_; }
    CompletionQueue& completions() const noexcept { return completions_; }
    std::uint32_t depth() const noexcept { return depth_; }
    std::uint32_t max_sges() const noexcept { return max_sges_; }
    std::uint32_t outstanding() const noexcept { return outstanding_.load(std::memory_order_acquire); }
    std::uint64_t endpoint_context() const noexcept { return endpoint_context_; }

    // mutex() must be held for the functions below.
    Mode mode() const noexcept { return mode_; }
    void set_mode(Mode mode) noexcept { mode_ = mode; }
    void activate(ibv_qp* queue_pair, const Translation& translation, Link* link) noexcept;

    // The lock of the completion queue must be held for the functions below.
    /// Converts a completion of the hardware. Returns false if it is not reported to the consumer.
    [[gnu::hot]] bool complete(const Slot& slot, const ibv_wc& result, Completion& completion) noexcept;
    void complete_shared(const Slot& slot, const ibv_wc& result, Completion& completion) noexcept;
    void taken() noexcept { outstanding_.fetch_sub(1, std::memory_order_release); }

    /// Reports whether every request before that position is complete. Takes the lock of the completion queue.
    bool is_retired(std::uint32_t position) noexcept;

    /// Flushes the requests that the hardware has not completed. The hardware must no longer use the queue. Takes the
    /// lock of the completion queue.
    void flush() noexcept;

protected:
    /// Returns false if there is no room for a request.
    bool make_room() noexcept { return outstanding() < depth_ || collect(); }

    /// Reports whether there is a slot for the next request. Completed requests occupy no slot, even if they have not
    /// been polled.
    bool has_slot() noexcept;

    /// Returns the slot of the next request. push() adds it to the queue before the hardware can complete it; unpush()
    /// reverts that.
    Slot& next_slot() noexcept { return ring_[posted_ & mask_]; }
    void push() noexcept {
        ++posted_;
        count();
    }
    void unpush() noexcept {
        --posted_;
        uncount();
    }
    void count() noexcept { outstanding_.fetch_add(1, std::memory_order_relaxed); }
    void uncount() noexcept { outstanding_.fetch_sub(1, std::memory_order_relaxed); }

    /// Completes a request immediately.
    [[gnu::cold, gnu::noinline]] void flush_at_once(std::uint64_t context, CompletedOperation operation) noexcept {
        count();
        complete_now(context, operation, CompletionCode::Flushed);
    }
    void complete_now(std::uint64_t context, CompletedOperation operation, CompletionCode code) noexcept;

    ibv_qp* queue_pair_ = nullptr;
    Mode mode_ = Mode::Idle;
    std::uint32_t posted_ = 0;

private:
    [[gnu::cold, gnu::noinline]] bool collect() noexcept;
    CompletionCode code_of(const Slot& slot, const ibv_wc& result) const noexcept;
    [[gnu::cold, gnu::noinline]] CompletionCode code_of_failure(const Slot& slot, const ibv_wc& result) const noexcept;
    CompletionCode code_of_receive(const Slot& slot, const ibv_wc& result) const noexcept;
    void describe(const Slot& slot, const ibv_wc& result, CompletionCode code, Completion& completion) const noexcept;
    void report(const ibv_wc& result, CompletionCode code) noexcept;
    void retire_first() noexcept;

    const QueueKind kind_;
    CompletionQueue& completions_;
    const std::uint32_t depth_;
    const std::uint32_t max_sges_;
    const std::uint32_t mask_;
    const std::uint64_t endpoint_context_;
    std::unique_ptr<Slot[]> ring_;
    std::atomic<std::uint32_t> outstanding_{0};
    SpinLock mutex_;
    std::uint32_t retired_ = 0;  // guarded by the completion queue's lock, like all members below
    Translation translation_;
    Link* link_ = nullptr;  // errors are reported to it
};

}  // namespace viaduct::verbs
