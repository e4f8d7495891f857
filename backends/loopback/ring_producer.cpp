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
    std::uint64_t more = since_then(opposite_->told_consumed());
    if (more < open) more = std::max(more, since_then(opposite_->consumed_by_front()));
    if (more < open) {
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
}

bool RingProducer::await_range(std::uint32_t size, std::uint32_t& offset) noexcept {
    while (!find_range(size, offset))
        if (!is_room_coming()) return false;
    return true;
}

}  // namespace viaduct::loopback
