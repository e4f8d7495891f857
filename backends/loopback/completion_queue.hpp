// SPDX-License-Identifier: BSD-3-Clause
// A completion queue. Its lock is also the lock of every work queue attached to it, so a call on the data path takes
// one lock.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <vector>

#include "backends/loopback/packed_completion.hpp"
#include "backends/support/channel.hpp"
#include "core/backend.hpp"
#include "core/base/biased_lock.hpp"
#include "core/base/counter.hpp"
#include "core/base/fifo.hpp"

namespace viaduct::loopback {

class Device;

using support::Channel;

/// The interface of a work queue to its completion queue. Called with the lock of the completion queue held, which
/// clang does not see.
class WorkQueue {
public:
    /// `depth`: the maximum number of outstanding requests.
    explicit WorkQueue(std::uint32_t depth) noexcept : depth_(depth) {}
    virtual void progress() noexcept = 0;

    /// Takes a completion for CompletionQueue::poll_one() if no completion is queued and there is no other work queue.
    /// The thread holds the lock as its owner; the function releases it. What is not common is left to
    /// CompletionQueue::find_one_as_owner().
    virtual bool poll_one_as_owner(Completion& out) noexcept = 0;

    /// Asks the peer to ring the doorbell when requests complete, because this side will not poll.
    virtual void expect_ring() noexcept = 0;

    /// Reports whether executed requests wait for the peer's confirmation.
    virtual bool awaits_confirmation() const noexcept { return false; }

    /// Returns the number of posted requests whose completions have not been polled.
    std::uint32_t outstanding() const noexcept { return outstanding_.load(std::memory_order_relaxed); }

protected:
    /// Which requests and messages are handled directly.
    enum class Kind {
        Short,  // what a slot holds or a few loads copy, in the regions that were used last: without a call
        Any,
    };

    /// The result of a post that handles only the common case.
    enum class Posted {
        No,  // without any effect
        Yes,
        MustRing,  // the same, and the peer must be rung
    };

    ~WorkQueue() = default;
    bool is_full() const noexcept { return outstanding() >= depth_; }

    /// Reports whether there is room for one more request, and memory to keep it.
    bool has_room() const noexcept { return outstanding() < room_; }

    /// There is memory for so many requests.
    void set_room(std::size_t requests) noexcept {
        room_ = static_cast<std::uint32_t>(std::min<std::size_t>(depth_, requests));
    }

    friend class CompletionQueue;
    [[gnu::always_inline]] void count_posted() noexcept { add_alone(outstanding_, std::uint32_t{1}); }
    [[gnu::always_inline]] void count_polled(std::uint32_t count = 1) noexcept { subtract_alone(outstanding_, count); }

    /// Gives a completion to a poll. Copies field by field; see Word.
    [[gnu::always_inline]] void hand_out(const Completion& completion, Completion& to) noexcept {
        to.context = completion.context;
        to.endpoint_context = completion.endpoint_context;
        to.bytes = completion.bytes;
        to.immediate = completion.immediate;
        to.operation = completion.operation;
        to.code = completion.code;
        to.with_immediate = completion.with_immediate;
        to.invalidated = completion.invalidated;
        to.observed = completion.observed;
        count_polled();
    }

private:
    const std::uint32_t depth_;
    std::uint32_t room_ = 0;                     // outstanding requests for which there is memory; at most depth_
    std::atomic<std::uint32_t> outstanding_{0};  // written with the lock held
    bool busy_ = false;                          // polled one by one, although the completion queue is oversubscribed
    bool revisited_ = false;                     // visited now and then by an oversubscribed completion queue
    std::uint32_t used_at_ = 0;                  // if busy: the number of the poll that last found something
};

class CompletionQueue final : public backend::CompletionQueue {
public:
    CompletionQueue(Device& device, const backend::CompletionQueueInit& init);
    ~CompletionQueue() override;

    std::size_t poll(std::span<Completion> out) noexcept override;
    bool poll_one(Completion& out) noexcept override;
    bool ready() noexcept override;
    Status arm(Arm what) noexcept override;
    Status resize(std::uint32_t capacity) noexcept override;

    BiasedLock& lock() noexcept VIADUCT_RETURNS_LOCK(lock_) { return lock_; }

    /// If there is no room, the completion is lost and the device reports it.
    [[gnu::always_inline]] void push(const Completion& completion, WorkQueue& from, bool solicited = false) noexcept
        VIADUCT_REQUIRES(lock_) {
        if (has_output())
            from.hand_out(completion, *output_++);
        else
            enqueue(completion, from, solicited);
    }

    /// Reports whether poll() wants a completion.
    bool has_output() const noexcept VIADUCT_REQUIRES(lock_) { return output_ != output_end_; }

    /// Where poll() wants the next completions. Call handed_out() once they are written.
    std::span<Completion> output() const noexcept VIADUCT_REQUIRES(lock_) { return {output_, output_end_}; }
    void handed_out(std::size_t count) noexcept VIADUCT_REQUIRES(lock_) { output_ += count; }

    /// Not for poll(). Otherwise like push().
    [[gnu::always_inline]] void enqueue(const Completion& completion, WorkQueue& from, bool solicited) noexcept
        VIADUCT_REQUIRES(lock_) {
        if (items_.size() >= room_ && !make_room()) [[unlikely]]
            return lose(from, completion.endpoint_context, completion.operation);
        const bool counts = solicited || completion.code != CompletionCode::Success;
        Item& item = items_.vacant();
        items_.commit();
        item.completion.store(completion, counts);
        if (observer_ != nullptr && observer_(item.completion.view())) item.completion.mark_observed();
        item.outstanding = &from.outstanding_;
        if (counts) add_counting();
        signal_items();
    }

    /// Not for poll(). Queues the completion of a request of the send queue that succeeded
    /// while it was posted. is_quiet() and can_add_success() must be true.
    [[gnu::always_inline]] void add_success(std::uint64_t context, std::uint64_t endpoint_context,
                                            CompletedOperation operation, std::uint32_t bytes, WorkQueue& from) noexcept
        VIADUCT_REQUIRES(lock_) {
        if (record_ != nullptr) record_->write(context, operation, bytes);
        Item& item = items_.vacant();
        items_.commit();
        item.completion.store_success(context, endpoint_context, operation, bytes, if_recorded_);
        item.outstanding = &from.outstanding_;
    }

    /// Reports whether there are no programs that an observer has to tell.
    bool can_add_success() const noexcept { return observer_ == nullptr || record_ != nullptr; }

    /// Reports whether there is a place for a completion, which wakes nobody.
    bool is_quiet() const noexcept VIADUCT_REQUIRES(lock_) { return items_.size() < room_; }

    /// Wakes a consumer that sleeps if there are completions for it. Returns whether there are
    /// any.
    ///
    /// The thread that armed the queue may take only some of the completions while another thread already sleeps.
    [[gnu::always_inline]] bool signal_items() noexcept VIADUCT_REQUIRES(lock_) {
        if (is(armed) && (armed_for_ == Arm::Any ? !items_.empty() : solicited_ != 0)) disarm();
        return !items_.empty();
    }

    /// Reports a completion for which there was no place.
    [[gnu::cold, gnu::noinline]] void lose(WorkQueue& from, std::uint64_t endpoint_context,
                                           CompletedOperation operation) noexcept VIADUCT_REQUIRES(lock_);

    /// Reports whether poll() has as many completions as it was asked for, and will be called
    /// again for what has arrived besides.
    bool is_output_full() const noexcept VIADUCT_REQUIRES(lock_) {
        return output_ == output_end_ && output_ != nullptr && !is(oversubscribed);
    }

    /// Reports whether the consumer is assumed to poll this work queue.
    bool is_polled(const WorkQueue& queue) const noexcept VIADUCT_REQUIRES(lock_) {
        return !is(armed) && (!is(oversubscribed) || queue.busy_);
    }

    /// Reports whether polls look at each work queue.
    bool polls_all() const noexcept VIADUCT_REQUIRES(lock_) { return (special_ & (armed | oversubscribed)) == 0; }

    /// Reports whether polls will find a confirmation that the work queue waits for. Otherwise
    /// the peer must ring.
    [[gnu::noinline]] bool will_find_confirmation(WorkQueue& queue) noexcept VIADUCT_REQUIRES(lock_) {
        if (is(oversubscribed) && !is(armed)) [[unlikely]]
            revisit(queue);
        return !is(armed);
    }

    /// Called for a work queue whose doorbell rang. Reports whether add_busy() is useful: the
    /// doorbell also rang a short time ago, and there is room.
    bool rings_often(const WorkQueue& queue) noexcept VIADUCT_REQUIRES(lock_);

    /// Polls the work queue one by one from now on, even if this queue is oversubscribed, until
    /// it has been idle for some time. It needs no doorbell meanwhile.
    void add_busy(WorkQueue& queue) noexcept VIADUCT_REQUIRES(lock_);

    /// Reports whether push() has room. If not, the work queues make progress again when a
    /// consumer has taken completions.
    bool has_room() noexcept VIADUCT_REQUIRES(lock_);

    /// Keeps a place for the completion of a message that has begun to arrive, for which has_room() is true. It is
    /// given back before push().
    void keep_place() noexcept VIADUCT_REQUIRES(lock_) {
        ++reserved_;
        if (room_ != 0) --room_;
    }
    void give_back_place() noexcept VIADUCT_REQUIRES(lock_) { --reserved_; }

    void attach(WorkQueue& queue);
    void detach(WorkQueue& queue) noexcept;

    /// The rest of poll_one() if no completion is queued: lets the work queues make progress, and releases the lock.
    [[gnu::noinline]] bool find_one_as_owner(Completion& out) noexcept VIADUCT_RELEASE(lock_);

    /// Changes whenever a consumer polls. The agent uses it to detect that it is not needed.
    std::uint32_t polls() const noexcept { return polls_.load(std::memory_order_relaxed); }

private:
    struct Item {
        PackedCompletion completion;
        std::atomic<std::uint32_t>* outstanding = nullptr;  // of the work queue, or orphans_ if that was destroyed
    };

    /// What the common case of a poll does not handle.
    enum Special : unsigned {
        oversubscribed = 1,  // too many work queues to poll each; the doorbell boards show which ones are ready
        armed = 2,
        waits_for_room = 4,  // a work queue waits for room
        counting = 8,        // items are solicited or failed
    };
    [[gnu::always_inline]] bool is(Special special) const noexcept VIADUCT_REQUIRES(lock_) {
        return (special_ & special) != 0;
    }
    void set(Special special, bool on) noexcept VIADUCT_REQUIRES(lock_) {
        special_ = on ? special_ | special : special_ & ~special;
    }

    bool is_full() const noexcept VIADUCT_REQUIRES(lock_) { return items_.size() + reserved_ >= capacity_; }
    void find_room() noexcept VIADUCT_REQUIRES(lock_);
    [[gnu::cold, gnu::noinline]] bool make_room() noexcept VIADUCT_REQUIRES(lock_);
    void take_front(Completion& out) noexcept VIADUCT_REQUIRES(lock_);
    [[gnu::noinline]] bool poll_one_slowly(Completion& out) noexcept;
    [[gnu::noinline]] bool poll_one_as_owner(Completion& out) noexcept VIADUCT_RELEASE(lock_);
    void add_counting() noexcept VIADUCT_REQUIRES(lock_) {
        ++solicited_;
        set(counting, true);
    }
    void finish_taking() noexcept VIADUCT_REQUIRES(lock_);
    /// The work queues of an oversubscribed queue that deserve attention.
    struct Ready {
        static constexpr std::size_t max_busy = 32;
        std::array<WorkQueue*, max_busy> busy{};
        std::size_t busy_count = 0;
        std::array<const WorkQueue*, 16> rang{};  // the last ones whose doorbell rang, in a ring
        std::uint32_t rings = 0;
        std::vector<WorkQueue*> revisited;  // with room for all; those that wait for confirmations
        std::size_t next_revisited = 0;
        std::span<WorkQueue*> all_busy() noexcept { return std::span(busy).first(busy_count); }
    };

    /// Connections whose doorbell rang, but that must be served without the lock.
    struct Others {
        std::array<std::uint32_t, 32> numbers;
        std::size_t count = 0;
    };

    std::size_t poll_each(std::span<Completion> out) noexcept VIADUCT_REQUIRES(lock_);
    [[gnu::noinline]] std::size_t poll_many(std::span<Completion> out) noexcept;
    [[gnu::noinline]] std::size_t poll_ready(std::span<Completion> out, Others& others) noexcept
        VIADUCT_REQUIRES(lock_);
    void poll_busy() noexcept VIADUCT_REQUIRES(lock_);
    [[gnu::noinline]] void revisit(WorkQueue& queue) noexcept VIADUCT_REQUIRES(lock_);
    void revisit_one() noexcept VIADUCT_REQUIRES(lock_);
    void answer_doorbell(Others& others) noexcept VIADUCT_REQUIRES(lock_);
    [[gnu::noinline]] void retire_idle() noexcept VIADUCT_REQUIRES(lock_);
    void serve(const Others& others) noexcept;
    std::size_t take(std::span<Completion> out) noexcept VIADUCT_REQUIRES(lock_);
    std::size_t take_all(std::span<Completion> out) noexcept VIADUCT_REQUIRES(lock_);
    std::size_t find(std::span<Completion> out) noexcept VIADUCT_REQUIRES(lock_);
    void set_output(std::span<Completion> out) noexcept VIADUCT_REQUIRES(lock_) {
        output_ = out.data();
        output_end_ = out.data() + out.size();
    }
    std::size_t end_output(std::span<Completion> out) noexcept VIADUCT_REQUIRES(lock_) {
        const auto found = static_cast<std::size_t>(output_ - out.data());
        output_ = output_end_ = nullptr;
        if (is(waits_for_room) && found != 0) [[unlikely]]
            finish_taking();  // one may have had the last place
        return found;
    }
    void progress() noexcept VIADUCT_REQUIRES(lock_);
    [[gnu::always_inline]] void count_poll() noexcept { add_alone(polls_, std::uint32_t{1}); }

    [[gnu::noinline]] void disarm() noexcept VIADUCT_REQUIRES(lock_);
    void attached_changed() noexcept VIADUCT_REQUIRES(lock_);
    void set_oversubscribed(bool on) noexcept VIADUCT_REQUIRES(lock_);

    Device& device_;
    const std::uint64_t context_;
    Channel* const channel_;
    const CompletionObserver observer_;
    const CompletionRecord* const record_;
    const std::uint64_t if_recorded_ = PackedCompletion::observed_if(record_ != nullptr);
    BiasedLock lock_;
    std::uint32_t capacity_ VIADUCT_GUARDED_BY(lock_);
    std::size_t room_ VIADUCT_GUARDED_BY(lock_) = 0;      // how many items need neither make_room() nor signal_items()
    std::size_t reserved_ VIADUCT_GUARDED_BY(lock_) = 0;  // for messages that have begun to arrive
    Fifo<Item> items_ VIADUCT_GUARDED_BY(lock_){16};
    std::size_t solicited_ VIADUCT_GUARDED_BY(lock_) = 0;  // number of solicited or failed items
    std::atomic<std::uint32_t> orphans_{0};
    unsigned special_ VIADUCT_GUARDED_BY(lock_) = 0;
    std::vector<WorkQueue*> attached_ VIADUCT_GUARDED_BY(lock_);
    WorkQueue* only_ VIADUCT_GUARDED_BY(lock_) = nullptr;     // if exactly one is attached
    std::unique_ptr<Ready> ready_ VIADUCT_GUARDED_BY(lock_);  // exists once the queue was oversubscribed
    Arm armed_for_ VIADUCT_GUARDED_BY(lock_) = Arm::Any;
    Completion* output_ VIADUCT_GUARDED_BY(lock_) =
        nullptr;  // the rest of the consumer's array while poll() makes progress
    Completion* output_end_ VIADUCT_GUARDED_BY(lock_) = nullptr;
    std::atomic<std::uint32_t> polls_{0};
};

}  // namespace viaduct::loopback
