// SPDX-License-Identifier: BSD-3-Clause
// What the two work queues of an endpoint have in common: the requests that the hardware has, in their order.
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

/// What is remembered of a request until it completes; its address is the hardware's name for it. Left as it is until
/// it is used: most of a deep queue never is.
struct Slot {
    WorkQueue* queue;            ///< null: the slot is of a shared queue
    SharedReceiveQueue* shared;  ///< that one
    std::uint64_t context;
    union {
        Sge first_piece{};     ///< of a receive; of length 0 where it has none
        std::uint64_t window;  ///< of a bind that the hardware has: its number; else 0
    };
    std::uint32_t bytes;
    CompletionCode fault;
    CompletedOperation operation;
    bool notifies;     ///< an RDMA write with immediate data
    bool signaled;     ///< the consumer wants to know of success
    bool in_hardware;  ///< false: waits in vain behind a fault
    bool is_marker;    ///< no request of the consumer's, who is told nothing
};

struct Translation {
    bool silent = false;   ///< of failures at the far end the initiator is told success
    bool reliable = true;  ///< a fault of the consumer's ends the connection, as an error of the hardware does
    const ProtectionDomain* domain = nullptr;
    unsigned invalidated = IBV_WC_WITH_INV;  ///< how the hardware says that a message has ended a window
};

struct WorkQueueInit {
    std::uint32_t depth = 0;
    std::uint32_t max_sges = 0;  ///< of one request
    std::uint64_t endpoint_context = 0;
};

/// Threads: posting holds mutex(); completing holds the lock of the completion queue; mutex() comes first.
class WorkQueue {
public:
    enum class Mode : std::uint8_t {
        Idle,     ///< not connected: sends are flushed, receives are kept for the connection to come
        Live,     ///< the hardware has the requests
        Stalled,  ///< behind a fault of a reliable connection: requests wait to be flushed
        Broken,   ///< requests are flushed at once
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

    // With mutex() held.
    Mode mode() const noexcept { return mode_; }
    void set_mode(Mode mode) noexcept { mode_ = mode; }
    void activate(ibv_qp* queue_pair, const Translation& translation, Link* link) noexcept;

    // With the lock of the completion queue held.
    /// What the hardware says of a request. False: the consumer is not to know.
    [[gnu::hot]] bool complete(const Slot& slot, const ibv_wc& result, Completion& completion) noexcept;
    void complete_shared(const Slot& slot, const ibv_wc& result, Completion& completion) noexcept;
    void taken() noexcept { outstanding_.fetch_sub(1, std::memory_order_release); }

    /// Whether every request before that position is completed. Takes the completion queue's lock.
    bool is_retired(std::uint32_t position) noexcept;

    /// Ends what the hardware has not ended; it must have let go of the queue. Takes the completion queue's lock.
    void flush() noexcept;

protected:
    /// False where no request has room.
    bool make_room() noexcept { return outstanding() < depth_ || collect(); }

    /// Whether the next request has a slot; requests that are completed and not polled have none any more.
    bool has_slot() noexcept;

    /// The slot of the next request; push() makes it part of the queue, before the hardware can complete it, and
    /// unpush() takes that back.
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

    /// A request that is over as it comes.
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
    std::uint32_t retired_ = 0;  // guarded by the completion queue's lock, as what follows
    Translation translation_;
    Link* link_ = nullptr;  // whom to tell of an error
};

}  // namespace viaduct::verbs
