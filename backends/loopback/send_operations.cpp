// SPDX-License-Identifier: BSD-3-Clause
// How the send queue executes each kind of request. An operation that returns Blocked is executed again later and
// continues where it stopped.
#include <array>
#include <atomic>

#include "backends/loopback/device.hpp"
#include "backends/loopback/endpoint.hpp"
#include "backends/loopback/send_queue.hpp"
#include "backends/support/atomic_word.hpp"
#include "backends/support/mapped_memory.hpp"

namespace viaduct::loopback {
namespace {

using wire::SlotKind;

template <class Payload>
void set_payload(wire::Slot& slot, const Payload& payload) noexcept {
    static_assert(sizeof payload <= wire::inline_bytes);
    std::memcpy(slot.payload, &payload, sizeof payload);
}

/// Returns the immediate data or the key of a window.
std::uint32_t word_of(const SendRequest& request) noexcept {
    return request.opcode == Opcode::SendInvalidate ? request.remote.key : request.immediate;
}

/// How many bytes of the peer's memory an operation needs.
template <class Operation>
std::uint64_t bytes_accessed(const Operation& operation) noexcept {
    return operation.request.opcode == Opcode::Flush ? operation.request.flush_bytes : operation.total;
}

std::uint32_t next_fragment(std::uint64_t total, std::uint64_t moved) noexcept {
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(total - moved, wire::fragment_bytes));
}

}  // namespace

SendQueue::Outcome SendQueue::execute(Operation& operation) noexcept {
    lock().assume_held();
    if (operation.code != CompletionCode::Success) return fail_early(operation);
    if (operation.stage == Stage::Unchecked)
        if (const auto code = support::check_format(operation.request, endpoint_.is_reliable());
            code != CompletionCode::Success)
            return fail(operation, code);
    // Fences (guide, section 5.2) need no code here, because an RDMA read completes before the next request starts.
    switch (operation.request.opcode) {
        case Opcode::Send: return send(operation);
        case Opcode::SendInvalidate: return send_and_invalidate(operation);
        case Opcode::Flush: return flush(operation);
        case Opcode::BindWindow: return bind(operation);
        case Opcode::RdmaWrite:
        case Opcode::RdmaRead:
        case Opcode::AtomicWrite:
        case Opcode::FetchAdd:
        case Opcode::CompareSwap: break;
    }
    return rdma(operation);
}

SendQueue::Outcome SendQueue::send(Operation& operation) noexcept {
    const SendRequest& request = operation.request;
    if (operation.stage < Stage::Started) {
        if (const auto code = check_pieces(operation); code != CompletionCode::Success) return fail(operation, code);
        if (!have_slot()) return Outcome::Blocked;
        switch (take_credit(operation)) {
            case Credit::Missing: return finish_without_receive(operation);
            case Credit::Awaited: return Outcome::Blocked;
            case Credit::Taken: start(operation);
        }
    }
    const bool invalidates = request.opcode == Opcode::SendInvalidate;
    const std::uint8_t marks = marks_of(request) | (invalidates ? wire::slot_flags::invalidate : 0);
    const std::uint8_t last = confirmation(request);
    if (last == wire::slot_flags::acknowledge) ring_.set_waiting(true);
    if (operation.total <= wire::inline_bytes) {
        wire::Slot& slot = ring_.next();
        if (!support::gather(request.sges, 0, slot.payload, operation.total)) return abort(operation);
        operation.way = Way::Slot;
        ring_.publish(slot, SlotKind::Message, marks | last, static_cast<std::uint32_t>(operation.total),
                      word_of(request));
    } else {
        operation.way = Way::Area;
        while (operation.moved < operation.total) {
            const std::uint32_t length = next_fragment(operation.total, operation.moved);
            std::uint32_t offset = 0;
            if (!have_slot() || !place_in_area(length, offset)) return Outcome::Blocked;
            if (!copy_to_area(operation, length, offset)) return abort(operation);
            operation.moved += length;
            wire::Slot& slot = ring_.next();
            set_payload(slot, wire::External{offset, static_cast<std::uint32_t>(operation.total)});
            const bool more = operation.moved < operation.total;
            ring_.publish(slot, SlotKind::Message,
                          wire::slot_flags::external | marks | (more ? wire::slot_flags::more : last), length,
                          word_of(request));
        }
    }
    return hand_over(operation, last);
}

/// The requests after it wait until the window is invalidated.
SendQueue::Outcome SendQueue::send_and_invalidate(Operation& operation) noexcept {
    if (operation.stage == Stage::Awaiting) return await_answer(operation);
    const Outcome outcome = send(operation);
    if (outcome != Outcome::InFlight) return outcome;
    operation.stage = Stage::Awaiting;
    return Outcome::Blocked;
}

/// Called when the last slot of a message is written. The operation is complete now, or when the peer confirms the
/// slot.
SendQueue::Outcome SendQueue::hand_over(Operation& operation, std::uint8_t confirmation) noexcept {
    operation.last_slot = ring_.end();
    if (confirmation == wire::slot_flags::acknowledge || ring_.must_ring()) ring_.ring();
    return confirmation == 0 ? Outcome::Finished : Outcome::InFlight;
}

SendQueue::Outcome SendQueue::rdma(Operation& operation) noexcept {
    const SendRequest& request = operation.request;
    const bool with_notice = notifies(request);
    if (operation.stage == Stage::Awaiting) return await_agent(operation);
    if (operation.stage < Stage::Started) {
        if (const auto code = check_pieces(operation); code != CompletionCode::Success) return fail(operation, code);
        if (with_notice) {
            if (!have_slot()) return Outcome::Blocked;
            switch (take_credit(operation)) {
                case Credit::Missing: return finish_without_receive(operation);
                case Credit::Awaited: return Outcome::Blocked;
                case Credit::Taken: break;
            }
        }
        start(operation);
    }
    if (operation.fetched) return store_fetched(operation);
    if (operation.moved < operation.total) {
        const auto region = connection_->peer().region(request.remote.key);
        if (!region || !may_access(*region, operation)) return refuse(operation);
        const Outcome outcome = transfer(operation, *region);
        if (outcome != Outcome::Finished || operation.moved < operation.total) return outcome;
    }
    return with_notice ? notify_write(operation) : Outcome::Finished;
}

CompletionCode SendQueue::check_pieces(const Operation& operation) noexcept {
    return support::check_pieces(
        operation.request, operation.total, endpoint_.max_transfer_bytes(),
        [this](const Sge& sge, bool written) { return endpoint_.may_use(local_, sge, sge.length, written); });
}

/// Performs the target's protection check here, because the target is passive.
bool SendQueue::may_access(const RegionView& region, const Operation& operation) const noexcept {
    const SendRequest& request = operation.request;
    return region.allows(support::use_of(request.opcode), connection_->remote_attributes().access,
                         connection_->peer_domain(), connection_->peer_number(), request.remote.address,
                         bytes_accessed(operation));
}

/// Selects a method to access the peer's memory: directly if it is mapped here, otherwise through the kernel, otherwise
/// through the peer's agent.
SendQueue::Outcome SendQueue::transfer(Operation& operation, const RegionView& region) noexcept {
    if (operation.stage == Stage::ByAgent) return transfer_by_agent(operation);
    const RemoteAddress& remote = operation.request.remote;
    std::byte* target = connection_->find_memory(region, remote.key, remote.address, operation.total,
                                                 operation.request.opcode != Opcode::RdmaRead);
    if (target != nullptr) return transfer_directly(operation, target);
    if (connection_->peer().process_vm() && !support::is_atomic(operation.request.opcode))
        return transfer_by_kernel(operation);
    return transfer_by_agent(operation);
}

SendQueue::Outcome SendQueue::transfer_directly(Operation& operation, std::byte* target) noexcept {
    const SendRequest& request = operation.request;
    if (is_fetching_atomic(request.opcode)) return fetch_word(operation, target);
    if (request.opcode == Opcode::AtomicWrite) {
        if (!survives([&] { support::atomic_word(target).store(operation.value, std::memory_order_release); }))
            return refuse(operation);
    } else {
        const bool reads = request.opcode == Opcode::RdmaRead;
        const auto copy_up_to = [&](std::uint64_t end) {
            std::byte* next = target + operation.moved;
            return support::for_stretch(
                request.sges, operation.moved, end - operation.moved, [&](std::byte* piece, std::uint64_t length) {
                    std::byte* const there = std::exchange(next, next + length);
                    return reads ? copy_guarded(piece, there, length) : support::deliver_piece(there, piece, length);
                });
        };
        if (!copy_up_to(operation.total)) {
            (void)copy_up_to(usable_bytes(operation));  // a copy may have begun at its end
            return lose(operation);
        }
    }
    operation.moved = operation.total;
    operation.way = Way::Mapped;
    return Outcome::Finished;
}

SendQueue::Outcome SendQueue::fetch_word(Operation& operation, std::byte* target) noexcept {
    const SendRequest& request = operation.request;
    volatile std::uint64_t seen = 0;  // survives() returns twice
    const bool there = survives([&] {
        seen = request.opcode == Opcode::FetchAdd ? support::fetch_add(target, request.add)
                                                  : support::compare_swap(target, request.compare, request.swap);
    });
    if (!there) return refuse(operation);
    operation.value = seen;
    operation.fetched = true;
    return store_fetched(operation);
}

/// Stores what fetch_word() has fetched. If that is not possible, the request may have to wait before it fails, and
/// must not be executed again.
SendQueue::Outcome SendQueue::store_fetched(Operation& operation) noexcept {
    if (!copy_unit<sizeof operation.value>(static_cast<std::byte*>(operation.request.sges[0].address),
                                           reinterpret_cast<const std::byte*>(&operation.value)))
        return abort(operation);
    operation.moved = operation.total;
    operation.way = Way::Mapped;
    return Outcome::Finished;
}

SendQueue::Outcome SendQueue::transfer_by_kernel(Operation& operation) noexcept {
    const SendRequest& request = operation.request;
    std::array<iovec, support::max_pieces> pieces;
    const std::uint64_t length = operation.total - operation.moved;
    const std::size_t count = support::to_iovecs(request.sges, operation.moved, length, pieces);
    Peer& peer = connection_->peer();
    const std::uint64_t address = request.remote.address + operation.moved;
    const std::span<const iovec> local(pieces.data(), count);
    const Status status = request.opcode == Opcode::RdmaRead ? peer.copy_from(address, local, length)
                                                             : peer.copy_to(address, local, length);
    switch (status.code()) {
        case Code::Ok:
            operation.moved = operation.total;
            operation.way = Way::Kernel;
            return Outcome::Finished;
        case Code::PermissionDenied: return transfer_by_agent(operation);
        case Code::Unreachable: return Outcome::Blocked;  // the agent ends the connection
        default: break;
    }
    return lose(operation);
}

/// How many bytes of an operation this side's memory is there for, at least those that were moved.
std::uint64_t SendQueue::usable_bytes(const Operation& operation) noexcept {
    const auto needed = support::fetches(operation.request.opcode) ? support::Probe::Writing : support::Probe::Reading;
    return std::max(operation.moved, support::usable_bytes(operation.request.sges, needed));
}

/// Memory of one of the sides is not there, or this side's cannot be written by what it fetches.
SendQueue::Outcome SendQueue::lose(Operation& operation) noexcept {
    const std::uint64_t there = usable_bytes(operation);
    if (there >= operation.total) return refuse(operation);  // the peer's memory is not there
    operation.moved = there;
    return abort(operation);
}

/// The last resort, and the only method for atomic operations on memory that is not mapped here.
SendQueue::Outcome SendQueue::transfer_by_agent(Operation& operation) noexcept {
    const bool fetched = support::fetches(operation.request.opcode);
    operation.way = Way::Agent;
    ring_.set_waiting(true);
    do {
        const std::uint32_t length = next_fragment(operation.total, operation.moved);
        if (!have_slot()) return Outcome::Blocked;
        std::uint32_t offset = 0;
        if (operation.request.opcode != Opcode::AtomicWrite && !place_in_area(length, offset)) return Outcome::Blocked;
        if (operation.request.opcode == Opcode::RdmaWrite && !copy_to_area(operation, length, offset))
            return abort(operation);
        place_order(operation, length, offset);
        operation.stage = Stage::ByAgent;
        if (!fetched) operation.moved += length;
    } while (!fetched && operation.moved < operation.total);
    operation.last_slot = ring_.end();
    operation.stage = Stage::Awaiting;
    ring_.ring();
    return Outcome::Blocked;
}

/// Copies the next `length` bytes to the range of the area that the next slot has. Returns false, and gives the range
/// back, if they are not there.
bool SendQueue::copy_to_area(const Operation& operation, std::uint32_t length, std::uint32_t offset) noexcept {
    const auto copy = [this](auto... piece) { return ring_.copy_to_area(piece...); };
    if (support::gather(operation.request.sges, operation.moved, ring_.area(offset), length, copy)) return true;
    ring_.unplace(offset);
    return false;
}

/// Writes an order for the peer's agent for the next `length` bytes, which are or will be at `offset` of the area.
void SendQueue::place_order(Operation& operation, std::uint32_t length, std::uint32_t offset) noexcept {
    const SendRequest& request = operation.request;
    wire::AgentTransfer order{.address = request.remote.address + operation.moved,
                              .value = operation.value,
                              .compare = 0,
                              .key = request.remote.key,
                              .offset = offset};
    operation.area_offset = offset;
    SlotKind kind = SlotKind::AgentAtomic;
    switch (request.opcode) {
        case Opcode::RdmaRead: kind = SlotKind::AgentRead; break;
        case Opcode::RdmaWrite: kind = SlotKind::AgentWrite; break;
        case Opcode::FetchAdd:
            kind = SlotKind::AgentFetchAdd;
            order.value = request.add;
            break;
        case Opcode::CompareSwap:
            kind = SlotKind::AgentCompareSwap;
            order.value = request.swap;
            order.compare = request.compare;
            break;
        default: break;
    }
    wire::Slot& slot = ring_.next();
    set_payload(slot, order);
    ring_.publish(slot, kind, wire::slot_flags::acknowledge, length, 0);
}

SendQueue::Outcome SendQueue::await_agent(Operation& operation) noexcept {
    read_consumed();
    if (!ring_.is_consumed(operation.last_slot)) return Outcome::Blocked;
    if (support::fetches(operation.request.opcode)) {
        const std::uint32_t length = next_fragment(operation.total, operation.moved);
        if (!support::scatter(operation.request.sges, operation.moved, ring_.area(operation.area_offset), length))
            return abort(operation);
        operation.moved += length;
    }
    operation.stage = Stage::ByAgent;
    return rdma(operation);
}

/// Earlier writes are in place before this request starts. Memory that is not mapped from a file needs nothing else.
SendQueue::Outcome SendQueue::flush(Operation& operation) noexcept {
    const SendRequest& request = operation.request;
    if (operation.stage == Stage::Awaiting) return await_answer(operation);
    const auto region = connection_->peer().region(request.remote.key);
    if (!region || !may_access(*region, operation)) return refuse(operation);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (request.flush_to == FlushTarget::Visibility || !region->has_file()) return Outcome::Finished;
    if (!have_slot()) return Outcome::Blocked;
    start(operation);
    ring_.set_waiting(true);
    wire::Slot& slot = ring_.next();
    set_payload(slot, wire::AgentTransfer{.address = request.remote.address,
                                          .value = request.flush_bytes,
                                          .compare = 0,
                                          .key = request.remote.key,
                                          .offset = 0});
    ring_.publish(slot, SlotKind::AgentFlush, wire::slot_flags::acknowledge, 0, 0);
    operation.last_slot = ring_.end();
    operation.stage = Stage::Awaiting;
    ring_.ring();
    return Outcome::Blocked;
}

SendQueue::Outcome SendQueue::await_answer(Operation& operation) noexcept {
    read_consumed();
    return ring_.is_consumed(operation.last_slot) ? Outcome::Finished : Outcome::Blocked;
}

/// Notifies the peer of an RDMA write with immediate data, which consumes a receive there.
SendQueue::Outcome SendQueue::notify_write(Operation& operation) noexcept {
    if (!have_slot()) return Outcome::Blocked;
    const SendRequest& request = operation.request;
    const std::uint8_t last = confirmation(request);
    if (last == wire::slot_flags::acknowledge) ring_.set_waiting(true);
    ring_.publish(ring_.next(), SlotKind::WriteNotice, marks_of(request) | last,
                  static_cast<std::uint32_t>(operation.total), request.immediate);
    return hand_over(operation, last);
}

/// Memory of this side is not there. If a part was already sent, the peer is notified (guide, sections 3.8.1, RDMA
/// Write Packet Abort, and 5.2, Partial Packet Error).
SendQueue::Outcome SendQueue::abort(Operation& operation) noexcept {
    if (!may_fail() || !have_slot()) return Outcome::Blocked;
    const SendRequest& request = operation.request;
    const bool notice = notifies(request);
    if (support::fetches(request.opcode)) operation.moved = 0;
    if (operation.moved != 0) {
        const SlotKind of_write = notice ? SlotKind::NoticeAborted : SlotKind::WriteAborted;
        ring_.publish(ring_.next(), request.opcode == Opcode::RdmaWrite ? of_write : SlotKind::MessageAborted, 0, 0, 0);
        ring_.ring();
    } else if (notice || request.opcode == Opcode::Send || request.opcode == Opcode::SendInvalidate) {
        ring_.return_credit();  // no receive was consumed
    }
    return fail(operation, CompletionCode::LocalProtection);
}

/// The target's protection denies the operation. Both sides are notified according to the reliability level (guide,
/// sections 3.8.1 and 5.2, RDMA protection error).
SendQueue::Outcome SendQueue::refuse(Operation& operation) noexcept {
    if (!may_fail() || !have_slot()) return Outcome::Blocked;
    const SendRequest& request = operation.request;
    SlotKind kind = SlotKind::WriteRefused;
    if (request.opcode == Opcode::RdmaRead || request.opcode == Opcode::Flush)
        kind = SlotKind::ReadRefused;
    else if (notifies(request))
        kind = SlotKind::RefusedNotice;
    ring_.publish(ring_.next(), kind, 0, 0, request.immediate);
    ring_.ring();
    const bool told = request.opcode != Opcode::RdmaWrite || support::reports_refusals(endpoint_.attributes());
    const CompletionCode code = told ? CompletionCode::RemoteProtection : CompletionCode::Success;
    if (support::wants_reasons())
        explain(operation, code,
                support::why_inaccessible(
                    support::use_of(request.opcode), request.remote, bytes_accessed(operation),
                    connection_->peer().region(request.remote.key),
                    {connection_->remote_attributes().access, connection_->peer_domain(), connection_->peer_number()}));
    return finish_refused(operation, code);
}

/// The peer has posted no receive (guide, section 3.8.1, Receive Queue Empty).
SendQueue::Outcome SendQueue::finish_without_receive(Operation& operation) noexcept {
    if (!may_fail()) return Outcome::Blocked;
    const bool writes = operation.request.opcode == Opcode::RdmaWrite;
    ring_.publish(ring_.next(), SlotKind::NoReceive, writes ? wire::slot_flags::immediate : 0, 0, 0);
    ring_.ring();
    const CompletionCode code =
        support::reports_refusals(endpoint_.attributes()) ? CompletionCode::RemoteOperation : CompletionCode::Success;
    if (support::wants_reasons()) explain(operation, code, "the peer has posted no receive");
    return finish_refused(operation, code);
}

SendQueue::Outcome SendQueue::finish_refused(Operation& operation, CompletionCode code) noexcept {
    operation.refused = true;
    refusals_.add();
    return fail(operation, code);
}

}  // namespace viaduct::loopback
