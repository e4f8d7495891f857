// SPDX-License-Identifier: BSD-3-Clause
// The producer's end of a ring of slots: which slots and which ranges of the area are free, how many receives the peer
// has posted, and when the peer must be woken.
#pragma once

#include <array>

#include "backends/loopback/area_copy.hpp"
#include "backends/loopback/ring_consumer.hpp"
#include "core/base/counter.hpp"

namespace viaduct::loopback {

/// Not thread-safe. Positions are total numbers of slots written since attach(), plus the position of the first one.
class RingProducer {
public:
    /// Starts with an empty ring. `opposite`: the consumer's end, on this side, of the other direction; what the peer
    /// has consumed and posted is told in its slots.
    void attach(const Ring& ring, const RingConsumer& opposite) noexcept;

    // ---- Slots ----

    /// Returns the slot to fill in and publish next. There must be a free one.
    wire::Slot& next() const noexcept { return ring_.slot(next_); }

    /// Hands the slot over to the peer. Fills in all but its payload.
    [[gnu::always_inline]] void publish(wire::Slot& slot, wire::SlotKind kind, std::uint8_t flags, std::uint32_t length,
                                        std::uint32_t immediate) noexcept {
        const RingConsumer& opposite = *opposite_;
        slot.kind = kind;
        slot.flags = flags;
        slot.length = length;
        slot.immediate = immediate;
        slot.credit = opposite.posted();
        slot.consumed.store(opposite.consumed(), std::memory_order_relaxed);
        slot.sequence.store(static_cast<std::uint32_t>(++next_), std::memory_order_release);
    }

    /// The position after the last published slot.
    std::uint64_t end() const noexcept { return next_; }

    /// Reports whether a slot is known to be free. find_slot() also looks at what the peer has consumed meanwhile and,
    /// if there is none, arranges to be rung when there is.
    bool has_slot() const noexcept { return next_ - consumed_ < wire::slot_count; }
    bool find_slot() noexcept;

    bool is_consumed(std::uint64_t position) const noexcept { return consumed_ >= position; }

    /// Looks at what the peer has consumed.
    void read_consumed() noexcept;

    /// The common case of read_consumed(): returns whether the peer's slots tell that all is consumed.
    bool read_all_consumed() noexcept {
        if (told_consumed() != next_) return false;
        set_consumed(next_);
        return true;
    }

    /// Reports whether the peer's number of consumed slots was impossible. It is not used any more.
    bool is_corrupt() const noexcept { return corrupt_; }

    /// The peer's reason for ending the connection.
    wire::Fault fault() const noexcept { return ring_.direction->consumer.fault.load(std::memory_order_acquire); }

    /// If there is one: reports whether it concerns the slot at this position or a later one.
    bool is_fault_since(std::uint64_t position) const noexcept {
        const std::uint32_t slot = ring_.direction->consumer.fault_slot.load(std::memory_order_relaxed);
        return static_cast<std::int32_t>(slot - static_cast<std::uint32_t>(position)) >= 0;
    }

    // ---- The area ----

    std::byte* area(std::uint32_t offset) const noexcept { return ring_.area + offset; }

    /// Copies to a place in the area. Returns false if the source is not there; a part may have been copied.
    [[gnu::always_inline]] bool copy_to_area(std::byte* target, const std::byte* source,
                                             std::uint64_t length) noexcept {
        return copy_(target, source, length);
    }

    /// Finds room for `length` bytes in the area and assigns it to the next slot, until that is consumed. Returns false
    /// if there is no room. Otherwise publish() or unplace() follows, before anything else.
    [[gnu::always_inline]] bool place(std::uint32_t length, std::uint32_t& offset) noexcept {
        const std::uint32_t size = (length + area_step - 1) / area_step * area_step;
        if (!find_range(size, offset) && !await_range(size, offset)) return false;
        area_head_ = offset + size;
        ranges_[ranges_end_++ & wire::slot_mask] = {.slot = static_cast<std::uint16_t>(next_),
                                                    .end = static_cast<std::uint16_t>(area_head_ / area_step)};
        return true;
    }

    /// Takes that back, before the slot is published.
    void unplace(std::uint32_t offset) noexcept {
        area_head_ = offset;
        --ranges_end_;
    }

    // ---- Receives of the peer ----

    /// Reports whether the peer has posted a receive for the next message.
    [[gnu::always_inline]] bool has_credit() noexcept {
        if (is_credit_left()) return true;
        const std::uint32_t told = opposite_->told_credit();
        if (told - sent_ <= max_receives) credit_ = told;
        return is_credit_left() || read_credit();
    }
    void take_credit() noexcept { ++sent_; }
    void return_credit() noexcept { --sent_; }

    // ---- Waking the peer ----

    /// Reports whether the peer's consumer does not poll, so that ring() is necessary. Called for every message.
    [[nodiscard, gnu::always_inline]] bool must_ring() const noexcept {
        Fence::light(ring_.asymmetric_fences);
        return ring_.direction->wakeup.need_wakeup.load(std::memory_order_relaxed) != 0;
    }
    [[gnu::noinline]] void ring() noexcept {
        rings_.add();
        ring_.ring();
    }

    /// How often it rang, also before attach(). Needs no lock.
    std::uint64_t rings() const noexcept { return rings_.value(); }

    /// Asks the peer to ring when it consumes slots or posts receives, or no longer to do so.
    void set_waiting(bool waiting) noexcept;
    bool is_waiting() const noexcept { return waiting_; }

private:
    static constexpr std::uint32_t area_step = 64;  // ranges are aligned to cache lines

    /// The maximum number of receives of a queue. A larger difference means that the number is stale.
    static constexpr std::uint32_t max_receives = 65535;

    bool is_credit_left() const noexcept { return static_cast<std::int32_t>(credit_ - sent_) > 0; }
    bool read_credit() noexcept {
        credit_ = ring_.direction->credit.posted.load(std::memory_order_acquire);
        return is_credit_left();
    }
    /// A range of the area that a slot uses.
    struct Range {
        std::uint16_t slot;  // position, modulo 2^16
        std::uint16_t end;   // in steps
    };
    static_assert(wire::area_bytes / area_step <= 0xffff);

    bool is_area_empty() const noexcept { return ranges_begin_ == ranges_end_; }

    /// Frees the ranges of the area that were consumed.
    void set_consumed(std::uint64_t now) noexcept {
        consumed_ = now;
        if (now == next_) ranges_begin_ = ranges_end_;
        for (; !is_area_empty(); ++ranges_begin_) {
            const Range& oldest = ranges_[ranges_begin_ & wire::slot_mask];
            if (static_cast<std::uint16_t>(oldest.slot - now) < wire::slot_count) break;
            area_tail_ = oldest.end * area_step;
        }
    }
    /// The area is a ring of ranges. When it is empty, it starts at 0 again, so that light traffic uses few cache
    /// lines.
    [[gnu::always_inline]] bool find_range(std::uint32_t size, std::uint32_t& offset) noexcept {
        if (is_area_empty()) {
            area_head_ = area_tail_ = offset = 0;
            return true;
        }
        if (area_head_ <= area_tail_) {
            offset = area_head_;
            return area_tail_ - area_head_ >= size;
        }
        offset = wire::area_bytes - area_head_ >= size ? area_head_ : 0;
        return offset != 0 || area_tail_ >= size;
    }
    [[gnu::noinline]] bool await_range(std::uint32_t size, std::uint32_t& offset) noexcept;
    std::uint64_t told_consumed() const noexcept { return opposite_->told_consumed() + told_lack_; }
    void correct_told() noexcept;
    bool is_room_coming() noexcept;

    Ring ring_;
    const RingConsumer* opposite_ = nullptr;
    std::uint64_t next_ = 0;
    std::uint64_t consumed_ = 0;   // the number of slots known to be consumed
    std::uint64_t told_lack_ = 0;  // what opposite_->told_consumed() lacks, a multiple of 2^16
    std::uint32_t mark_ = 0;       // the position of the other direction at some time; see correct_told()
    std::uint64_t consumed_at_mark_ = 0;
    std::uint32_t sent_ = 0;    // the number of messages sent that consume a receive
    std::uint32_t credit_ = 0;  // the number of receives known to be posted
    std::uint32_t area_head_ = 0;
    std::uint32_t area_tail_ = 0;
    AreaCopy copy_;
    bool waiting_ = false;
    bool corrupt_ = false;
    Counter rings_;
    std::uint64_t rung_at_ = 0;  // next_ when the peer was last rung for lack of room
    // The ranges in use, at most one for each slot, are those from ranges_begin_ on.
    std::uint32_t ranges_begin_ = 0;
    std::uint32_t ranges_end_ = 0;
    std::array<Range, wire::slot_count> ranges_{};
};

}  // namespace viaduct::loopback
