// SPDX-License-Identifier: BSD-3-Clause
// The order of the queue and the production of slots. What the operations do is in send_operations.cpp.
#include "backends/loopback/send_queue.hpp"

#include "backends/loopback/endpoint.hpp"
#include "core/fence.hpp"

namespace viaduct::loopback {
namespace {

constexpr std::uint32_t area_step = 64;  // ranges begin on cache lines

/// What the consumer's fault word means; the peer may have written anything.
CompletionCode fault_code(wire::Fault fault) noexcept {
    switch (fault) {
        case wire::Fault::None: return CompletionCode::Success;
        case wire::Fault::Protection: return CompletionCode::RemoteProtection;
        case wire::Fault::Operation: break;
    }
    return CompletionCode::RemoteOperation;
}

}  // namespace

Status SendQueue::post(const SendRequest& request) {
    if (is_full()) return {Code::QueueFull, "the send queue is full"};
    if (request.sges.size() > endpoint_.device_attributes().max_sges)
        return {Code::InvalidParameter, "too many pieces"};
    Operation operation;
    operation.request = &request;
    operation.total = total_length(request.sges);
    operation.code = request.fault;
    if (is_atomic(request.opcode)) {
        if (request.sges.size() != 1 || operation.total != sizeof operation.value)
            operation.code = CompletionCode::LocalLength;
        else if (request.opcode == Opcode::AtomicWrite)
            std::memcpy(&operation.value, request.sges[0].address, sizeof operation.value);
    }
    if (connection_ == nullptr) {
        count(1);
        give_up(operation, CompletionCode::Flushed);
        return {};
    }
    entries_.vacant();  // what needs memory comes before what has effects
    const bool in_turn = entries_.empty() && !draining_ && !endpoint_.is_breaking();
    if (!in_turn || request.sges.size() > 2) {
        enqueue(operation);
        count(1);
        progress();
        return {};
    }
    count(1);
    switch (execute(operation)) {
        case Outcome::Finished: complete(operation, operation.code); break;
        case Outcome::InFlight:
            operation.in_flight = true;
            enqueue(operation);
            ++cursor_;
            break;
        case Outcome::Blocked: enqueue(operation); break;
    }
    return {};
}

void SendQueue::enqueue(const Operation& operation) {
    Entry& entry = entries_.vacant();
    entry.sges.assign(operation.request->sges);
    entry.request = *operation.request;
    entry.operation = operation;
    entries_.commit();
}

void SendQueue::progress() noexcept {
    if (entries_.empty() || connection_ == nullptr) return;
    read_consumed();
    while (cursor_ < (draining_ ? left_ : entries_.size()) && !endpoint_.is_breaking()) {
        Operation& operation = entries_[cursor_].ready();
        const Outcome outcome = execute(operation);
        if (outcome == Outcome::Blocked) break;
        operation.finished = outcome == Outcome::Finished;
        operation.in_flight = outcome == Outcome::InFlight;
        ++cursor_;
    }
    retire();
    if (entries_.empty() && waiting_) {
        waiting_ = false;
        connection_->outgoing().producer.waiting.store(0, std::memory_order_relaxed);
    }
}

void SendQueue::retire() noexcept {
    while (cursor_ != 0) {
        const Operation& operation = entries_.front().ready();
        if (!operation.finished && !is_consumed(operation.last_slot)) return;
        complete(operation, operation.code);
        entries_.pop();
        --cursor_;
        if (draining_ && --left_ == 0) endpoint_.request_end();
    }
}

void SendQueue::drain() noexcept {
    if (std::exchange(draining_, true)) return;
    left_ = entries_.size();
    if (left_ == 0) endpoint_.request_end();
}

void SendQueue::complete(const Operation& operation, CompletionCode code) noexcept {
    if (code == CompletionCode::Success && !operation.request->signaled) return count(-1);
    std::uint64_t bytes = code == CompletionCode::Success ? operation.total : 0;
    if (code == CompletionCode::LocalProtection) bytes = operation.moved;
    completions_.push({.context = operation.request->context,
                       .endpoint_context = endpoint_.context(),
                       .bytes = static_cast<std::uint32_t>(bytes),
                       .immediate = 0,
                       .operation = operation_of(operation.request->opcode),
                       .code = code,
                       .with_immediate = notifies(*operation.request),
                       .invalidated = false},
                      *this);
}

/// Completes what may never have had its turn.
void SendQueue::give_up(const Operation& operation, CompletionCode code) noexcept {
    if (operation.request->opcode == Opcode::BindWindow) endpoint_.forget_window(operation.request->remote.key);
    complete(operation, code);
}

void SendQueue::attach(Connection& connection) noexcept {
    connection_ = &connection;
    draining_ = false;
    cursor_ = 0;
    next_ = consumed_ = sent_ = credit_ = rung_at_ = 0;
    area_head_ = area_tail_ = area_used_ = 0;
    area_end_.fill(0);
    waiting_ = awaiting_credit_ = false;
}

void SendQueue::detach(CompletionCode in_flight) noexcept {
    CompletionCode refused = CompletionCode::Success;
    if (connection_ != nullptr) {
        read_consumed();
        retire();
        refused = fault_code(connection_->outgoing().consumer.fault.load(std::memory_order_acquire));
    }
    for (; !entries_.empty(); entries_.pop()) {
        const Operation& operation = entries_.front().ready();
        CompletionCode code = CompletionCode::Flushed;
        if (operation.finished) {
            code = operation.code;
        } else if (operation.in_flight || operation.awaiting) {
            code = in_flight;
            if (refused != CompletionCode::Success) {  // the oldest one is what the peer could not take
                code = std::exchange(refused, CompletionCode::Success);
                in_flight = CompletionCode::Flushed;
            }
        }
        give_up(operation, code);
    }
    cursor_ = 0;
    connection_ = nullptr;
}

// ---- The producer's end of the ring ------------------------------------------------------------------------------

wire::Slot& SendQueue::next_slot() noexcept { return connection_->outgoing_slots()[next_ & wire::slot_mask]; }

void SendQueue::publish(wire::Slot& slot, wire::SlotKind kind, std::uint8_t flags, std::uint32_t length,
                        std::uint32_t immediate) noexcept {
    slot.kind = kind;
    slot.flags = flags;
    slot.length = length;
    slot.immediate = immediate;
    slot.credit = endpoint_.receives_posted();
    slot.sequence.store(++next_, std::memory_order_release);
}

bool SendQueue::have_slot() noexcept {
    if (next_ - consumed_ < wire::slot_count) return true;
    read_consumed();
    return next_ - consumed_ < wire::slot_count || is_room_coming();
}

/// Says that this side waits, and looks once more: the peer may have consumed in between. Else the peer's agent is
/// asked to consume, once for each want.
bool SendQueue::is_room_coming() noexcept {
    expect_ring();
    std::atomic_thread_fence(std::memory_order_seq_cst);
    const std::uint32_t before = consumed_;
    read_consumed();
    if (consumed_ != before) return true;
    if (std::exchange(rung_at_, next_) != next_) connection_->ring_peer();
    return false;
}

void SendQueue::expect_ring() noexcept {
    if (waiting_) return;
    waiting_ = true;
    connection_->outgoing().producer.waiting.store(1, std::memory_order_relaxed);
}

void SendQueue::read_consumed() noexcept {
    const std::uint32_t now = connection_->outgoing().consumer.consumed.load(std::memory_order_acquire);
    if (next_ - now > wire::slot_count || now - consumed_ > wire::slot_count) {
        endpoint_.request_break();  // a peer that counts wrong
        return;
    }
    for (; area_used_ != 0 && consumed_ != now; ++consumed_) {
        const std::uint32_t end = std::exchange(area_end_[consumed_ & wire::slot_mask], 0);
        if (end == 0) continue;
        area_tail_ = end;
        --area_used_;
    }
    consumed_ = now;
}

/// Finds room for `length` bytes in the area and ties it to the next slot. The area is a ring of ranges; when nothing
/// is in it, it begins at 0 again, so that light traffic stays within few cache lines.
bool SendQueue::place_in_area(std::uint32_t length, std::uint32_t& offset) noexcept {
    const std::uint32_t size = (length + area_step - 1) / area_step * area_step;
    const auto find = [&] {
        if (area_used_ == 0) area_head_ = area_tail_ = 0;
        if (area_used_ != 0 && area_head_ <= area_tail_) {
            offset = area_head_;
            return area_tail_ - area_head_ >= size;
        }
        offset = wire::area_bytes - area_head_ >= size ? area_head_ : 0;
        return offset != 0 || area_head_ == 0 || area_tail_ >= size;
    };
    while (!find())
        if (!is_room_coming()) return false;
    area_head_ = offset + size;
    area_end_[next_ & wire::slot_mask] = area_head_;
    ++area_used_;
    return true;
}

/// A receive of the peer for the next message. The peer's credit line is read only when the credit that its messages
/// told is used up.
SendQueue::Credit SendQueue::take_credit() noexcept {
    const auto missing = [this] { return static_cast<std::int32_t>(credit_ - sent_) <= 0; };
    const auto& line = connection_->outgoing().credit.posted;
    if (missing()) credit_ = connection_->told_credit.load(std::memory_order_relaxed);
    if (missing()) credit_ = line.load(std::memory_order_acquire);
    if (missing() && !connection_->peer_shares_receives()) {
        if (reliability() == Reliability::Unreliable ||
            endpoint_.attributes().receiver_not_ready == ReceiverNotReady::Break)
            return Credit::Missing;
        if (!std::exchange(awaiting_credit_, true)) {
            expect_ring();
            Fence::heavy();  // the peer posts receives with a light fence
            credit_ = line.load(std::memory_order_acquire);
        }
        if (missing()) return Credit::Awaited;
    }
    awaiting_credit_ = false;
    ++sent_;
    return Credit::Taken;
}

}  // namespace viaduct::loopback
