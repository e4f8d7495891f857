// SPDX-License-Identifier: BSD-3-Clause
// The consumer's end of a ring of slots: what has arrived, what the producer knows of its consumption, and the number
// of receives that the producer may use.
#pragma once

#include <atomic>

#include "backends/loopback/ring.hpp"
#include "core/base/counter.hpp"
#include "core/base/fence.hpp"

namespace viaduct::loopback {

/// Not thread-safe, except the functions for the producer of the opposite direction.
class RingConsumer {
public:
    /// Starts to announce receives, of which `posted` exist. A producer can use them as soon as it is attached.
    void advertise(const Ring& ring, std::uint32_t posted) noexcept;
    bool advertises() const noexcept { return ring_.direction != nullptr; }

    /// Announces one more receive. Returns whether the producer waits for one; then call ring_producer() if this end
    /// is attached.
    [[nodiscard, gnu::always_inline]] bool add_receive() noexcept {
        wire::Direction& direction = *ring_.direction;
        const std::uint32_t posted = posted_.load(std::memory_order_relaxed) + 1;
        posted_.store(posted, std::memory_order_relaxed);
        direction.credit.posted.store(posted, std::memory_order_release);
        Fence::light(ring_.asymmetric_fences);
        return direction.producer.waiting.load(std::memory_order_relaxed) != 0;
    }
    void ring_producer() noexcept;

    /// Starts to consume slots, from the first one.
    void attach(const Ring& ring) noexcept;
    bool is_attached() const noexcept { return attached_; }

    /// Confirms all consumed slots, and stops to consume slots and to announce receives.
    void detach() noexcept;
    void withdraw() noexcept;  ///< stops to announce receives

    const Ring& ring() const noexcept { return ring_; }

    /// The position of the slot to be consumed next, which is the total number of consumed slots.
    std::uint32_t position() const noexcept { return next_.load(std::memory_order_relaxed); }

    /// The slot at a position. Once it has arrived, the peer should not change it, but may.
    const wire::Slot& slot(std::uint32_t position) const noexcept { return ring_.slot(position); }
    static bool has_arrived(const wire::Slot& slot, std::uint32_t position) noexcept {
        return slot.sequence.load(std::memory_order_acquire) == position + 1;
    }

    const wire::Slot& front() const noexcept { return slot(position()); }
    bool has_arrived(const wire::Slot& front) const noexcept { return has_arrived(front, position()); }

    /// Reads what the last slot to be consumed tells about the opposite direction. Called before pop().
    [[gnu::always_inline]] void note(const wire::Slot& slot) noexcept {
        told_credit_.store(slot.credit, std::memory_order_relaxed);
        const std::uint64_t told = told_consumed_.load(std::memory_order_relaxed);
        const auto more = static_cast<std::uint16_t>(slot.consumed.load(std::memory_order_relaxed) - told);
        told_consumed_.store(told + more, std::memory_order_release);
    }

    /// When so many slots, or so many bytes of the area, are consumed, the producer should know.
    static constexpr std::uint32_t confirm_every = wire::slot_count / 4;
    static constexpr std::uint32_t confirm_every_bytes = wire::fragment_bytes;

    /// Consumes slots, starting at the front. Returns whether the producer should know.
    [[gnu::always_inline]] bool pop(std::uint32_t count = 1) noexcept {
        const std::uint32_t next = position() + count;
        next_.store(next, std::memory_order_release);
        return next - confirmed_ >= confirm_every;
    }

    /// The same for a slot with so many bytes in the area.
    [[gnu::always_inline]] bool pop_with_area(std::uint32_t bytes) noexcept {
        unconfirmed_bytes_ += bytes;
        return pop() || unconfirmed_bytes_ >= confirm_every_bytes;
    }

    /// Tells the producer how many slots are consumed, and rings it if it waits.
    void confirm() noexcept {
        if (confirmed_ == position()) return;
        confirm_quietly();
        std::atomic_thread_fence(std::memory_order_seq_cst);
        if (is_producer_waiting()) [[unlikely]]
            ring_producer();
    }
    /// The same, but does not look whether the producer waits.
    void confirm_quietly() noexcept {
        confirmed_ = position();
        unconfirmed_bytes_ = 0;
        ring_.direction->consumer.consumed.store(confirmed_, std::memory_order_release);
    }

    /// Reports whether the producer waits for confirmations or receives.
    bool is_producer_waiting() const noexcept {
        return ring_.direction->producer.waiting.load(std::memory_order_relaxed) != 0;
    }

    /// Tells a producer that waits. Otherwise, if `anyway`, only writes the number.
    void confirm_if_awaited(bool anyway) noexcept;

    /// How often it rang the producer, also before attach(). Needs no lock.
    std::uint64_t rings() const noexcept { return rings_.value(); }

    /// Breaks the connection for the producer: the slot at the front cannot be received.
    void report(wire::Fault fault) noexcept;

    /// Asks the producer to ring for every slot, or not to.
    void set_need_wakeup(bool needed) noexcept {
        ring_.direction->wakeup.need_wakeup.store(needed ? 1 : 0, std::memory_order_release);
    }

    // For the producer of the opposite direction, in any thread.

    /// The number of receives announced since advertise().
    std::uint32_t posted() const noexcept { return posted_.load(std::memory_order_relaxed); }

    /// The number of consumed slots, modulo 2^16.
    std::uint16_t consumed() const noexcept {
        return static_cast<std::uint16_t>(next_.load(std::memory_order_acquire));
    }

    /// How many receives the peer has posted and how many slots it has consumed, according to the last slot. The second
    /// one is accumulated from 16-bit differences, so it may be too low by a multiple of 2^16, but never too high.
    std::uint32_t told_credit() const noexcept { return told_credit_.load(std::memory_order_relaxed); }
    std::uint64_t told_consumed() const noexcept { return told_consumed_.load(std::memory_order_acquire); }

    /// The second one according to the slot at the front, if it has arrived.
    std::uint64_t consumed_by_front() const noexcept;

private:
    Ring ring_;
    bool attached_ = false;
    std::atomic<std::uint32_t> next_{0};   // the position of the front
    std::uint32_t confirmed_ = 0;          // the number that the producer knows
    std::uint32_t unconfirmed_bytes_ = 0;  // of the area
    std::atomic<std::uint32_t> posted_{0};
    std::atomic<std::uint32_t> told_credit_{0};
    std::atomic<std::uint64_t> told_consumed_{0};
    Counter rings_;
};

}  // namespace viaduct::loopback
