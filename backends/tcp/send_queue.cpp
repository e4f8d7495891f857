// SPDX-License-Identifier: BSD-3-Clause
#include "backends/tcp/send_queue.hpp"

#include <algorithm>

#include "backends/support/pieces.hpp"
#include "backends/tcp/endpoint.hpp"
#include "backends/tcp/node.hpp"

namespace viaduct::tcp {
namespace {

FrameKind kind_of(const SendRequest& request) noexcept {
    switch (request.opcode) {
        case Opcode::RdmaWrite: return FrameKind::Write;
        case Opcode::RdmaRead: return FrameKind::Read;
        case Opcode::AtomicWrite: return FrameKind::AtomicWrite;
        case Opcode::FetchAdd: return FrameKind::FetchAdd;
        case Opcode::CompareSwap: return FrameKind::CompareSwap;
        case Opcode::Flush:
            return request.flush_to == FlushTarget::Visibility ? FrameKind::FlushVisible : FrameKind::FlushPersistent;
        case Opcode::Send:
        case Opcode::SendInvalidate:
        case Opcode::BindWindow: break;
    }
    return FrameKind::Message;
}

std::uint8_t marks_of(const SendRequest& request) noexcept {
    return static_cast<std::uint8_t>((request.with_immediate ? frame_flags::immediate : 0) |
                                     (request.solicited ? frame_flags::solicited : 0) |
                                     (request.opcode == Opcode::SendInvalidate ? frame_flags::invalidate : 0));
}

}  // namespace

Reliability SendQueue::reliability() const noexcept { return endpoint_.attributes().reliability; }

/// Reports whether a request completes only when the peer has executed it. Otherwise it completes when it is sent.
bool SendQueue::is_confirmed(const SendRequest& request) const noexcept {
    switch (request.opcode) {
        case Opcode::AtomicWrite:
        case Opcode::Flush:
        case Opcode::SendInvalidate: return true;
        case Opcode::Send: break;
        default:
            if (!notifies(request)) return support::reports_refusals(endpoint_.attributes());
            break;
    }
    if (reliability() == Reliability::Unreliable) return false;
    return support::reports_refusals(endpoint_.attributes()) || connection_->peer_shares_receives() ||
           endpoint_.attributes().receiver_not_ready == ReceiverNotReady::Wait;
}

// ---- The order of the queue --------------------------------------------------------------------------------------

Status SendQueue::post(const SendRequest& request) {
    if (count_->is_full()) endpoint_.node().progress();  // requests without a completion may have been answered
    if (count_->is_full()) return {Code::QueueFull, "the send queue is full"};
    if (request.sges.size() > endpoint_.device_attributes().max_sges)
        return {Code::InvalidParameter, "too many pieces"};
    const std::size_t posted = entries_.size() + 1;
    if (!entries_.reserve(posted) || !executed_.reserve(executed_.size() + posted) ||
        !fetches_.reserve(fetches_.size() + posted))
        return {Code::NoResources, "out of memory"};
    Operation& operation = entries_.vacant();
    operation.sges.assign(request.sges);
    operation.request = request;
    operation.total = support::total_length(request.sges);
    operation.moved = operation.value = 0;
    operation.code = support::take_operands(request, operation.total, operation.value);
    operation.started = false;
    entries_.commit();
    count_->add();
    if (connection_ == nullptr)
        detach(CompletionCode::Flushed, CompletionCode::Success);
    else if (posted == 1)
        progress();
    return {};
}

void SendQueue::progress() noexcept {
    if (connection_ == nullptr || executing_) return;
    executing_ = true;
    retire();
    execute_entries();
    retire();
    executing_ = false;
}

/// Executes the queued requests in order, as far as possible now.
void SendQueue::execute_entries() noexcept {
    while (!entries_.empty() && (!draining_ || left_ > executed_.size()) && !endpoint_.is_breaking()) {
        Operation& operation = entries_.front();
        operation.request.sges = operation.sges.span();
        const Outcome outcome = execute(operation);
        if (outcome == Outcome::Blocked) return;
        const bool sent = outcome != Outcome::Fetching && operation.code == CompletionCode::Success;
        if (sent && support::is_counted(operation.request))
            traffic_.add(support::counted_as(operation.request), Way::Frame, operation.total);
        executed_.push(executed(operation, outcome));
        entries_.pop();
    }
}

bool SendQueue::is_answered(const Executed& executed) noexcept {
    if (executed.fetches) return fetches_.front().done;
    if (executed.code != CompletionCode::Success) return true;
    return executed.confirmed ? connection_->is_executed(executed.last_frame)
                              : connection_->is_sent(executed.last_frame);
}

void SendQueue::take_outcome(Executed& executed) noexcept {
    const Fetch& fetch = fetches_.front();
    executed.code = fetch.code;
    if (executed.code != CompletionCode::Success)
        executed.bytes = 0;
    else if (fetch.done)
        traffic_.add(fetch.operation, Way::Frame, fetch.total);
    fetches_.pop();
}

/// Completes the requests that are executed and, if required, answered.
void SendQueue::retire() noexcept {
    while (!executed_.empty() && is_answered(executed_.front())) {
        Executed& oldest = executed_.front();
        if (oldest.fetches) take_outcome(oldest);
        complete(oldest);
        executed_.pop();
        if (draining_ && --left_ == 0) endpoint_.end_soon();
    }
}

void SendQueue::drain() noexcept {
    if (std::exchange(draining_, true)) return;
    left_ = executed_.size() + entries_.size();
    if (left_ == 0) endpoint_.end_soon();
}

SendQueue::Executed SendQueue::executed(const Operation& operation, Outcome outcome) const noexcept {
    const SendRequest& request = operation.request;
    // If the source is not there any more, part of it may have been sent.
    const std::uint64_t of_failure = operation.code == CompletionCode::LocalProtection ? operation.moved : 0;
    return {
        .context = request.context,
        .bytes = static_cast<std::uint32_t>(operation.code == CompletionCode::Success ? operation.total : of_failure),
        .last_frame = connection_ == nullptr ? 0 : connection_->last_request(),
        .operation = operation_of(request.opcode),
        .code = operation.code,
        .confirmed = outcome == Outcome::InFlight,
        .fetches = outcome == Outcome::Fetching,
        .signaled = request.signaled,
        .with_immediate = notifies(request)};
}

void SendQueue::complete(const Executed& executed) noexcept {
    if (!executed.signaled && executed.code == CompletionCode::Success) return count_->remove();
    completions_.push({.context = executed.context,
                       .endpoint_context = endpoint_.context(),
                       .bytes = executed.bytes,
                       .immediate = 0,
                       .operation = executed.operation,
                       .code = executed.code,
                       .with_immediate = executed.with_immediate,
                       .invalidated = false},
                      count_);
}

/// Completes a request that was in progress when the connection ended.
void SendQueue::give_up(Executed executed, CompletionCode code) noexcept {
    const bool refused = code == CompletionCode::RemoteProtection || code == CompletionCode::RemoteOperation ||
                         code == CompletionCode::RemoteLength;
    if (refused) refusals_.add();
    const bool sends =
        executed.operation == CompletedOperation::Send || executed.operation == CompletedOperation::RdmaWrite;
    executed.code =
        refused && sends && !support::reports_refusals(endpoint_.attributes()) ? CompletionCode::Success : code;
    if (executed.code != CompletionCode::Success) executed.bytes = 0;
    complete(executed);
}

void SendQueue::attach(Connection& connection) noexcept {
    connection_ = &connection;
    draining_ = false;
}

void SendQueue::detach(CompletionCode in_flight, CompletionCode refused) noexcept {
    if (connection_ != nullptr) retire();
    const auto unanswered = [&] {  // the oldest one is the one that the peer refused
        const CompletionCode code = std::exchange(in_flight, CompletionCode::Flushed);
        return refused == CompletionCode::Success ? code : std::exchange(refused, CompletionCode::Success);
    };
    for (; !executed_.empty(); executed_.pop()) {
        Executed& oldest = executed_.front();
        const bool answered = connection_ != nullptr && is_answered(oldest);
        if (oldest.fetches) take_outcome(oldest);
        if (answered)
            complete(oldest);
        else
            give_up(oldest, unanswered());
    }
    for (; !entries_.empty(); entries_.pop()) {
        Operation& operation = entries_.front();
        const bool begun = operation.moved != 0 || (operation.started && refused == CompletionCode::Success);
        const CompletionCode code = begun ? unanswered() : CompletionCode::Flushed;
        if (operation.request.opcode == Opcode::BindWindow) endpoint_.forget_window(operation.request.remote.key);
        give_up(executed(operation, Outcome::Finished), code);
    }
    connection_ = nullptr;
}

// ---- Operations --------------------------------------------------------------------------------------------------

SendQueue::Outcome SendQueue::execute(Operation& operation) noexcept {
    if (operation.code != CompletionCode::Success) return fail(operation, operation.code);
    const SendRequest& request = operation.request;
    if (request.fence && !fetches_.empty()) return Outcome::Blocked;
    if (request.opcode == Opcode::BindWindow) return bind(operation);
    if (!operation.started) {
        if (const auto code = check(operation); code != CompletionCode::Success) return fail(operation, code);
        operation.started = true;
    }
    const bool streams = request.opcode == Opcode::Send || request.opcode == Opcode::SendInvalidate ||
                         request.opcode == Opcode::RdmaWrite;
    return streams ? stream(operation) : ask(operation);
}

/// Checks what only this side knows (guide, section 5.2).
CompletionCode SendQueue::check(const Operation& operation) noexcept {
    const SendRequest& request = operation.request;
    if (const auto code = support::check_format(request, reliability()); code != CompletionCode::Success) return code;
    return support::check_pieces(
        request, operation.total, endpoint_.max_transfer_bytes(),
        [this](const Sge& sge, bool written) { return endpoint_.may_use(sge, sge.length, written); });
}

/// Sends the data of a send or an RDMA write in fragments.
SendQueue::Outcome SendQueue::stream(Operation& operation) noexcept {
    const SendRequest& request = operation.request;
    const bool confirmed = is_confirmed(request);
    FrameHeader header{.immediate = request.opcode == Opcode::SendInvalidate ? request.remote.key : request.immediate,
                       .total = static_cast<std::uint32_t>(operation.total),
                       .key = request.remote.key,
                       .kind = kind_of(request),
                       .flags = marks_of(request)};
    do {
        header.address = request.remote.address + operation.moved;
        bool there = true;
        const auto bytes =
            connection_->send_fragments(header, request.sges, operation.moved, operation.total - operation.moved,
                                        confirmed ? frame_flags::confirm : 0, there);
        if (!there) return abort(operation, header);
        if (!bytes) return Outcome::Blocked;
        operation.moved += *bytes;
    } while (operation.moved < operation.total);
    return confirmed ? Outcome::InFlight : Outcome::Finished;
}

/// The rest of the source is not there. If a part was already sent, the peer is told.
SendQueue::Outcome SendQueue::abort(Operation& operation, FrameHeader header) noexcept {
    if (!may_fail()) return Outcome::Blocked;
    header.flags |= frame_flags::aborted;
    if (operation.moved != 0 && !connection_->send(header)) return Outcome::Blocked;
    return fail(operation, CompletionCode::LocalProtection);
}

/// Sends a request without data, which the peer answers.
SendQueue::Outcome SendQueue::ask(Operation& operation) noexcept {
    const SendRequest& request = operation.request;
    std::array<std::uint64_t, 2> words{};
    std::size_t bytes = 8;
    switch (request.opcode) {
        case Opcode::RdmaRead: bytes = 0; break;
        case Opcode::FetchAdd: words[0] = request.add; break;
        case Opcode::CompareSwap:
            words = {request.compare, request.swap};
            bytes = 16;
            break;
        case Opcode::Flush: words[0] = request.flush_bytes; break;
        default: words[0] = operation.value; break;
    }
    const FrameHeader header{.address = request.remote.address,
                             .total = static_cast<std::uint32_t>(operation.total),
                             .key = request.remote.key,
                             .kind = kind_of(request),
                             .flags = frame_flags::confirm};
    if (!connection_->send(header, std::as_bytes(std::span(words)).first(bytes))) return Outcome::Blocked;
    if (!support::fetches(request.opcode)) return Outcome::InFlight;
    Fetch& fetch = fetches_.vacant();
    std::swap(fetch.sges, operation.sges);
    fetch.total = operation.total;
    fetch.moved = 0;
    fetch.code = CompletionCode::Success;
    fetch.operation = support::counted_as(request);
    fetch.done = false;
    fetches_.commit();
    return Outcome::Fetching;
}

/// A prepared binding is consumed by the attempt, so a failure must be reportable before the attempt starts.
SendQueue::Outcome SendQueue::bind(Operation& operation) noexcept {
    if (!may_fail()) return Outcome::Blocked;
    const CompletionCode code = endpoint_.bind_window(operation.request.remote.key);
    return code == CompletionCode::Success ? Outcome::Finished : fail(operation, code);
}

/// An error ends a reliable connection, so it must wait until all earlier requests are answered.
bool SendQueue::may_fail() noexcept {
    if (reliability() == Reliability::Unreliable) return true;
    retire();
    return executed_.empty();
}

/// Completes a request with an error. On reliable levels no later request is executed (guide, section 2.4).
SendQueue::Outcome SendQueue::fail(Operation& operation, CompletionCode code) noexcept {
    if (!may_fail()) return Outcome::Blocked;
    if (operation.request.opcode == Opcode::BindWindow) endpoint_.forget_window(operation.request.remote.key);
    operation.code = code;
    if (reliability() != Reliability::Unreliable) endpoint_.request_break();
    return Outcome::Finished;
}

// ---- Answers -----------------------------------------------------------------------------------------------------

SendQueue::Fetch* SendQueue::oldest_fetch() noexcept {
    for (std::size_t i = 0; i < fetches_.size(); ++i)
        if (!fetches_[i].done) return &fetches_[i];
    return nullptr;
}

bool SendQueue::take_data(const Frame& frame) noexcept {
    Fetch* const fetch = oldest_fetch();
    if (fetch == nullptr || frame.payload.size() > fetch->total - fetch->moved) return false;
    const bool last = (frame.header.flags & frame_flags::more) == 0;
    if (fetch->code == CompletionCode::Success && !has_memory(*fetch)) fetch->code = CompletionCode::LocalProtection;
    if (fetch->code == CompletionCode::Success &&
        !support::scatter(fetch->sges.span(), fetch->moved, frame.payload.data(), frame.payload.size()))
        fetch->code = CompletionCode::LocalProtection;
    fetch->moved += frame.payload.size();
    if (last) {
        if (fetch->moved != fetch->total) return false;
        fetch->done = true;
        if (fetch->code != CompletionCode::Success) endpoint_.request_break();
    }
    progress();
    return true;
}

/// The memory may have been deregistered meanwhile.
bool SendQueue::has_memory(const Fetch& fetch) const noexcept {
    return std::ranges::all_of(fetch.sges.span(),
                               [this](const Sge& sge) { return endpoint_.may_use(sge, sge.length, true); });
}

std::size_t SendQueue::find_destination(const FrameHeader& header, std::span<iovec> pieces) noexcept {
    const Fetch* const fetch = oldest_fetch();
    if (fetch == nullptr || fetch->code != CompletionCode::Success || header.bytes > fetch->total - fetch->moved ||
        !has_memory(*fetch))
        return 0;
    return support::to_iovecs(fetch->sges.span(), fetch->moved, header.bytes, pieces);
}

void SendQueue::has_placed(const FrameHeader& header) noexcept { oldest_fetch()->moved += header.bytes; }

void SendQueue::take_refusal(std::uint32_t request, CompletionCode code) noexcept {
    for (std::size_t i = 0; i < executed_.size(); ++i)
        if (executed_[i].last_frame == request && executed_[i].confirmed) {
            refusals_.add();
            executed_[i].code = code;
            executed_[i].bytes = 0;
        }
    progress();
}

}  // namespace viaduct::tcp
