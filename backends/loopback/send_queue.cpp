// SPDX-License-Identifier: BSD-3-Clause
// The common case of a post, and the order of the queue. The operations are in send_operations.cpp.
#include "backends/loopback/send_queue.hpp"

#include "backends/loopback/device.hpp"
#include "backends/loopback/endpoint.hpp"
#include "backends/support/post_each.hpp"
#include "viaduct/detail/mutex.hpp"

namespace viaduct::loopback {
namespace {

/// The ways to use a region of the peer that access_directly() knows. Regions of this process need not be mapped.
enum DirectUse : unsigned { write = 1, read = 2, reachable = 4, here = 8 };

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

// ---- The common case ---------------------------------------------------------------------------------------------

/// Completes an executed request in its turn, when the peer has consumed the slots before `last_slot`.
inline void SendQueue::finish_in_turn(const SendRequest& request, CompletedOperation operation, std::uint32_t bytes,
                                      std::uint64_t last_slot) noexcept {
    count_posted();
    executed_.push({.context = request.context,
                    .awaited = last_slot,
                    .bytes = bytes,
                    .operation = operation,
                    .code = CompletionCode::Success,
                    .report = request.signaled ? Report::Success : Report::Nothing,
                    .with_immediate = false});
}

/// Completes an executed request, if there is no earlier one to complete and the completion queue is quiet.
inline void SendQueue::finish_now(const SendRequest& request, CompletedOperation operation,
                                  std::uint32_t bytes) noexcept {
    if (!request.signaled) return;
    count_posted();
    completions_.add_success(request.context, endpoint_context_, operation, bytes, *this);
}

template <SendQueue::Kind kind>
inline bool SendQueue::may_access(const RemoteAddress& remote, std::uint32_t length, unsigned uses) noexcept {
    if constexpr (kind == Kind::Short) return remote_.allows(remote.key, remote.address, length, uses);
    return remote_.allows(remote.key, remote.address, length, uses,
                          [this](const RegionView& region) { return direct_uses(region); });
}

template <SendQueue::Kind kind>
inline SendQueue::Posted SendQueue::send_directly(const SendRequest& request, std::uint32_t length) noexcept {
    if (!ring_.has_slot() || !ring_.has_credit()) return Posted::No;
    const std::uint8_t confirm = confirmation_flag_;
    if (confirm == 0 && executed_.empty() && !completions_.is_quiet()) return Posted::No;
    if (confirm != 0 && !completions_.polls_all() &&
        (kind == Kind::Short || !completions_.will_find_confirmation(*this)))
        return Posted::No;
    if (!endpoint_.may_use<kind == Kind::Any>(local_, request.sges[0], length, false)) return Posted::No;
    auto* const source = static_cast<const std::byte*>(request.sges[0].address);
    wire::Slot& slot = ring_.next();
    std::uint8_t flags = marks_of(request) | confirm;
    if (kind == Kind::Short || length <= wire::inline_bytes) {
        if (!copy_short(slot.payload, source, length)) return Posted::No;
        traffic_.add(CountedOperation::Send, Way::Slot, length);
    } else {
        wire::External external{.offset = 0, .total = length};
        if (!ring_.place(length, external.offset)) return Posted::No;
        if (!ring_.copy_to_area(ring_.area(external.offset), source, length)) {
            ring_.unplace(external.offset);
            return Posted::No;
        }
        std::memcpy(slot.payload, &external, sizeof external);
        flags |= wire::slot_flags::external;
        traffic_.add(CountedOperation::Send, Way::Area, length);
    }
    ring_.take_credit();
    ring_.publish(slot, wire::SlotKind::Message, flags, length, request.immediate);
    if (confirm != 0)
        finish_in_turn(request, CompletedOperation::Send, length, ring_.end());
    else if (!executed_.empty())
        finish_in_turn(request, CompletedOperation::Send, length, 0);
    else
        finish_now(request, CompletedOperation::Send, length);
    return ring_.must_ring() ? Posted::MustRing : Posted::Yes;
}

template <SendQueue::Kind kind, RemoteUse use>
inline SendQueue::Posted SendQueue::access_directly(const SendRequest& request, std::uint32_t length) noexcept {
    constexpr bool is_read = use == RemoteUse::Read;
    if (is_read ? !endpoint_.is_reliable() : request.with_immediate) return Posted::No;
    auto* const own = static_cast<std::byte*>(request.sges[0].address);
    if (!endpoint_.may_use<kind == Kind::Any>(local_, request.sges[0], length, is_read)) return Posted::No;
    const RemoteAddress& remote = request.remote;
    if (!may_access<kind>(remote, length, reachable | (is_read ? read : write))) return Posted::No;
    auto* target = reinterpret_cast<std::byte*>(remote.address);
    if (!remote_.known_as(here)) {
        target = connection_->peer().mapped(remote.key, remote.address, length, !is_read);
        if (target == nullptr) return Posted::No;
    }
    const auto copy = [&]() __attribute__((always_inline)) {
        if (!(is_read ? copy_guarded(own, target, length) : support::deliver_piece(target, own, length))) return false;
        traffic_.add(is_read ? CountedOperation::RdmaRead : CountedOperation::RdmaWrite, Way::Mapped, length);
        return true;
    };
    constexpr CompletedOperation operation = is_read ? CompletedOperation::RdmaRead : CompletedOperation::RdmaWrite;
    if (executed_.empty()) {
        if (!completions_.is_quiet() || !copy()) return Posted::No;
        finish_now(request, operation, length);
    } else {
        if (!copy()) return Posted::No;
        finish_in_turn(request, operation, length, 0);
    }
    return Posted::Yes;
}

unsigned SendQueue::direct_uses(const RegionView& region) const noexcept {
    const auto permits = [&](RemoteUse use) {
        return region.permits(use, connection_->remote_attributes().access, connection_->peer_domain(),
                              connection_->peer_number());
    };
    const bool is_here = connection_->peer().is_this_process();
    return (permits(RemoteUse::Write) ? write : 0u) | (permits(RemoteUse::Read) ? read : 0u) |
           (is_here || region.is_mappable() ? reachable : 0u) | (is_here ? here : 0u);
}

/// Executes a request of one SGE right away, from the first check to the completion. Returns Posted::No, without any
/// effect, if the request has to wait or to fail, or is neither a send of one slot nor RDMA to memory that is mapped
/// here. Then enqueue() handles it.
template <SendQueue::Kind kind, Opcode opcode>
inline SendQueue::Posted SendQueue::post_directly(const SendRequest& request) noexcept {
    const std::uint32_t length = request.sges[0].length;
    if (length >= direct_below_.of(kind, opcode) || !entries_.empty() || !has_room()) return Posted::No;
    if (kind == Kind::Short && length > most_short(opcode)) __builtin_unreachable();  // so a copy needs no call
    if constexpr (opcode == Opcode::Send) return send_directly<kind>(request, length);
    constexpr RemoteUse use = opcode == Opcode::RdmaRead ? RemoteUse::Read : RemoteUse::Write;
    return access_directly<kind, use>(request, length);
}

/// The same for any request.
inline SendQueue::Posted SendQueue::post_any_directly(const SendRequest& request) noexcept {
    if (request.sges.size() != 1 || request.fault != CompletionCode::Success) return Posted::No;
    switch (request.opcode) {
        case Opcode::Send: return post_directly<Kind::Any, Opcode::Send>(request);
        case Opcode::RdmaWrite: return post_directly<Kind::Any, Opcode::RdmaWrite>(request);
        case Opcode::RdmaRead: return post_directly<Kind::Any, Opcode::RdmaRead>(request);
        default: return Posted::No;
    }
}

/// There is one instance for each operation, because the registers that one of them needs would be saved for all.
template <Opcode opcode>
const Status* SendQueue::post_as(const SendRequest& request) noexcept {
    if (request.sges.size() != 1 || !lock().try_lock_as_owner()) [[unlikely]]
        return support::post_generally(*this, request);
    const Posted posted = post_directly<Kind::Short, opcode>(request);
    if (posted == Posted::No) [[unlikely]]
        return post_as_owner<opcode>(request);
    if (posted == Posted::MustRing) [[unlikely]]
        return ring_as_owner();
    lock().unlock_as_owner();
    return nullptr;
}

/// The rest of post_as() for what is not short.
template <Opcode opcode>
const Status* SendQueue::post_as_owner(const SendRequest& request) noexcept {
    const Posted posted = post_directly<Kind::Any, opcode>(request);
    if (posted == Posted::MustRing) ring_.ring();
    lock().unlock_as_owner();
    return posted == Posted::No ? support::post_generally(*this, request) : nullptr;
}

const Status* SendQueue::ring_as_owner() noexcept {
    ring_.ring();
    lock().unlock_as_owner();
    return nullptr;
}

const Status* SendQueue::post(const SendRequest& request) noexcept {
    switch (request.opcode) {
        case Opcode::Send: return post_as<Opcode::Send>(request);
        case Opcode::RdmaWrite: return post_as<Opcode::RdmaWrite>(request);
        case Opcode::RdmaRead: return post_as<Opcode::RdmaRead>(request);
        default: return support::post_generally(*this, request);
    }
}

template <Opcode opcode, class... Remote>
const Status* SendQueue::post_single_as_owner(std::uint64_t context, void* address, std::uint32_t length,
                                              std::uint32_t key, Remote... remote) noexcept {
    const Sge sge{address, key, length};
    const SendRequest request{.context = context, .opcode = opcode, .remote = {remote...}, .sges = {&sge, 1}};
    const Posted posted = post_directly<Kind::Any, opcode>(request);
    if (posted == Posted::MustRing) ring_.ring();
    lock().unlock_as_owner();
    if (posted != Posted::No) return nullptr;
    return support::post_one_generally<opcode>(*this, context, address, length, key, remote...);
}

template <Opcode opcode, class... Remote>
[[gnu::always_inline]] inline const Status* SendQueue::post_single(std::uint64_t context, void* address,
                                                                   std::uint32_t length, std::uint32_t key,
                                                                   Remote... remote) noexcept {
    if (!lock().try_lock_as_owner()) [[unlikely]]
        return support::post_one_generally<opcode>(*this, context, address, length, key, remote...);
    const Sge sge{address, key, length};
    const SendRequest request{.context = context, .opcode = opcode, .remote = {remote...}, .sges = {&sge, 1}};
    const Posted posted = post_directly<Kind::Short, opcode>(request);
    if (posted == Posted::No) [[unlikely]]
        return post_single_as_owner<opcode>(context, address, length, key, remote...);
    if (posted == Posted::MustRing) [[unlikely]]
        return ring_as_owner();
    lock().unlock_as_owner();
    return nullptr;
}

const Status* SendQueue::send_one(std::uint64_t context, void* address, std::uint32_t length,
                                  std::uint32_t key) noexcept {
    return post_single<Opcode::Send>(context, address, length, key);
}

const Status* SendQueue::write_one(std::uint64_t context, void* address, std::uint32_t length, std::uint32_t key,
                                   std::uint64_t remote_address, std::uint32_t remote_key) noexcept {
    return post_single<Opcode::RdmaWrite>(context, address, length, key, remote_address, remote_key);
}

const Status* SendQueue::read_one(std::uint64_t context, void* address, std::uint32_t length, std::uint32_t key,
                                  std::uint64_t remote_address, std::uint32_t remote_key) noexcept {
    return post_single<Opcode::RdmaRead>(context, address, length, key, remote_address, remote_key);
}

Status SendQueue::post(std::span<const SendRequest> requests, std::size_t& posted) noexcept {
    const LockGuard guard(lock());
    return support::post_each(requests, posted, [this](const SendRequest& request) VIADUCT_REQUIRES(lock()) {
        const Posted directly = post_any_directly(request);
        if (directly == Posted::No) return enqueue(request);
        if (directly == Posted::MustRing) ring_.ring();
        return Status();
    });
}

// ---- The general case --------------------------------------------------------------------------------------------

/// Makes room by completing confirmed unsignaled requests, even if the consumer does not poll.
bool SendQueue::make_room() noexcept {
    progress();
    if (!is_full()) return true;
    expect_ring();
    return !is_full();
}

/// Takes the completion of the only executed request, if the peer has consumed it. No request waits behind it. Returns
/// false, without any effect, in all other cases. Then advance() handles them.
inline bool SendQueue::retire_directly(Completion& out) noexcept {
    if (executed_.size() != 1 || draining_) return false;
    const support::ExecutedSend& executed = executed_.front();
    if (executed.report != Report::Success || !ring_.read_all_consumed()) return false;
    PackedCompletion::write_success(out, executed.context, endpoint_context_, executed.operation, executed.bytes);
    count_polled();
    executed_.pop();
    ring_.set_waiting(false);
    return true;
}

/// The common case is a completion for retire_directly(), or that no request is under way.
bool SendQueue::poll_one_as_owner(Completion& out) noexcept {
    if (!entries_.empty()) return completions_.find_one_as_owner(out);
    const bool found = !executed_.empty();
    if (found && !retire_directly(out)) return completions_.find_one_as_owner(out);
    lock().unlock_as_owner();
    return found;
}

void SendQueue::progress() noexcept {
    if (entries_.empty() && executed_.empty()) return;
    lock().assume_held();
    if (entries_.empty()) {
        const std::span<Completion> out = completions_.output();
        if (!out.empty() && retire_directly(out.front())) return completions_.handed_out(1);
    }
    if (advance()) endpoint_.sends_wait();
}

bool SendQueue::advance() noexcept {
    if (connection_ == nullptr) return false;
    read_consumed();
    if (!entries_.empty()) execute_entries();
    retire();
    if (entries_.empty() && executed_.empty()) ring_.set_waiting(false);
    return !entries_.empty();
}

void SendQueue::expect_ring() noexcept {
    lock().assume_held();
    if (executed_.empty() || connection_ == nullptr) return;
    read_consumed();
    retire();
    if (executed_.empty()) return;
    ring_.set_waiting(true);
    ring_.ring();
    read_consumed();  // the ring is a full fence: either the peer has seen the waiting flag, or this side sees the
                      // peer's update
    retire();
}

void SendQueue::drain() noexcept {
    suspend();
    if (begin_drain()) expect_ring();
}

std::uint64_t SendQueue::awaited(const Operation& operation, Outcome outcome) noexcept {
    if (operation.code == CompletionCode::Success && !operation.refused && support::is_counted(operation.request))
        traffic_.add(support::counted_as(operation.request), operation.way, operation.total);
    return outcome == Outcome::InFlight ? operation.last_slot : 0;
}

void SendQueue::add_to(EndpointCounters& counters) const noexcept {
    traffic_.add_to(counters);
    counters.credit_waits += credit_waits_.value();
    counters.refusals += refusals_.value();
    counters.wakeups += ring_.rings();
}

/// A peer with a shared receive queue does not know in advance whether there will be a receive. Senders to which
/// refusals are reported wait for the confirmation.
std::uint8_t SendQueue::confirmation_flag() const noexcept {
    if (!endpoint_.is_reliable()) return 0;
    if (endpoint_.attributes().reliability == Reliability::ReliableReception || connection_->peer_shares_receives())
        return wire::slot_flags::acknowledge;
    return support::reports_refusals(endpoint_.attributes()) ? wire::slot_flags::confirm : 0;
}

void SendQueue::attach(Connection& connection, const RingConsumer& incoming) noexcept {
    connection_ = &connection;
    ring_.attach(connection.outgoing(), incoming);
    local_.follow(endpoint_.device().regions().table());
    remote_.follow(connection.peer().regions());
    confirmation_flag_ = confirmation_flag();
    if (completions_.can_add_success()) {
        const std::uint32_t most = endpoint_.max_transfer_bytes();
        direct_below_.set(Opcode::RdmaWrite, most);
        if (confirmation_flag_ != wire::slot_flags::acknowledge)
            direct_below_.set(Opcode::Send, std::min(most, wire::fragment_bytes));
    }
    end_drain();
}

CompletionCode SendQueue::refusal() const noexcept { return fault_code(ring_.fault()); }

/// Reports whether the request that the peer has refused is complete, as messages are that need no confirmation. Then
/// it is not the one that is under way.
bool SendQueue::is_refused_one_complete() noexcept {
    return executed_.empty() && (entries_.empty() || !ring_.is_fault_since(entries_.front().first_slot));
}

void SendQueue::detach(CompletionCode in_flight) noexcept {
    CompletionCode refused = CompletionCode::Success;
    if (connection_ != nullptr) {
        refused = refusal();  // the peer says first which slots it has consumed, so this is of the next one
        read_consumed();
        retire();
        if (refused != CompletionCode::Success && is_refused_one_complete()) {
            if (!endpoint_.is_breaking()) refusals_.add();  // otherwise this side may have refused and counted it
            refused = CompletionCode::Success;
            in_flight = CompletionCode::Flushed;
        }
    }
    flush_all(in_flight, refused);
    suspend();
    connection_ = nullptr;
}

// ---- The ring ----------------------------------------------------------------------------------------------------

void SendQueue::read_consumed() noexcept {
    ring_.read_consumed();
    break_if_corrupt();
}

void SendQueue::break_if_corrupt() noexcept {
    if (ring_.is_corrupt()) [[unlikely]]
        endpoint_.request_break();
}

bool SendQueue::have_slot() noexcept {
    if (ring_.find_slot()) return true;
    break_if_corrupt();
    return false;
}

bool SendQueue::place_in_area(std::uint32_t length, std::uint32_t& offset) noexcept {
    if (ring_.place(length, offset)) return true;
    break_if_corrupt();
    return false;
}

/// Takes a receive of the peer for the next message.
SendQueue::Credit SendQueue::take_credit(Operation& operation) noexcept {
    if (!ring_.has_credit() && !connection_->peer_shares_receives()) {
        if (!endpoint_.is_reliable() || endpoint_.attributes().receiver_not_ready == ReceiverNotReady::Break)
            return Credit::Missing;
        if (std::exchange(operation.stage, Stage::AwaitingCredit) == Stage::AwaitingCredit) return Credit::Awaited;
        credit_waits_.add();
        ring_.set_waiting(true);
        Fence::heavy();  // the peer posts receives with a light fence
        if (!ring_.has_credit()) return Credit::Awaited;
    }
    ring_.take_credit();
    return Credit::Taken;
}

}  // namespace viaduct::loopback
