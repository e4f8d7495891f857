// SPDX-License-Identifier: BSD-3-Clause
#include "backends/loopback/receive_queue.hpp"

#include "backends/loopback/atomic_word.hpp"
#include "backends/loopback/endpoint.hpp"
#include "backends/loopback/mapped_memory.hpp"
#include "core/base/fence.hpp"
#include "core/log.hpp"

namespace viaduct::loopback {
namespace {

using wire::SlotKind;

constexpr std::uint32_t publish_every = wire::slot_count / 4;

bool is_write(SlotKind kind) noexcept {
    return kind == SlotKind::WriteNotice || kind == SlotKind::RefusedNotice || kind == SlotKind::NoticeAborted;
}

CompletedOperation received_operation(SlotKind kind) noexcept {
    return is_write(kind) ? CompletedOperation::ReceiveRdmaWrite : CompletedOperation::Receive;
}

bool takes_receive(SlotKind kind) noexcept { return kind == SlotKind::Message || is_write(kind); }

/// Returns the access to the region that an operation for the agent requires.
RemoteUse use_of(SlotKind kind) noexcept {
    switch (kind) {
        case SlotKind::AgentRead: return RemoteUse::Read;
        case SlotKind::AgentFetchAdd:
        case SlotKind::AgentCompareSwap: return RemoteUse::Atomic;
        default: return RemoteUse::Write;
    }
}

wire::AgentTransfer agent_order(const wire::Slot& slot) noexcept {
    wire::AgentTransfer order;
    std::memcpy(&order, slot.payload, sizeof order);
    return order;
}

}  // namespace

ReceiveQueue::ReceiveQueue(Endpoint& endpoint, CompletionQueue& completions, std::uint32_t depth,
                           SharedReceiveQueue* shared)
    : WorkQueue(depth), endpoint_(endpoint), completions_(completions), shared_(shared) {
    if (shared_ != nullptr) shared_->join(member_);
}

ReceiveQueue::~ReceiveQueue() {
    if (shared_ != nullptr) shared_->leave(member_);
}

Status ReceiveQueue::post(const ReceiveRequest& request) {
    if (shared_ != nullptr) return {Code::InvalidState, "the endpoint uses a shared receive queue"};
    if (is_full()) return {Code::QueueFull, "the receive queue is full"};
    if (request.sges.size() > endpoint_.device_attributes().max_sges)
        return {Code::InvalidParameter, "too many pieces"};
    if (!entries_.reserve(entries_.size() + 1)) return {Code::NoResources, "out of memory"};
    entries_.vacant().assign(request);
    entries_.commit();
    count(1);
    if (rejecting_) {
        complete_front({}, CompletionCode::Flushed, 0);
        return {};
    }
    if (advertised_to_ == nullptr) return {};
    const std::uint32_t posted = posted_.load(std::memory_order_relaxed) + 1;
    posted_.store(posted, std::memory_order_relaxed);
    advertised_to_->incoming().credit.posted.store(posted, std::memory_order_release);
    if (connection_ == nullptr) return {};
    Fence::light(connection_->asymmetric_fences());
    if (connection_->incoming().producer.waiting.load(std::memory_order_relaxed) != 0) connection_->ring_peer();
    return {};
}

void ReceiveQueue::advertise(Connection& connection) noexcept {
    advertised_to_ = &connection;
    posted_.store(static_cast<std::uint32_t>(entries_.size()), std::memory_order_relaxed);
    connection.incoming().credit.posted.store(posted_.load(std::memory_order_relaxed), std::memory_order_release);
}

void ReceiveQueue::attach(Connection& connection) noexcept {
    connection_ = &connection;
    next_.store(0, std::memory_order_relaxed);
    published_ = 0;
    received_ = 0;
    acknowledgment_due_ = in_message_ = skipping_ = stopped_ = false;
    needs_wakeup_.store(true, std::memory_order_relaxed);
    connection.incoming().wakeup.need_wakeup.store(1, std::memory_order_release);  // as in the new segment
}

void ReceiveQueue::update_wakeup(bool polled) noexcept {
    const bool wanted = !polled || !completions_.is_polled(*this);
    if (connection_ == nullptr || wanted == needs_wakeup()) return;
    needs_wakeup_.store(wanted, std::memory_order_relaxed);
    connection_->incoming().wakeup.need_wakeup.store(wanted ? 1 : 0, std::memory_order_release);
}

void ReceiveQueue::withdraw_credits() noexcept {
    advertised_to_ = nullptr;
    posted_.store(0, std::memory_order_relaxed);
}

void ReceiveQueue::detach(bool reject) noexcept {
    progress();  // the sender of a message that has arrived may have been told that it succeeded
    if (connection_ != nullptr) publish_consumed();
    connection_ = nullptr;
    withdraw_credits();
    rejecting_ = reject;
    in_message_ = false;
    flush_.reset();
    while (!entries_.empty()) complete_front({}, CompletionCode::Flushed, 0);
}

[[gnu::flatten]] void ReceiveQueue::progress() noexcept {
    constexpr auto at_once = wire::slot_flags::external | wire::slot_flags::acknowledge;
    if (connection_ == nullptr) return;
    std::uint8_t seen = 0;  // flags of all slots
    std::uint32_t next = next_;
    while (!stopped_) {
        const wire::Slot& slot = connection_->incoming_slots()[next & wire::slot_mask];
        if (slot.sequence.load(std::memory_order_acquire) != next + 1) break;
        const Arrival arrival = read(slot);
        const bool whole = is_whole(arrival);
        if (!whole && !is_due(arrival, slot)) break;
        connection_->piggybacked_credit.store(slot.credit, std::memory_order_relaxed);
        const std::uint64_t told = connection_->piggybacked_consumed.load(std::memory_order_relaxed);
        const auto more = static_cast<std::uint16_t>(slot.consumed.load(std::memory_order_relaxed) - told);
        connection_->piggybacked_consumed.store(told + more, std::memory_order_release);
        if (whole) {
            receive_whole(arrival);
        } else {
            consume(arrival, slot);
            if (stopped_) break;  // the slot that could not be received is not confirmed
        }
        next_.store(++next, std::memory_order_release);
        seen |= arrival.flags;
        if (next - published_ >= publish_every || ((seen & at_once) != 0 && arrival.length == wire::fragment_bytes))
            publish_consumed();
    }
    if ((seen & at_once) != 0)
        publish_consumed();
    else if (acknowledgment_due_ || (seen & wire::slot_flags::confirm) != 0)
        confirm((seen & wire::slot_flags::confirm) == 0);
}

/// Confirms consumed slots to the sender: immediately if it waits, otherwise when a poll finds nothing new, because a
/// message may carry the confirmation before then. A sender that goes to sleep sets its waiting flag and rings the
/// agent; see confirm_promptly().
void ReceiveQueue::confirm(bool idle) noexcept {
    acknowledgment_due_ = !idle;
    if (connection_->incoming().producer.waiting.load(std::memory_order_relaxed) != 0)
        publish_consumed();
    else if (idle)
        connection_->incoming().consumer.consumed.store(next_, std::memory_order_release);
}

std::uint64_t ReceiveQueue::consumed_by_next_slot(Connection& connection) const noexcept {
    const std::uint64_t before =
        connection.piggybacked_consumed.load(std::memory_order_acquire);  // must not be newer than the slot
    const std::uint32_t next = next_.load(std::memory_order_acquire);
    const wire::Slot& slot = connection.incoming_slots()[next & wire::slot_mask];
    if (slot.sequence.load(std::memory_order_acquire) != next + 1) return before;
    const std::uint16_t told = slot.consumed.load(std::memory_order_acquire);
    if (slot.sequence.load(std::memory_order_relaxed) != next + 1) return before;  // the slot was reused meanwhile
    return before + static_cast<std::uint16_t>(told - before);
}

void ReceiveQueue::confirm_promptly() noexcept {
    acknowledgment_due_ = false;
    if (connection_ != nullptr) publish_consumed();
}

void ReceiveQueue::publish_consumed() noexcept {
    if (published_ == next_) return;
    published_ = next_;
    connection_->incoming().consumer.consumed.store(next_, std::memory_order_release);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (connection_->incoming().producer.waiting.load(std::memory_order_relaxed) != 0) connection_->ring_peer();
}

ReceiveQueue::Arrival ReceiveQueue::read(const wire::Slot& slot) const noexcept {
    Arrival arrival{.kind = slot.kind,
                    .flags = slot.flags,
                    .length = slot.length,
                    .immediate = slot.immediate,
                    .total = slot.length,
                    .payload = nullptr};
    if (arrival.kind != SlotKind::Message) return arrival;
    if ((arrival.flags & wire::slot_flags::external) == 0) {
        if (arrival.length <= wire::inline_bytes) arrival.payload = slot.payload;
        return arrival;
    }
    wire::External external;
    std::memcpy(&external, slot.payload, sizeof external);
    arrival.total = external.total;
    if (arrival.length <= wire::fragment_bytes && external.offset <= wire::area_bytes - arrival.length)
        arrival.payload = connection_->incoming_area() + external.offset;
    return arrival;
}

/// Reports whether this is the common case: a message of one slot, for which there is a receive of one SGE that it
/// fits. Otherwise consume() handles the slot.
bool ReceiveQueue::is_whole(const Arrival& arrival) noexcept {
    constexpr auto others = wire::slot_flags::more | wire::slot_flags::invalidate;
    if (arrival.kind != SlotKind::Message || (arrival.flags & others) != 0 || arrival.payload == nullptr) return false;
    if (in_message_ || shared_ != nullptr || entries_.empty() || arrival.total != arrival.length) return false;
    const Receive& entry = entries_.front();
    const auto sges = entry.sges.span();
    return entry.fault == CompletionCode::Success && sges.size() == 1 && arrival.length <= entry.room &&
           arrival.length <= endpoint_.max_transfer_bytes() && endpoint_.may_use(sges[0], arrival.length, true);
}

void ReceiveQueue::receive_whole(const Arrival& arrival) noexcept {
    deliver_piece(static_cast<std::byte*>(entries_.front().sges.span()[0].address), arrival.payload, arrival.length);
    complete_front(arrival, CompletionCode::Success, arrival.length);
}

bool ReceiveQueue::is_due(const Arrival& arrival, const wire::Slot& slot) noexcept {
    if (takes_receive(arrival.kind) && shared_ != nullptr && !in_message_ && !have_receive()) return false;
    return arrival.kind != SlotKind::AgentFlush || is_flushed(slot);
}

/// Takes a receive from the shared queue for a new message.
bool ReceiveQueue::have_receive() noexcept {
    if (!entries_.empty()) return true;
    if (!completions_.has_room()) return false;
    if (!shared_->take(entries_.vacant(), member_, connection_->number())) return false;
    entries_.commit();
    count(1);
    return true;
}

/// Starts the flush that the slot requests, or checks whether it is done. consume() handles the result.
bool ReceiveQueue::is_flushed(const wire::Slot& slot) noexcept {
    if (flush_ != nullptr) return flush_->state.load(std::memory_order_acquire) != FlushJob::State::Running;
    const wire::AgentTransfer order = agent_order(slot);
    if (!endpoint_.peer_may_access(RemoteUse::Flush, order.key, order.address, order.value)) return true;
    flush_ = endpoint_.start_flush(order.address, order.value, connection_->number());
    return flush_ == nullptr;
}

[[gnu::flatten]] void ReceiveQueue::consume(const Arrival& arrival, const wire::Slot& slot) noexcept {
    switch (arrival.kind) {
        case SlotKind::Message: receive_fragment(arrival); return;
        case SlotKind::MessageAborted: return abort_message(arrival);
        case SlotKind::WriteNotice:
        case SlotKind::NoticeAborted:
        case SlotKind::RefusedNotice: {
            if (in_message_) return stop();  // the receive belongs to the message
            if (entries_.empty()) {
                endpoint_.raise(AsyncEventKind::ReceiveQueueEmpty, received_operation(arrival.kind));
                return fail_connection(wire::Fault::Operation);
            }
            const Receive& entry = entries_.front();
            if (arrival.kind == SlotKind::NoticeAborted) return fail_front(arrival, CompletionCode::PartialMessage);
            if (arrival.kind == SlotKind::RefusedNotice) return fail_front(arrival, CompletionCode::LocalProtection);
            if (entry.fault != CompletionCode::Success) return fail_front(arrival, entry.fault);
            return finish_front(arrival, arrival.length);
        }
        case SlotKind::NoReceive:
            // On reliable levels the sender breaks the connection, and its hang-up follows this slot.
            return endpoint_.raise(AsyncEventKind::ReceiveQueueEmpty, CompletedOperation::Receive);
        case SlotKind::WriteAborted:
            return endpoint_.raise(AsyncEventKind::RemoteWriteAborted, CompletedOperation::RdmaWrite);
        case SlotKind::WriteRefused:
            return endpoint_.raise(AsyncEventKind::RemoteWriteProtection, CompletedOperation::RdmaWrite);
        case SlotKind::ReadRefused:
            return endpoint_.raise(AsyncEventKind::RemoteReadProtection, CompletedOperation::RdmaRead);
        case SlotKind::AgentWrite:
        case SlotKind::AgentRead:
        case SlotKind::AgentAtomic:
        case SlotKind::AgentFetchAdd:
        case SlotKind::AgentCompareSwap: return serve_agent_order(arrival, slot);
        case SlotKind::AgentFlush: return finish_flush(slot);
    }
    stop();  // invalid kind: the peer violates the protocol
}

void ReceiveQueue::receive_fragment(const Arrival& arrival) noexcept {
    if (arrival.payload == nullptr) return stop();
    const bool last = (arrival.flags & wire::slot_flags::more) == 0;
    if (!in_message_) {
        if (entries_.empty()) {  // a correct peer sends NoReceive instead
            endpoint_.raise(AsyncEventKind::ReceiveQueueEmpty, CompletedOperation::Receive);
            return stop();
        }
        received_ = 0;
        skipping_ = false;
        in_message_ = true;
    }
    if (!skipping_) {  // check each fragment, because the memory may be deregistered meanwhile
        if (received_ + arrival.length > arrival.total) return stop();  // longer than announced and checked
        if (const auto code = check(entries_.front(), arrival); code != CompletionCode::Success) {
            fail_front(arrival, code);
            skipping_ = true;
        }
    }
    if (!skipping_) {
        const Receive& entry = entries_.front();
        if (received_ + arrival.length > entry.room) return stop();  // exceeds the checked length
        scatter(entry.sges.span(), received_, arrival.payload, arrival.length);
        received_ += arrival.length;
        if (last && received_ != arrival.total) return stop();  // shorter than announced
        if (last) finish_front(arrival, static_cast<std::uint32_t>(received_));
    }
    in_message_ = !last;
}

/// The peer lost the rest of the message that is being received.
void ReceiveQueue::abort_message(const Arrival& arrival) noexcept {
    if (!in_message_) return stop();
    in_message_ = false;
    if (!skipping_) fail_front(arrival, CompletionCode::PartialMessage);
}

/// Checks a receive when a message arrives (guide, section 5.2). Only the memory that the message fills is checked.
CompletionCode ReceiveQueue::check(const Receive& entry, const Arrival& arrival) const noexcept {
    if (entry.fault != CompletionCode::Success) return entry.fault;
    if (arrival.total > entry.room || arrival.total > endpoint_.max_transfer_bytes())
        return CompletionCode::LocalLength;
    std::uint64_t left = arrival.total;
    for (const Sge& sge : entry.sges.span()) {
        const std::uint64_t used = std::min<std::uint64_t>(sge.length, left);
        if (!endpoint_.may_use(sge, used, true)) return CompletionCode::LocalProtection;
        left -= used;
    }
    if (arrival.total >= checked_from_bytes && mapped_bytes(entry.sges.span(), Probe::Mapping) < arrival.total)
        return CompletionCode::LocalProtection;
    return CompletionCode::Success;
}

/// Completes the receive. The data are in place; a window that the peer wants to invalidate is invalidated now.
void ReceiveQueue::finish_front(const Arrival& arrival, std::uint32_t bytes) noexcept {
    const bool invalidates = (arrival.flags & wire::slot_flags::invalidate) != 0;
    if (invalidates && !endpoint_.invalidate_window(arrival.immediate))
        return fail_front(arrival, CompletionCode::LocalProtection);
    complete_front(arrival, CompletionCode::Success, bytes);
}

void ReceiveQueue::complete_front(const Arrival& arrival, CompletionCode code, std::uint32_t bytes) noexcept {
    const auto bears = [&](std::uint8_t flag) {
        return (arrival.flags & flag) != 0 && code == CompletionCode::Success;
    };
    const bool with_immediate = bears(wire::slot_flags::immediate);
    const bool invalidated = bears(wire::slot_flags::invalidate);
    completions_.push({.context = entries_.front().context,
                       .endpoint_context = endpoint_.context(),
                       .bytes = bytes,
                       .immediate = with_immediate || invalidated ? arrival.immediate : 0,
                       .operation = received_operation(arrival.kind),
                       .code = code,
                       .with_immediate = with_immediate,
                       .invalidated = invalidated},
                      *this, (arrival.flags & wire::slot_flags::solicited) != 0);
    entries_.pop();
}

void ReceiveQueue::fail_front(const Arrival& arrival, CompletionCode code) noexcept {
    complete_front(arrival, code, 0);
    fail_connection(code == CompletionCode::LocalLength ? wire::Fault::Length : wire::Fault::Operation);
}

/// On reliable levels a failure ends the connection. A sender that waits for confirmation learns which slot caused it.
void ReceiveQueue::fail_connection(wire::Fault fault) noexcept {
    if (endpoint_.attributes().reliability == Reliability::Unreliable) return;
    if (published_ != next_) {
        published_ = next_;
        connection_->incoming().consumer.consumed.store(next_, std::memory_order_release);
    }
    connection_->incoming().consumer.fault_slot.store(next_, std::memory_order_relaxed);
    connection_->incoming().consumer.fault.store(fault, std::memory_order_release);
    stop();
}

void ReceiveQueue::stop() noexcept {
    stopped_ = true;
    endpoint_.request_break();
}

void ReceiveQueue::refuse_order(RemoteUse use) noexcept {
    if (use == RemoteUse::Write || use == RemoteUse::Atomic)
        endpoint_.raise(AsyncEventKind::RemoteWriteProtection, CompletedOperation::RdmaWrite);
    else
        endpoint_.raise(AsyncEventKind::RemoteReadProtection, CompletedOperation::RdmaRead);
    fail_connection(wire::Fault::Protection);
}

/// Handles a flush that is done or that was never started, because access was denied or memory or threads ran out.
void ReceiveQueue::finish_flush(const wire::Slot& slot) noexcept {
    const auto job = std::exchange(flush_, nullptr);
    if (job != nullptr && job->state.load(std::memory_order_acquire) == FlushJob::State::Done) return;
    const wire::AgentTransfer order = agent_order(slot);
    if (!endpoint_.peer_may_access(RemoteUse::Flush, order.key, order.address, order.value))
        return refuse_order(RemoteUse::Flush);
    fail_connection(wire::Fault::Operation);
}

/// Executes an RDMA operation that the peer could not execute itself. The checks are repeated, because the peer may be
/// hostile and the region may have changed.
void ReceiveQueue::serve_agent_order(const Arrival& arrival, const wire::Slot& slot) noexcept {
    const wire::AgentTransfer order = agent_order(slot);
    const bool word = arrival.kind != SlotKind::AgentRead && arrival.kind != SlotKind::AgentWrite;
    if (arrival.length > wire::fragment_bytes || order.offset > wire::area_bytes - arrival.length ||
        (word && (arrival.length != 8 || order.address % 8 != 0)))
        return stop();
    const RemoteUse use = use_of(arrival.kind);
    if (!endpoint_.peer_may_access(use, order.key, order.address, arrival.length)) return refuse_order(use);
    auto* target = reinterpret_cast<std::byte*>(order.address);
    std::byte* area = connection_->incoming_area() + order.offset;
    const auto give_back = [area](std::uint64_t old) { std::memcpy(area, &old, sizeof old); };
    switch (arrival.kind) {
        case SlotKind::AgentWrite: deliver_piece(target, area, arrival.length); break;
        case SlotKind::AgentRead: std::memcpy(area, target, arrival.length); break;
        case SlotKind::AgentFetchAdd: give_back(fetch_add(target, order.value)); break;
        case SlotKind::AgentCompareSwap: give_back(compare_swap(target, order.compare, order.value)); break;
        default: atomic_word(target).store(order.value, std::memory_order_release);
    }
}

}  // namespace viaduct::loopback
