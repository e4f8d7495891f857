// SPDX-License-Identifier: BSD-3-Clause
// The order of the queue and the writing of slots. The operations are in send_operations.cpp.
#include "backends/loopback/send_queue.hpp"

#include "backends/loopback/endpoint.hpp"
#include "backends/loopback/mapped_memory.hpp"
#include "backends/support/pieces.hpp"
#include "core/base/fence.hpp"

namespace viaduct::loopback {
namespace {

constexpr std::uint32_t area_step = 64;  // ranges are aligned to cache lines

/// Translates the consumer's fault word, to which the peer may have written anything.
CompletionCode fault_code(wire::Fault fault) noexcept {
    switch (fault) {
        case wire::Fault::None: return CompletionCode::Success;
        case wire::Fault::Protection: return CompletionCode::RemoteProtection;
        case wire::Fault::Length: return CompletionCode::RemoteLength;
        case wire::Fault::Operation: break;
    }
    return CompletionCode::RemoteOperation;
}

}  // namespace

Status SendQueue::post(const SendRequest& request) { return post_directly(request) ? Status() : post_any(request); }

// ---- The common case ---------------------------------------------------------------------------------------------

/// Executes a request of one SGE right away, from the first check to the completion. Returns false, without any effect,
/// if the request has to wait or to fail, or is neither a send of one slot nor RDMA to memory that is mapped here.
/// Then post_any() handles it.
bool SendQueue::post_directly(const SendRequest& request) noexcept {
    if (connection_ == nullptr || !entries_.empty() || draining_ || endpoint_.is_breaking()) return false;
    if (is_full() || executed_.room() == 0) return false;
    if (request.sges.size() != 1 || request.fault != CompletionCode::Success) return false;
    const Sge& sge = request.sges[0];
    if (sge.length > endpoint_.max_transfer_bytes()) return false;
    Executed done{.context = request.context,
                  .last_slot = 0,
                  .bytes = sge.length,
                  .operation = CompletedOperation::Send,
                  .code = CompletionCode::Success,
                  .confirmed = false,
                  .signaled = request.signaled,
                  .with_immediate = false};
    switch (request.opcode) {
        case Opcode::Send:
            if (!send_directly(request, sge)) return false;
            done.last_slot = next_;
            done.confirmed = confirmation_flag_ != 0;
            break;
        case Opcode::RdmaWrite:
            if (!access_directly<RemoteUse::Write>(request, sge)) return false;
            done.operation = CompletedOperation::RdmaWrite;
            break;
        case Opcode::RdmaRead:
            if (reliability() == Reliability::Unreliable || !access_directly<RemoteUse::Read>(request, sge))
                return false;
            done.operation = CompletedOperation::RdmaRead;
            break;
        default: return false;
    }
    count(1);
    finish(done);
    return true;
}

bool SendQueue::send_directly(const SendRequest& request, const Sge& sge) noexcept {
    if (sge.length > wire::fragment_bytes || next_ - consumed_ >= wire::slot_count || !have_credit()) return false;
    if (!endpoint_.may_use(sge, false) || confirmation(request) == wire::slot_flags::acknowledge) return false;
    wire::Slot& slot = next_slot();
    std::uint8_t flags = marks_of(request) | confirmation_flag_;
    const auto* source = static_cast<const std::byte*>(sge.address);
    if (sge.length <= wire::inline_bytes) {
        copy_piece(slot.payload, source, sge.length);
    } else {
        wire::External external{.offset = 0, .total = sge.length};
        if (!place_in_area(sge.length, external.offset)) return false;
        copy_piece(connection_->outgoing_area() + external.offset, source, sge.length);
        std::memcpy(slot.payload, &external, sizeof external);
        flags |= wire::slot_flags::external;
    }
    ++sent_;
    publish(slot, wire::SlotKind::Message, flags, sge.length, request.immediate);
    connection_->ring_unless_polled();
    return true;
}

template <RemoteUse use>
bool SendQueue::access_directly(const SendRequest& request, const Sge& sge) noexcept {
    constexpr bool read = use == RemoteUse::Read;
    if (request.with_immediate || sge.length >= checked_from_bytes || !endpoint_.may_use(sge, read)) return false;
    const RemoteAddress& remote = request.remote;
    const auto region = connection_->peer().region(remote.key);
    if (!region || !may_access(*region, use, remote.address, sge.length)) return false;
    std::byte* target = connection_->find_memory(*region, remote.key, remote.address, sge.length, !read);
    if (target == nullptr) return false;
    auto* own = static_cast<std::byte*>(sge.address);
    if (read)
        copy_piece(own, target, sge.length);
    else
        deliver_piece(target, own, sge.length);
    return true;
}

// ---- The general case --------------------------------------------------------------------------------------------

[[gnu::flatten]] Status SendQueue::post_any(const SendRequest& request) {
    if (is_full() && !make_room()) return {Code::QueueFull, "the send queue is full"};
    if (request.sges.size() > endpoint_.device_attributes().max_sges)
        return {Code::InvalidParameter, "too many pieces"};
    Operation operation;
    operation.request = &request;
    operation.total = support::total_length(request.sges);
    operation.code = request.fault;
    if (is_atomic(request.opcode)) {
        if (request.sges.size() != 1 || operation.total != sizeof operation.value)
            operation.code = CompletionCode::LocalLength;
        else if (request.opcode == Opcode::AtomicWrite)
            std::memcpy(&operation.value, request.sges[0].address, sizeof operation.value);
    }
    if (connection_ == nullptr) {
        count(1);
        abandon(operation, CompletionCode::Flushed);
        return {};
    }
    // Allocate memory before doing anything that cannot be undone.
    if (!executed_.reserve(outstanding() + std::size_t{1}) || !entries_.reserve(entries_.size() + 1))
        return {Code::NoResources, "out of memory"};
    const bool in_turn = entries_.empty() && !draining_ && !endpoint_.is_breaking();
    if (!in_turn || request.sges.size() > 2) {
        enqueue(operation);
        count(1);
        progress();
        return {};
    }
    count(1);
    const Outcome outcome = execute(operation);
    if (outcome == Outcome::Blocked)
        enqueue(operation);
    else
        finish(executed(operation, outcome));
    return {};
}

/// Makes room by completing confirmed unsignaled requests, even if the consumer does not poll.
bool SendQueue::make_room() noexcept {
    progress();
    if (!is_full()) return true;
    expect_ring();
    return !is_full();
}

void SendQueue::enqueue(const Operation& operation) {
    Entry& entry = entries_.vacant();
    entry.sges.assign(operation.request->sges);
    entry.request = *operation.request;
    entry.operation = operation;
    entries_.commit();
}

void SendQueue::progress() noexcept {
    if ((entries_.empty() && executed_.empty()) || connection_ == nullptr) return;
    read_consumed();
    while (!entries_.empty() && (!draining_ || left_ > executed_.size()) && !endpoint_.is_breaking()) {
        const Operation& operation = entries_.front().ready();
        const Outcome outcome = execute(entries_.front().operation);
        if (outcome == Outcome::Blocked) break;
        executed_.push(executed(operation, outcome));
        entries_.pop();
    }
    retire();
    if (waiting_ && entries_.empty() && executed_.empty()) {
        waiting_ = false;
        connection_->outgoing().producer.waiting.store(0, std::memory_order_relaxed);
    }
}

/// Completes the operations that are executed and, if required, confirmed.
void SendQueue::retire() noexcept {
    while (!executed_.empty()) {
        const Executed& oldest = executed_.front();
        if (oldest.confirmed && !is_consumed(oldest.last_slot)) return;
        complete(oldest);
        executed_.pop();
        if (draining_ && --left_ == 0) endpoint_.request_end();
    }
}

void SendQueue::expect_ring() noexcept {
    if (executed_.empty() || connection_ == nullptr) return;
    read_consumed();
    retire();
    if (executed_.empty()) return;
    announce_waiting();
    connection_->ring_peer();
    read_consumed();  // the ring is a full fence: either the peer has seen the waiting flag, or this side sees the
                      // peer's update
    retire();
}

void SendQueue::drain() noexcept {
    if (std::exchange(draining_, true)) return;
    left_ = executed_.size() + entries_.size();
    if (left_ == 0) return endpoint_.request_end();
    expect_ring();
}

SendQueue::Executed SendQueue::executed(const Operation& operation, Outcome outcome) noexcept {
    const SendRequest& request = *operation.request;
    // If the source ended early, part of it may have been sent.
    const std::uint64_t of_failure = operation.code == CompletionCode::LocalProtection ? operation.moved : 0;
    return {
        .context = request.context,
        .last_slot = operation.last_slot,
        .bytes = static_cast<std::uint32_t>(operation.code == CompletionCode::Success ? operation.total : of_failure),
        .operation = operation_of(request.opcode),
        .code = operation.code,
        .confirmed = outcome == Outcome::InFlight,
        .signaled = request.signaled,
        .with_immediate = notifies(request)};
}

/// Completes an executed request, or queues it until its turn or the peer's confirmation. There must be room.
void SendQueue::finish(const Executed& executed) noexcept {
    if (!executed.confirmed && executed_.empty())
        complete(executed);
    else
        executed_.push(executed);
}

void SendQueue::complete(const Executed& executed) noexcept {
    if (executed.code == CompletionCode::Success && !executed.signaled) return count(-1);
    completions_.push({.context = executed.context,
                       .endpoint_context = endpoint_.context(),
                       .bytes = executed.bytes,
                       .immediate = 0,
                       .operation = executed.operation,
                       .code = executed.code,
                       .with_immediate = executed.with_immediate,
                       .invalidated = false},
                      *this);
}

/// Completes an operation that was in progress when the connection ended.
void SendQueue::give_up(Executed executed, CompletionCode code) noexcept {
    executed.code = code;
    if (code != CompletionCode::Success) executed.bytes = 0;
    complete(executed);
}

/// The same for an operation that was not executed. A prepared binding is dropped.
void SendQueue::abandon(const Operation& operation, CompletionCode code) noexcept {
    if (operation.request->opcode == Opcode::BindWindow) endpoint_.forget_window(operation.request->remote.key);
    give_up(executed(operation, Outcome::Finished), code);
}

/// A peer with a shared receive queue does not know in advance whether there will be a receive. Senders to which
/// refusals are reported wait for the confirmation.
std::uint8_t SendQueue::confirmation_flag() const noexcept {
    if (reliability() == Reliability::Unreliable) return 0;
    if (reliability() == Reliability::ReliableReception || connection_->peer_shares_receives())
        return wire::slot_flags::acknowledge;
    return reports_refusals() ? wire::slot_flags::confirm : 0;
}

void SendQueue::attach(Connection& connection) noexcept {
    connection_ = &connection;
    confirmation_flag_ = confirmation_flag();
    draining_ = false;
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
    const auto unconfirmed = [&] {
        if (refused == CompletionCode::Success) return in_flight;
        in_flight = CompletionCode::Flushed;  // the oldest one is the one that the peer refused
        return std::exchange(refused, CompletionCode::Success);
    };
    for (; !executed_.empty(); executed_.pop()) {
        const Executed& oldest = executed_.front();
        if (oldest.confirmed)
            give_up(oldest, unconfirmed());
        else
            complete(oldest);
    }
    for (; !entries_.empty(); entries_.pop()) {
        const Operation& operation = entries_.front().ready();
        const bool begun = operation.awaiting || operation.moved != 0;
        CompletionCode code = begun ? unconfirmed() : CompletionCode::Flushed;
        const bool silent = begun && operation.request->opcode == Opcode::Send && !reports_refusals();
        if (silent && (code == CompletionCode::RemoteOperation || code == CompletionCode::RemoteLength))
            code = CompletionCode::Success;
        abandon(operation, code);
    }
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
    slot.consumed.store(endpoint_.slots_consumed(), std::memory_order_relaxed);
    slot.sequence.store(static_cast<std::uint32_t>(++next_), std::memory_order_release);
}

bool SendQueue::have_slot() noexcept {
    if (next_ - consumed_ < wire::slot_count) return true;
    read_consumed();
    return next_ - consumed_ < wire::slot_count || is_room_coming();
}

/// Sets the waiting flag and checks once more, because the peer may have consumed slots meanwhile. If it has not, asks
/// the peer's agent to consume, once per slot that needs room.
bool SendQueue::is_room_coming() noexcept {
    announce_waiting();
    std::atomic_thread_fence(std::memory_order_seq_cst);
    const std::uint64_t before = consumed_;
    read_consumed();
    if (consumed_ != before) return true;
    if (std::exchange(rung_at_, next_) != next_) connection_->ring_peer();
    return false;
}

void SendQueue::announce_waiting() noexcept {
    if (waiting_) return;
    waiting_ = true;
    connection_->outgoing().producer.waiting.store(1, std::memory_order_relaxed);
}

/// The numbers in the peer's messages suffice if they cover everything. Otherwise also uses the next message and the
/// peer's line.
void SendQueue::read_consumed() noexcept {
    const std::uint64_t open = next_ - consumed_;
    const auto since_then = [&](std::uint64_t told) {
        return told > consumed_ && told - consumed_ <= open ? told - consumed_ : 0;
    };
    std::uint64_t more = since_then(connection_->piggybacked_consumed.load(std::memory_order_acquire));
    if (more < open) more = std::max(more, since_then(endpoint_.consumed_by_next_slot()));
    if (more < open) {
        const auto known = static_cast<std::uint32_t>(consumed_);
        const std::uint32_t line = connection_->outgoing().consumer.consumed.load(std::memory_order_acquire);
        if (line - known <= open)
            more = std::max<std::uint64_t>(more, line - known);
        else if (known - line > wire::slot_count)
            return endpoint_.request_break();  // the peer's count is wrong
    }
    const std::uint64_t now = consumed_ + more;
    for (; area_used_ != 0 && consumed_ != now; ++consumed_) {
        const std::uint32_t end = std::exchange(area_end_[consumed_ & wire::slot_mask], 0);
        if (end == 0) continue;
        area_tail_ = end;
        --area_used_;
    }
    consumed_ = now;
}

/// Finds room for `length` bytes in the area and assigns it to the next slot. The area is a ring of ranges. When it is
/// empty, it starts at 0 again, so that light traffic uses few cache lines.
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

/// Reports whether the peer has posted a receive for the next message. Its credit line is read only when the credit
/// from its messages is used up.
bool SendQueue::have_credit() noexcept {
    constexpr std::uint32_t deepest = 65535;  // maximum number of receives of a queue; a larger difference means that
                                              // the number is stale
    const auto is_left = [this] { return static_cast<std::int32_t>(credit_ - sent_) > 0; };
    if (is_left()) return true;
    const std::uint32_t told = connection_->piggybacked_credit.load(std::memory_order_relaxed);
    if (told - sent_ <= deepest) credit_ = told;
    if (is_left()) return true;
    credit_ = connection_->outgoing().credit.posted.load(std::memory_order_acquire);
    return is_left();
}

/// Takes a receive of the peer for the next message.
SendQueue::Credit SendQueue::take_credit() noexcept {
    if (!have_credit() && !connection_->peer_shares_receives()) {
        if (reliability() == Reliability::Unreliable ||
            endpoint_.attributes().receiver_not_ready == ReceiverNotReady::Break)
            return Credit::Missing;
        if (std::exchange(awaiting_credit_, true)) return Credit::Awaited;
        announce_waiting();
        Fence::heavy();  // the peer posts receives with a light fence
        if (!have_credit()) return Credit::Awaited;
    }
    awaiting_credit_ = false;
    ++sent_;
    return Credit::Taken;
}

}  // namespace viaduct::loopback
