// SPDX-License-Identifier: BSD-3-Clause
#include "backends/loopback/ring_producer.hpp"

#include <algorithm>
#include <utility>

namespace viaduct::loopback {

void RingProducer::attach(const Ring& ring, const RingConsumer& opposite) noexcept {
    ring_ = ring;
    opposite_ = &opposite;
    next_ = consumed_ = rung_at_ = ring.first;
    sent_ = credit_ = 0;
    ranges_begin_ = ranges_end_ = 0;
    waiting_ = corrupt_ = false;
    told_lack_ = 0;
    mark_ = opposite.position();
    consumed_at_mark_ = ring.first;
}

bool RingProducer::find_slot() noexcept {
    if (has_slot()) return true;
    read_consumed();
    return has_slot() || is_room_coming();
}

/// Sets the waiting flag and checks once more, because the peer may have consumed slots meanwhile. If it has not, asks
/// the peer's agent to consume, once per slot that needs room.
bool RingProducer::is_room_coming() noexcept {
    set_waiting(true);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    const std::uint64_t before = consumed_;
    read_consumed();
    if (consumed_ != before) return true;
    if (std::exchange(rung_at_, next_) != next_) ring();
    return false;
}

void RingProducer::set_waiting(bool waiting) noexcept {
    if (waiting_ == waiting) return;
    waiting_ = waiting;
    ring_.direction->producer.waiting.store(waiting ? 1 : 0, std::memory_order_relaxed);
}

/// The numbers in the peer's slots suffice if they cover everything. Otherwise also uses the slot that arrives next and
/// the peer's line.
void RingProducer::read_consumed() noexcept {
    const std::uint64_t open = next_ - consumed_;
    const auto since_then = [&](std::uint64_t told) {
        return told > consumed_ && told - consumed_ <= open ? told - consumed_ : 0;
    };
    std::uint64_t more = since_then(told_consumed());
    if (more < open) more = std::max(more, since_then(opposite_->consumed_by_front() + told_lack_));
    const bool told_all = more == open;
    if (!told_all) {
        const auto known = static_cast<std::uint32_t>(consumed_);
        const std::uint32_t line = ring_.direction->consumer.consumed.load(std::memory_order_acquire);
        if (line - known <= open) {
            more = std::max<std::uint64_t>(more, line - known);
        } else if (known - line > wire::slot_count) {
            corrupt_ = true;
            return;
        }
    }
    set_consumed(consumed_ + more);
    if (!told_all) correct_told();
}

/// If the peer has consumed more than 2^16 slots between two slots of its own, as in traffic of one direction, what
/// they tell is too low. But a slot more than a lap behind the mark was filled after the mark was made: the peer has
/// seen that the one in its place was consumed. So it tells at least what was known to be consumed then.
void RingProducer::correct_told() noexcept {
    constexpr std::uint64_t step = std::uint64_t{1} << 16;
    const std::uint32_t position = opposite_->position();
    if (position - mark_ <= wire::slot_count) return;
    std::atomic_thread_fence(std::memory_order_acquire);  // what is told is of the slot before the position, or later
    if (const std::uint64_t told = told_consumed(); told < consumed_at_mark_)
        told_lack_ += (consumed_at_mark_ - told + step - 1) / step * step;
    mark_ = position;
    consumed_at_mark_ = consumed_;
}

bool RingProducer::await_range(std::uint32_t size, std::uint32_t& offset) noexcept {
    while (!find_range(size, offset))
        if (!is_room_coming()) return false;
    return true;
}

}  // namespace viaduct::loopback
