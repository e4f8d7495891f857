// SPDX-License-Identifier: BSD-3-Clause
#include "backends/loopback/receive_queue.hpp"

#include "backends/loopback/atomic_word.hpp"
#include "backends/loopback/endpoint.hpp"
#include "core/fence.hpp"
#include "core/log.hpp"

namespace viaduct::loopback {
namespace {

using wire::SlotKind;

constexpr std::uint32_t publish_every = wire::slot_count / 4;

bool is_write(SlotKind kind) noexcept { return kind == SlotKind::WriteNotice || kind == SlotKind::RefusedNotice; }

CompletedOperation received_operation(SlotKind kind) noexcept {
    return is_write(kind) ? CompletedOperation::ReceiveRdmaWrite : CompletedOperation::Receive;
}

bool takes_receive(SlotKind kind) noexcept {
    return kind == SlotKind::Message || kind == SlotKind::Offer || is_write(kind);
}

/// What the order of an agent needs of the region.
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
    if (shared_ != nullptr) return {Code::InvalidState, "the endpoint takes its receives from a shared queue"};
    if (is_full()) return {Code::QueueFull, "the receive queue is full"};
    if (request.sges.size() > endpoint_.device_attributes().max_sges)
        return {Code::InvalidParameter, "too many pieces"};
    entries_.vacant().assign(request);
    entries_.commit();
    count(1);
    if (rejecting_) {
        complete_front({}, CompletionCode::Flushed, 0);
        return {};
    }
    if (announced_ == nullptr) return {};
    const std::uint32_t posted = posted_.load(std::memory_order_relaxed) + 1;
    posted_.store(posted, std::memory_order_relaxed);
    announced_->incoming().credit.posted.store(posted, std::memory_order_release);
    if (connection_ == nullptr) return {};
    Fence::light(connection_->asymmetric_fences());
    if (connection_->incoming().producer.waiting.load(std::memory_order_relaxed) != 0) connection_->ring_peer();
    return {};
}

void ReceiveQueue::announce(Connection& connection) noexcept {
    announced_ = &connection;
    posted_.store(static_cast<std::uint32_t>(entries_.size()), std::memory_order_relaxed);
    connection.incoming().credit.posted.store(posted_.load(std::memory_order_relaxed), std::memory_order_release);
}

void ReceiveQueue::attach(Connection& connection) noexcept {
    connection_ = &connection;
    next_ = published_ = 0;
    received_ = 0;
    in_message_ = skipping_ = false;
}

void ReceiveQueue::withdraw() noexcept {
    announced_ = nullptr;
    posted_.store(0, std::memory_order_relaxed);
}

void ReceiveQueue::detach(bool reject) noexcept {
    connection_ = nullptr;
    withdraw();
    rejecting_ = reject;
    in_message_ = false;
    flush_.reset();
    while (!entries_.empty()) complete_front({}, CompletionCode::Flushed, 0);
}

[[gnu::flatten]] void ReceiveQueue::progress() noexcept {
    if (connection_ == nullptr) return;
    bool prompt = false;
    while (!endpoint_.is_breaking()) {
        const wire::Slot& slot = connection_->incoming_slots()[next_ & wire::slot_mask];
        if (slot.sequence.load(std::memory_order_acquire) != next_ + 1) break;
        const Arrival arrival = read(slot);
        if (!is_due(arrival, slot)) break;
        connection_->told_credit.store(slot.credit, std::memory_order_relaxed);
        consume(arrival, slot);
        if (endpoint_.is_breaking()) break;  // the slot that could not be received stays unconfirmed
        ++next_;
        prompt = prompt || (arrival.flags & (wire::slot_flags::external | wire::slot_flags::acknowledge)) != 0;
        if ((prompt && arrival.length == wire::fragment_bytes) || next_ - published_ >= publish_every)
            publish_consumed();
    }
    if (prompt) publish_consumed();
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

bool ReceiveQueue::is_due(const Arrival& arrival, const wire::Slot& slot) noexcept {
    if (takes_receive(arrival.kind) && shared_ != nullptr && !in_message_ && !have_receive()) return false;
    if (arrival.kind == SlotKind::Offer) return is_fetched(arrival, slot);
    return arrival.kind != SlotKind::AgentFlush || is_flushed(slot);
}

/// Takes a receive from the shared queue for the message that begins.
bool ReceiveQueue::have_receive() noexcept {
    if (!entries_.empty()) return true;
    if (!completions_.has_room()) return false;
    if (!shared_->take(entries_.vacant(), member_, connection_->number())) return false;
    entries_.commit();
    count(1);
    return true;
}

/// Copies the offered message into the receive, which consume() then completes. An offer that was withdrawn in the
/// meantime, or whose owner has died, is as good as never made: the end of the connection follows.
bool ReceiveQueue::is_fetched(const Arrival& arrival, const wire::Slot& slot) noexcept {
    if (entries_.empty()) return true;
    fetched_ = check(entries_.front(), arrival);
    if (fetched_ != CompletionCode::Success) return true;
    wire::OfferedMemory offer;
    std::memcpy(&offer, slot.payload, sizeof offer);
    const Status status = fetch(offer, entries_.front(), arrival.length);
    if (connection_->has_peer_withdrawn() || status.code() == Code::Unreachable) return false;
    if (status.ok()) return true;
    log(LogLevel::Error, "a message that the peer offered cannot be read: %s", status.where());
    endpoint_.request_break();
    report_fault(wire::Fault::Operation);
    return false;
}

Status ReceiveQueue::fetch(const wire::OfferedMemory& offer, const Receive& into, std::uint32_t length) noexcept {
    Peer& peer = connection_->peer();
    const RegionView region = peer.region(offer.key).value_or(RegionView{});
    const std::byte* source = connection_->find_memory(region, offer.key, offer.address, length, false);
    if (source != nullptr) {
        peer.order_with_own_threads();
        scatter(into.sges.span(), 0, source, length);
        peer.order_with_own_threads();
        return {};
    }
    std::array<iovec, max_pieces> pieces;
    const std::size_t count = to_iovecs(into.sges.span(), 0, length, pieces);
    return peer.copy_from(offer.address, {pieces.data(), count}, length);
}

/// Starts the flush that the slot orders, or looks whether it is done; consume() then judges.
bool ReceiveQueue::is_flushed(const wire::Slot& slot) noexcept {
    if (flush_ != nullptr) return flush_->state.load(std::memory_order_acquire) != FlushJob::State::Running;
    const wire::AgentTransfer order = agent_order(slot);
    if (!endpoint_.peer_may_access(RemoteUse::Flush, order.key, order.address, order.value)) return true;
    flush_ = endpoint_.start_flush(order.address, order.value, connection_->number());
    return flush_ == nullptr;
}

void ReceiveQueue::consume(const Arrival& arrival, const wire::Slot& slot) noexcept {
    switch (arrival.kind) {
        case SlotKind::Message: receive_fragment(arrival); return;
        case SlotKind::Offer:
        case SlotKind::WriteNotice:
        case SlotKind::RefusedNotice: {
            if (entries_.empty()) {
                endpoint_.raise(AsyncEventKind::ReceiveQueueEmpty, received_operation(arrival.kind));
                return endpoint_.fail_receive();
            }
            const Receive& entry = entries_.front();
            if (arrival.kind == SlotKind::Offer && fetched_ != CompletionCode::Success)
                return fail_front(arrival, fetched_);
            if (arrival.kind == SlotKind::RefusedNotice) return fail_front(arrival, CompletionCode::LocalProtection);
            if (entry.fault != CompletionCode::Success) return fail_front(arrival, entry.fault);
            return finish_front(arrival, arrival.length);
        }
        case SlotKind::NoReceive:
            // On reliable levels the sender breaks the connection; its hang-up comes behind this slot.
            return endpoint_.raise(AsyncEventKind::ReceiveQueueEmpty, CompletedOperation::Receive);
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
    endpoint_.request_break();  // a kind that does not exist: the peer does not keep to the protocol
}

void ReceiveQueue::receive_fragment(const Arrival& arrival) noexcept {
    if (arrival.payload == nullptr) return endpoint_.request_break();
    const bool last = (arrival.flags & wire::slot_flags::more) == 0;
    if (!in_message_) {
        if (entries_.empty()) {  // an honest peer sends NoReceive instead
            endpoint_.raise(AsyncEventKind::ReceiveQueueEmpty, CompletedOperation::Receive);
            return endpoint_.request_break();
        }
        received_ = 0;
        skipping_ = false;
        in_message_ = true;
        if (const auto code = check(entries_.front(), arrival); code != CompletionCode::Success) {
            fail_front(arrival, code);
            skipping_ = true;
        }
    }
    if (!skipping_) {
        const Receive& entry = entries_.front();
        if (received_ + arrival.length > entry.room) return endpoint_.request_break();  // more than the peer had said
        scatter(entry.sges.span(), received_, arrival.payload, arrival.length);
        received_ += arrival.length;
        if (last) finish_front(arrival, static_cast<std::uint32_t>(received_));
    }
    in_message_ = !last;
}

/// What the guide (section 5.2) checks of a receive when a message has come.
CompletionCode ReceiveQueue::check(const Receive& entry, const Arrival& arrival) const noexcept {
    if (entry.fault != CompletionCode::Success) return entry.fault;
    if (arrival.total > entry.room || arrival.total > endpoint_.max_transfer_bytes())
        return CompletionCode::LocalLength;
    for (const Sge& sge : entry.sges.span())
        if (!endpoint_.may_use(sge, true)) return CompletionCode::LocalProtection;
    return CompletionCode::Success;
}

/// The data are in place; a window that the peer wants to be gone goes now.
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
    endpoint_.fail_receive();
    if (endpoint_.is_breaking()) report_fault(wire::Fault::Operation);
}

/// Lets a sender that waits for confirmation know that this slot is why the connection broke.
void ReceiveQueue::report_fault(wire::Fault fault) noexcept {
    if (published_ != next_) {
        published_ = next_;
        connection_->incoming().consumer.consumed.store(next_, std::memory_order_release);
    }
    connection_->incoming().consumer.fault_slot.store(next_, std::memory_order_relaxed);
    connection_->incoming().consumer.fault.store(fault, std::memory_order_release);
}

void ReceiveQueue::refuse_order(RemoteUse use) noexcept {
    if (use == RemoteUse::Write || use == RemoteUse::Atomic)
        endpoint_.raise(AsyncEventKind::RemoteWriteProtection, CompletedOperation::RdmaWrite);
    else
        endpoint_.raise(AsyncEventKind::RemoteReadProtection, CompletedOperation::RdmaRead);
    endpoint_.fail_receive();
    if (endpoint_.is_breaking()) report_fault(wire::Fault::Protection);
}

/// A flush is over, or was never begun: because the peer may not, or for want of memory or a thread.
void ReceiveQueue::finish_flush(const wire::Slot& slot) noexcept {
    const auto job = std::exchange(flush_, nullptr);
    if (job != nullptr && job->state.load(std::memory_order_acquire) == FlushJob::State::Done) return;
    const wire::AgentTransfer order = agent_order(slot);
    if (!endpoint_.peer_may_access(RemoteUse::Flush, order.key, order.address, order.value))
        return refuse_order(RemoteUse::Flush);
    endpoint_.fail_receive();
    if (endpoint_.is_breaking()) report_fault(wire::Fault::Operation);
}

/// An RDMA operation that the peer could not do itself. Its checks are repeated: the peer may be hostile, and the
/// region may have changed.
void ReceiveQueue::serve_agent_order(const Arrival& arrival, const wire::Slot& slot) noexcept {
    const wire::AgentTransfer order = agent_order(slot);
    const bool word = arrival.kind != SlotKind::AgentRead && arrival.kind != SlotKind::AgentWrite;
    if (arrival.length > wire::fragment_bytes || order.offset > wire::area_bytes - arrival.length ||
        (word && (arrival.length != 8 || order.address % 8 != 0)))
        return endpoint_.request_break();
    const RemoteUse use = use_of(arrival.kind);
    if (!endpoint_.peer_may_access(use, order.key, order.address, arrival.length)) return refuse_order(use);
    auto* target = reinterpret_cast<std::byte*>(order.address);
    std::byte* area = connection_->incoming_area() + order.offset;
    const auto give_back = [area](std::uint64_t old) { std::memcpy(area, &old, sizeof old); };
    switch (arrival.kind) {
        case SlotKind::AgentWrite: std::memcpy(target, area, arrival.length); break;
        case SlotKind::AgentRead: std::memcpy(area, target, arrival.length); break;
        case SlotKind::AgentFetchAdd: give_back(fetch_add(target, order.value)); break;
        case SlotKind::AgentCompareSwap: give_back(compare_swap(target, order.compare, order.value)); break;
        default: atomic_word(target).store(order.value, std::memory_order_release);
    }
}

}  // namespace viaduct::loopback
