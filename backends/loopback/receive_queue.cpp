// SPDX-License-Identifier: BSD-3-Clause
#include "backends/loopback/receive_queue.hpp"

#include "backends/loopback/device.hpp"
#include "backends/loopback/endpoint.hpp"
#include "backends/support/post_each.hpp"
#include "viaduct/detail/mutex.hpp"

namespace viaduct::loopback {
namespace {

using wire::read_once;
using wire::SlotKind;

bool is_write(SlotKind kind) noexcept {
    return kind == SlotKind::WriteNotice || kind == SlotKind::RefusedNotice || kind == SlotKind::NoticeAborted;
}

Way way_of(std::uint8_t flags) noexcept { return (flags & wire::slot_flags::external) == 0 ? Way::Slot : Way::Area; }

bool takes_receive(SlotKind kind) noexcept { return kind == SlotKind::Message || is_write(kind); }

}  // namespace

ReceiveQueue::ReceiveQueue(Endpoint& endpoint, std::uint64_t endpoint_context, CompletionQueue& completions,
                           std::uint32_t depth, SharedReceiveQueue* shared)
    : WorkQueue(shared == nullptr ? depth : 0),
      endpoint_(endpoint),
      completions_(completions),
      endpoint_context_(endpoint_context),
      shared_(shared) {
    set_room(entries_.capacity());
    if (shared_ != nullptr) shared_->join(member_);
}

ReceiveQueue::~ReceiveQueue() {
    if (shared_ != nullptr) shared_->leave(member_);
}

void ReceiveQueue::advertise(Connection& connection) noexcept {
    ring_.advertise(connection.incoming(), static_cast<std::uint32_t>(entries_.size()));
}

void ReceiveQueue::attach(Connection& connection) noexcept {
    connection_ = &connection;
    ring_.attach(connection.incoming());
    local_.follow(endpoint_.device().regions().table());
    begin_message();
    acknowledgment_due_ = false;
    special_ = 0;
    set(short_transfers, endpoint_.max_transfer_bytes() < wire::inline_bytes);
    needs_wakeup_.store(true, std::memory_order_relaxed);
    ring_.set_need_wakeup(true);  // as in the new segment
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (ring_.is_producer_waiting()) ring_.ring_producer();  // for receives that were posted before it could be rung
}

void ReceiveQueue::update_wakeup(bool polled) noexcept {
    const bool wanted = !polled || !is_polled();
    if (connection_ == nullptr || wanted == needs_wakeup()) return;
    needs_wakeup_.store(wanted, std::memory_order_relaxed);
    ring_.set_need_wakeup(wanted);
}

void ReceiveQueue::detach(bool reject) noexcept {
    progress();  // the sender of a message that has arrived may have been told that it succeeded
    ring_.detach();
    connection_ = nullptr;
    rejecting_ = reject;
    acknowledgment_due_ = false;
    const bool was_in_message = is(in_message);
    special_ = stopped;
    flush_.reset();
    flush_all(was_in_message);
}

// ---- The common case ---------------------------------------------------------------------------------------------

/// Queues a receive of one SGE, if there is room. Otherwise enqueue() handles it.
inline ReceiveQueue::Posted ReceiveQueue::post_directly(const ReceiveRequest& request) noexcept {
    if (!has_room() || request.sges.size() != 1 || !ring_.is_attached()) return Posted::No;
    const Sge& sge = request.sges[0];
    const std::uint32_t length = sge.length;
    entries_.vacant().assign_single(request, sge);
    entries_.commit();
    count_posted();
    posted_.add();
    posted_bytes_.add(length);
    return ring_.add_receive() ? Posted::MustRing : Posted::Yes;
}

const Status* ReceiveQueue::post(const ReceiveRequest& request) noexcept {
    if (!lock().try_lock_as_owner()) [[unlikely]]
        return support::post_generally(*this, request);
    const Posted posted = post_directly(request);
    if (posted == Posted::MustRing) [[unlikely]]
        return ring_as_owner();
    lock().unlock_as_owner();
    return posted == Posted::No ? support::post_generally(*this, request) : nullptr;
}

const Status* ReceiveQueue::ring_as_owner() noexcept {
    ring_.ring_producer();
    lock().unlock_as_owner();
    return nullptr;
}

const Status* ReceiveQueue::receive_one(std::uint64_t context, void* address, std::uint32_t length,
                                        std::uint32_t key) noexcept {
    if (!lock().try_lock_as_owner()) [[unlikely]]
        return support::receive_one_generally(*this, context, address, length, key);
    const Sge sge{address, key, length};
    const Posted posted = post_directly({.context = context, .sges = {&sge, 1}});
    if (posted == Posted::MustRing) [[unlikely]]
        return ring_as_owner();
    lock().unlock_as_owner();
    return posted == Posted::No ? support::receive_one_generally(*this, context, address, length, key) : nullptr;
}

Status ReceiveQueue::post(std::span<const ReceiveRequest> requests, std::size_t& posted) noexcept {
    const LockGuard guard(lock());
    return support::post_each(requests, posted, [this](const ReceiveRequest& request) VIADUCT_REQUIRES(lock()) {
        const Posted directly = post_directly(request);
        if (directly == Posted::No) return enqueue(request);
        if (directly == Posted::MustRing) ring_.ring_producer();
        return Status();
    });
}

/// Delivers a message of one slot if its receive has one SGE that it fits, and writes the completion. Returns false,
/// without any effect, in all other cases; then receive() handles the slot. Otherwise consume_delivered() follows.
template <ReceiveQueue::Kind kind>
inline bool ReceiveQueue::deliver(const wire::Slot& slot, std::uint8_t flags, const Receive& receive,
                                  Completion& out) noexcept {
    using namespace wire::slot_flags;
    const std::uint32_t length = read_once(slot.length);
    if (slot.kind != SlotKind::Message || (flags & (more | invalidate | (kind == Kind::Short ? external : 0))) != 0)
        return false;
    const Sge* const sge = receive.sges.single();
    if (sge == nullptr || receive.fault != CompletionCode::Success || length > sge->length) return false;
    const std::byte* payload = slot.payload;
    if (kind == Kind::Any && way_of(flags) == Way::Area) {
        const wire::External external = wire::read_payload<wire::External>(slot);
        if (external.total != length || length > wire::fragment_bytes || external.offset > wire::area_bytes - length ||
            length > endpoint_.max_transfer_bytes())
            return false;
        payload = ring_.ring().area + external.offset;
    } else if (length > wire::inline_bytes) {
        return false;
    }
    if (!endpoint_.may_use<kind == Kind::Any>(local_, *sge, length, true) ||
        !support::deliver_piece(static_cast<std::byte*>(sge->address), payload, length))
        return false;
    PackedCompletion::write_success(out, receive.context, endpoint_context_, CompletedOperation::Receive, length);
    if ((flags & immediate) != 0) [[unlikely]] {
        out.immediate = slot.immediate;
        out.with_immediate = true;
    }
    return true;
}

/// Consumes the slots of delivered messages that have so many bytes. `last`: the last one of them. Returns whether the
/// producer should know.
inline bool ReceiveQueue::consume_delivered(std::uint32_t count, std::uint64_t bytes, Way way,
                                            const wire::Slot& last) noexcept {
    ring_.note(last);
    count_polled(count);
    traffic_.add(CountedOperation::Receive, way, bytes, count);
    entries_.pop(count);
    return way == Way::Slot ? ring_.pop(count) : ring_.pop_with_area(static_cast<std::uint32_t>(bytes));
}

/// The common case is a message for deliver(), or that nothing has arrived.
bool ReceiveQueue::poll_one_as_owner(Completion& out) noexcept {
    if (special_ != 0) return completions_.find_one_as_owner(out);
    const std::uint32_t position = ring_.position();
    const wire::Slot& slot = ring_.slot(position);
    if (!ring_.has_arrived(slot, position)) {
        if (acknowledgment_due_) return completions_.find_one_as_owner(out);
        lock().unlock_as_owner();
        return false;
    }
    const std::uint8_t flags = read_once(slot.flags);
    if (entries_.empty() || !deliver<Kind::Short>(slot, flags, entries_.front(), out))
        return receive_one_as_owner(slot, flags, out);
    const bool owes = consume_delivered(1, out.bytes, Way::Slot, slot);
    if (owes || (flags & wire::slot_flags::acknowledge) != 0) return confirm_as_owner();
    if ((flags & wire::slot_flags::confirm) != 0) {
        acknowledgment_due_ = true;
        if (ring_.is_producer_waiting()) return confirm_as_owner();
    }
    lock().unlock_as_owner();
    return true;
}

/// The rest of poll_one_as_owner() for another slot.
bool ReceiveQueue::receive_one_as_owner(const wire::Slot& slot, std::uint8_t flags, Completion& out) noexcept {
    if (entries_.empty() || !deliver<Kind::Any>(slot, flags, entries_.front(), out))
        return completions_.find_one_as_owner(out);
    const bool owes = consume_delivered(1, out.bytes, way_of(flags), slot);
    if (owes)
        ring_.confirm();
    else
        confirm_if_due(flags);
    lock().unlock_as_owner();
    return true;
}

/// The rest of poll_one_as_owner() if the producer must know now.
bool ReceiveQueue::confirm_as_owner() noexcept {
    confirm_promptly();
    lock().unlock_as_owner();
    return true;
}

/// Receives what has arrived. For a consumer that polls, stops when it has got as many completions as it asked for. A
/// peer may write slots as fast as they are received, so this ends after a lap: everything that the ring held before
/// the call. Later slots are found like those that arrive after the call, because their producer rang if it was asked
/// to.
void ReceiveQueue::progress() noexcept {
    lock().assume_held();
    if (is(sends_wait)) set(sends_wait, endpoint_.go_on_sending());
    if (is(stopped) || !ring_.has_arrived(ring_.front())) {
        if (acknowledgment_due_) confirm(0);
        return;
    }
    std::uint8_t seen = 0;  // the flags of all slots
    std::uint32_t left = wire::slot_count;
    do {
        if (special_ == 0 && receive_delivered(seen)) continue;
        const wire::Slot& slot = ring_.front();
        const std::uint8_t flags = read_once(slot.flags);
        if (!receive(slot)) break;
        seen |= flags;
    } while (--left != 0 && !completions_.is_output_full() && ring_.has_arrived(ring_.front()));
    confirm_if_due(seen);
}

/// Receives messages for deliver() at the front of the ring for a poll: up to a quarter of the ring or, if it lies in
/// the area, one. Adds their flags to `seen`. Returns false if there are none.
inline bool ReceiveQueue::receive_delivered(std::uint8_t& seen) noexcept {
    const std::span<Completion> out = completions_.output();
    const std::uint32_t position = ring_.position();
    const Way way = way_of(ring_.slot(position).flags);
    const std::size_t most = std::min<std::size_t>(
        {out.size(), entries_.size(), way == Way::Slot ? RingConsumer::confirm_every : std::size_t{1}});
    std::uint64_t bytes = 0;
    std::uint32_t count = 0;
    for (; count != most; ++count) {
        const wire::Slot& slot = ring_.slot(position + count);
        if (!ring_.has_arrived(slot, position + count)) break;
        const std::uint8_t flags = read_once(slot.flags);
        if (way_of(flags) != way || !deliver<Kind::Any>(slot, flags, entries_[count], out[count])) break;
        bytes += out[count].bytes;
        seen |= flags;
    }
    if (count == 0) return false;
    const bool owes = consume_delivered(count, bytes, way, ring_.slot(position + count - 1));
    completions_.handed_out(count);
    if (owes) ring_.confirm();
    return true;
}

inline void ReceiveQueue::confirm_if_due(std::uint8_t seen) noexcept {
    constexpr unsigned asks = wire::slot_flags::acknowledge | wire::slot_flags::confirm;
    if ((seen & asks) != 0 || acknowledgment_due_) confirm(seen);
}

// ---- The general case --------------------------------------------------------------------------------------------

void ReceiveQueue::was_posted() noexcept {
    if (ring_.advertises()) {
        if (ring_.add_receive() && ring_.is_attached()) ring_.ring_producer();
    } else if (rejecting_) {
        complete_front({}, CompletionCode::Flushed);
    }
}

/// Handles the slot at the front. Returns false if it stays there.
[[gnu::flatten]] bool ReceiveQueue::receive(const wire::Slot& slot) noexcept {
    const Arrival arrival = read(slot);
    if (!is_due(arrival, slot)) return false;
    ring_.note(slot);
    consume(arrival, slot);
    if (is(stopped)) return false;  // the slot that could not be received is not confirmed
    const bool owes = arrival.way == Way::Slot ? ring_.pop() : ring_.pop_with_area(arrival.length);
    if (owes) ring_.confirm();
    return true;
}

/// Confirms consumed slots to the sender: immediately if it waits, otherwise when a poll finds nothing new, because a
/// message may carry the confirmation before then. A sender that goes to sleep sets its waiting flag and rings the
/// agent; see confirm_promptly().
void ReceiveQueue::confirm(std::uint8_t seen) noexcept {
    if ((seen & wire::slot_flags::acknowledge) != 0) return ring_.confirm();
    acknowledgment_due_ = (seen & wire::slot_flags::confirm) != 0;
    ring_.confirm_if_awaited(!acknowledgment_due_);
}

void ReceiveQueue::confirm_promptly() noexcept {
    acknowledgment_due_ = false;
    if (connection_ != nullptr) ring_.confirm();
}

ReceiveQueue::Arrival ReceiveQueue::read(const wire::Slot& slot) const noexcept {
    Arrival arrival;
    arrival.kind = read_once(slot.kind);
    arrival.flags = read_once(slot.flags);
    arrival.length = arrival.total = read_once(slot.length);
    arrival.immediate = slot.immediate;
    const auto has = [&arrival](std::uint8_t flag) { return (arrival.flags & flag) != 0; };
    arrival.operation = is_write(arrival.kind) ? CompletedOperation::ReceiveRdmaWrite : CompletedOperation::Receive;
    arrival.with_immediate = has(wire::slot_flags::immediate);
    arrival.invalidates = has(wire::slot_flags::invalidate);
    arrival.solicited = has(wire::slot_flags::solicited);
    arrival.way = way_of(arrival.flags);
    if (arrival.kind != SlotKind::Message) return arrival;
    if (arrival.way == Way::Slot) {
        if (arrival.length <= wire::inline_bytes) arrival.payload = slot.payload;
        return arrival;
    }
    const wire::External external = wire::read_payload<wire::External>(slot);
    arrival.total = external.total;
    if (arrival.length <= wire::fragment_bytes && external.offset <= wire::area_bytes - arrival.length)
        arrival.payload = ring_.ring().area + external.offset;
    return arrival;
}

bool ReceiveQueue::is_due(const Arrival& arrival, const wire::Slot& slot) noexcept {
    if (takes_receive(arrival.kind) && shared_ != nullptr && !is(in_message) && !have_receive()) return false;
    return arrival.kind != SlotKind::AgentFlush || is_flushed(slot);
}

/// Takes a receive from the shared queue for a new message.
bool ReceiveQueue::have_receive() noexcept {
    if (!entries_.empty()) return true;
    if (!completions_.has_room()) return false;
    if (!shared_->take(entries_.vacant(), member_, connection_->number())) return false;
    entries_.commit();
    completions_.keep_place();
    count_posted();
    return true;
}

[[gnu::flatten]] void ReceiveQueue::consume(const Arrival& arrival, const wire::Slot& slot) noexcept {
    switch (arrival.kind) {
        case SlotKind::Message: receive_fragment(arrival); return;
        case SlotKind::MessageAborted:
            if (!is(in_message)) return stop();
            set(in_message, false);
            return abort_message(arrival);
        case SlotKind::WriteNotice:
        case SlotKind::NoticeAborted:
        case SlotKind::RefusedNotice: return consume_notice(arrival);
        case SlotKind::NoReceive:
            // On reliable levels the sender breaks the connection, and its hang-up follows this slot.
            return endpoint_.missed_receive(arrival.with_immediate ? CompletedOperation::ReceiveRdmaWrite
                                                                   : CompletedOperation::Receive);
        case SlotKind::WriteAborted:
            return endpoint_.raise(AsyncEventKind::RemoteWriteAborted, CompletedOperation::RdmaWrite);
        case SlotKind::WriteRefused:
            return was_refused(AsyncEventKind::RemoteWriteProtection, CompletedOperation::RdmaWrite);
        case SlotKind::ReadRefused:
            return was_refused(AsyncEventKind::RemoteReadProtection, CompletedOperation::RdmaRead);
        case SlotKind::AgentWrite:
        case SlotKind::AgentRead:
        case SlotKind::AgentAtomic:
        case SlotKind::AgentFetchAdd:
        case SlotKind::AgentCompareSwap: return serve_agent_order(arrival, slot);
        case SlotKind::AgentFlush: return finish_flush(slot);
    }
    stop();  // invalid kind: the peer violates the protocol
}

/// The peer has found that its request may not access this end's memory.
void ReceiveQueue::was_refused(AsyncEventKind kind, CompletedOperation operation) noexcept {
    endpoint_.raise(kind, operation);
    endpoint_.tell_of_peer(operation, CompletionCode::Success,
                           "the key, the address or a right is wrong; its log says which");
}

void ReceiveQueue::receive_fragment(const Arrival& arrival) noexcept {
    if (arrival.payload == nullptr) return stop();
    const bool last = (arrival.flags & wire::slot_flags::more) == 0;
    if (!is(in_message)) {
        if (entries_.empty()) {  // a correct peer sends NoReceive instead
            endpoint_.missed_receive(CompletedOperation::Receive);
            return stop();
        }
        begin_message();
        set(in_message, true);
    }
    if (!take_fragment(arrival, {arrival.payload, arrival.length}, last)) return stop();
    set(in_message, !last);
}

void ReceiveQueue::consume_notice(const Arrival& arrival) noexcept {
    if (is(in_message)) return stop();  // the receive belongs to the message
    if (entries_.empty()) {
        endpoint_.missed_receive(arrival.operation);
        return fail_connection(wire::Fault::Operation, true);
    }
    if (arrival.kind == SlotKind::NoticeAborted) return fail_front(arrival, CompletionCode::PartialMessage);
    if (arrival.kind == SlotKind::RefusedNotice) {
        fail_front(arrival, CompletionCode::LocalProtection);
        return set(by_peer, is(stopped));  // it is the peer's request that was refused
    }
    take_notice(arrival);
}

bool ReceiveQueue::may_use(const Sge& sge, std::uint64_t bytes) noexcept {
    return endpoint_.may_use(local_, sge, bytes, true);
}

void ReceiveQueue::add_to(EndpointCounters& counters) const noexcept {
    traffic_.add_to(counters);
    counters.posted_receives += {posted_.value(), posted_bytes_.value()};
    counters.wakeups += ring_.rings();
}

void ReceiveQueue::refuse(CompletionCode code) noexcept {
    lock().assume_held();
    fail_connection(code == CompletionCode::RemoteLength ? wire::Fault::Length : wire::Fault::Operation, false);
}

/// On reliable levels a failure ends the connection. A sender that waits for confirmation learns which slot caused it.
void ReceiveQueue::fail_connection(wire::Fault fault, bool caused_by_peer) noexcept {
    if (!endpoint_.is_reliable()) return;
    ring_.report(fault);
    stop(caused_by_peer);
}

void ReceiveQueue::stop(bool caused_by_peer) noexcept {
    set(stopped, true);
    set(by_peer, caused_by_peer);
    endpoint_.request_break();
}

}  // namespace viaduct::loopback
