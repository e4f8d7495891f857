// SPDX-License-Identifier: BSD-3-Clause
#include "backends/software/send_queue.hpp"

#include <algorithm>

#include "backends/software/device.hpp"
#include "backends/software/endpoint.hpp"

namespace viaduct::software {
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
    if (!endpoint_.is_reliable()) return false;
    return support::reports_refusals(endpoint_.attributes()) || connection_->peer_shares_receives() ||
           endpoint_.attributes().receiver_not_ready == ReceiverNotReady::Wait;
}

// ---- The order of the queue --------------------------------------------------------------------------------------

/// Requests without a completion may have been answered.
bool SendQueue::make_room() noexcept {
    endpoint_.node().progress();
    return !is_full();
}

void SendQueue::progress() noexcept {
    if (connection_ == nullptr || executing_) return;
    executing_ = true;
    retire();
    execute_entries();
    retire();
    executing_ = false;
}

std::uint64_t SendQueue::awaited(const Operation& operation, Outcome outcome) noexcept {
    const bool fetches = support::fetches(operation.request.opcode);
    const bool sent = outcome == Outcome::InFlight || operation.code == CompletionCode::Success;
    if (sent && !fetches && support::is_counted(operation.request))
        traffic_.add(support::counted_as(operation.request), Way::Frame, operation.total);
    const Answer if_in_flight = fetches ? Answer::Data : Answer::Executed;
    return awaited(outcome == Outcome::InFlight ? if_in_flight : Answer::Sent, connection_->last_request());
}

bool SendQueue::is_answered(const support::ExecutedSend& executed) noexcept {
    if (executed.code != CompletionCode::Success) return true;
    const auto frame = static_cast<std::uint32_t>(executed.awaited);
    switch (answer_of(executed)) {
        case Answer::Sent: break;
        case Answer::Executed: return connection_->is_executed(frame);
        case Answer::Data: return fetches_.front().done;
    }
    return connection_->is_sent(frame);
}

void SendQueue::take_answer(support::ExecutedSend& executed) noexcept {
    completed_ = static_cast<std::uint32_t>(executed.awaited);
    if (answer_of(executed) != Answer::Data) return;
    const Fetch& fetch = fetches_.front();
    executed.code = fetch.code;
    if (executed.code != CompletionCode::Success) {
        executed.bytes = 0;
        tell(executed.operation, executed.code, executed.context,
             "its memory is not registered or not mapped any more, or cannot be written");
    } else if (fetch.done) {
        traffic_.add(fetch.operation, Way::Frame, fetch.total);
    }
    fetches_.pop();
}

/// The refused request is the one after those that the peer has executed. It may be complete, as those are that need no
/// confirmation. Then it is not the oldest one without an answer.
void SendQueue::detach(CompletionCode in_flight, CompletionCode refused) noexcept {
    if (connection_ != nullptr) {
        retire();
        if (refused != CompletionCode::Success && !connection_->is_executed(completed_)) {
            refusals_.add();
            refused = CompletionCode::Success;
            in_flight = CompletionCode::Flushed;
        }
    }
    flush_all(in_flight, refused);
    connection_ = nullptr;
}

// ---- Operations --------------------------------------------------------------------------------------------------

SendQueue::Outcome SendQueue::execute(Operation& operation) noexcept {
    if (operation.code != CompletionCode::Success) return fail_early(operation);
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
    const auto code = support::check_format(request, endpoint_.is_reliable());
    if (code != CompletionCode::Success) return code;
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
    return Outcome::InFlight;
}

// ---- Answers -----------------------------------------------------------------------------------------------------

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

void SendQueue::take_refusal(std::uint32_t request, CompletionCode code) noexcept {
    for (std::size_t i = 0; i < executed_.size(); ++i)
        if (executed_[i].awaited == awaited(Answer::Executed, request)) {
            refusals_.add();
            executed_[i].code = code;
            executed_[i].bytes = 0;
            tell(executed_[i].operation, code, executed_[i].context, support::words_of_peer(code));
        }
    progress();
}

}  // namespace viaduct::software
