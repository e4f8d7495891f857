// SPDX-License-Identifier: BSD-3-Clause
#include "backends/loopback/ring_consumer.hpp"

#include <algorithm>

namespace viaduct::loopback {

void RingConsumer::advertise(const Ring& ring, std::uint32_t posted) noexcept {
    ring_ = ring;
    posted_.store(posted, std::memory_order_relaxed);
    ring_.direction->credit.posted.store(posted, std::memory_order_release);
}

void RingConsumer::attach(const Ring& ring) noexcept {
    ring_ = ring;
    attached_ = true;
    next_.store(ring.first, std::memory_order_relaxed);
    confirmed_ = ring.first;
    unconfirmed_bytes_ = 0;
    told_credit_.store(0, std::memory_order_relaxed);
    told_consumed_.store(0, std::memory_order_relaxed);
}

void RingConsumer::detach() noexcept {
    if (attached_) confirm();
    attached_ = false;
    withdraw();
}

void RingConsumer::withdraw() noexcept {
    ring_ = {};
    posted_.store(0, std::memory_order_relaxed);
}

void RingConsumer::ring_producer() noexcept {
    rings_.add();
    ring_.ring();
}

void RingConsumer::confirm_if_awaited(bool anyway) noexcept {
    if (is_producer_waiting())
        confirm();
    else if (anyway)
        ring_.direction->consumer.consumed.store(next_.load(std::memory_order_relaxed), std::memory_order_release);
}

void RingConsumer::report(wire::Fault fault) noexcept {
    wire::ConsumerLine& line = ring_.direction->consumer;
    if (confirmed_ != next_.load(std::memory_order_relaxed)) confirm_quietly();
    line.fault_slot.store(next_.load(std::memory_order_relaxed), std::memory_order_relaxed);
    line.fault.store(fault, std::memory_order_release);
}

std::uint64_t RingConsumer::consumed_by_front() const noexcept {
    const std::uint64_t before = told_consumed();
    const std::uint32_t next = next_.load(std::memory_order_acquire);
    const wire::Slot& slot = ring_.slot(next);
    if (slot.sequence.load(std::memory_order_acquire) != next + 1) return before;
    const std::uint16_t told = slot.consumed.load(std::memory_order_acquire);
    if (slot.sequence.load(std::memory_order_relaxed) != next + 1) return before;  // the slot was reused meanwhile
    // Another thread may consume several slots and note the last one while this one is still at the front.
    const auto more = static_cast<std::int16_t>(told - before);
    return before + static_cast<std::uint64_t>(std::max<std::int16_t>(more, 0));
}

}  // namespace viaduct::loopback
