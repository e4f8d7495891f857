// SPDX-License-Identifier: BSD-3-Clause
#include "backends/tcp/receive_queue.hpp"

#include "backends/support/atomic_word.hpp"
#include "backends/tcp/endpoint.hpp"
#include "backends/tcp/node.hpp"
#include "core/log.hpp"

namespace viaduct::tcp {
namespace {

bool has(const FrameHeader& header, std::uint8_t flag) noexcept { return (header.flags & flag) != 0; }

bool notifies(const FrameHeader& header) noexcept {
    return header.kind == FrameKind::Write && has(header, frame_flags::immediate);
}

}  // namespace

bool ReceiveQueue::is_reliable() const noexcept {
    return endpoint_.attributes().reliability != Reliability::Unreliable;
}

// ---- Receives ----------------------------------------------------------------------------------------------------

Status ReceiveQueue::post(const ReceiveRequest& request) {
    if (shared_ != nullptr) return {Code::InvalidState, "the endpoint uses a shared receive queue"};
    if (count_->is_full()) return {Code::QueueFull, "the receive queue is full"};
    if (request.sges.size() > endpoint_.device_attributes().max_sges)
        return {Code::InvalidParameter, "too many pieces"};
    if (!entries_.reserve(entries_.size() + 1)) return {Code::NoResources, "out of memory"};
    entries_.vacant().assign(request);
    entries_.commit();
    count_->add();
    posted_.add();
    posted_bytes_.add(support::total_length(request.sges));
    if (rejecting_)
        complete_front({}, CompletedOperation::Receive, CompletionCode::Flushed, 0);
    else if (connection_ != nullptr && entries_.size() == 1)
        connection_->resume();
    return {};
}

void ReceiveQueue::attach(Connection& connection) noexcept {
    connection_ = &connection;
    in_progress_ = nothing;
    skipping_ = rejecting_ = no_receive_ = false;
    refusal_ = CompletionCode::Success;
}

void ReceiveQueue::detach(bool reject) noexcept {
    const bool has_part = connection_ != nullptr && in_progress_ == FrameKind::Message && !skipping_ && moved_ != 0;
    if (has_part) complete_front({}, CompletedOperation::Receive, CompletionCode::PartialMessage, 0);
    while (!entries_.empty()) complete_front({}, CompletedOperation::Receive, CompletionCode::Flushed, 0);
    flush_.reset();
    rejecting_ = reject;
    connection_ = nullptr;
}

/// Finds a receive for a new message. Never: there is none, which the peer and the program have been told.
ReceiveQueue::Turn ReceiveQueue::find_receive(const Frame& frame, CompletedOperation operation) noexcept {
    if (shared_ != nullptr && entries_.empty() && entries_.reserve(1) && completions_.has_room() &&
        shared_->take(entries_.vacant())) {
        entries_.commit();
        count_->add();
    }
    if (!entries_.empty()) return Turn::Now;
    const bool waits = shared_ != nullptr ||
                       (is_reliable() && connection_->remote_attributes().receiver_not_ready == ReceiverNotReady::Wait);
    if (waits) return Turn::Later;
    endpoint_.raise(AsyncEventKind::ReceiveQueueEmpty, operation);
    no_receive_ = is_reliable();
    refuse(frame.header, CompletionCode::RemoteOperation);
    return Turn::Never;
}

/// Checks a receive when a message arrives (guide, section 5.2). Only the memory that the message fills is checked.
CompletionCode ReceiveQueue::check(const Receive& entry, const FrameHeader& header) noexcept {
    if (entry.fault != CompletionCode::Success) return entry.fault;
    if (header.total > entry.room() || header.total > endpoint_.max_transfer_bytes())
        return CompletionCode::LocalLength;
    std::uint64_t left = header.total;
    for (const Sge& sge : entry.sges.span()) {
        const std::uint64_t used = std::min<std::uint64_t>(sge.length, left);
        if (!endpoint_.may_use(sge, used, true)) return CompletionCode::LocalProtection;
        left -= used;
    }
    return CompletionCode::Success;
}

/// Completes the receive. The data are in place; a window that the peer wants to invalidate is invalidated now.
void ReceiveQueue::finish_front(const FrameHeader& header, CompletedOperation operation, std::uint32_t bytes) noexcept {
    if (has(header, frame_flags::invalidate) && !endpoint_.invalidate_window(header.immediate))
        return fail_front(header, operation, CompletionCode::LocalProtection);
    const bool written = operation == CompletedOperation::ReceiveRdmaWrite;
    traffic_.add(written ? CountedOperation::ReceiveImmediate : CountedOperation::Receive, Way::Frame, bytes);
    complete_front(header, operation, CompletionCode::Success, bytes);
}

void ReceiveQueue::complete_front(const FrameHeader& header, CompletedOperation operation, CompletionCode code,
                                  std::uint32_t bytes) noexcept {
    const bool good = code == CompletionCode::Success;
    const bool with_immediate = good && has(header, frame_flags::immediate);
    const bool invalidated = good && has(header, frame_flags::invalidate);
    completions_.push({.context = entries_.front().context,
                       .endpoint_context = endpoint_.context(),
                       .bytes = bytes,
                       .immediate = with_immediate || invalidated ? header.immediate : 0,
                       .operation = operation,
                       .code = code,
                       .with_immediate = with_immediate,
                       .invalidated = invalidated},
                      count_, has(header, frame_flags::solicited));
    entries_.pop();
}

void ReceiveQueue::fail_front(const FrameHeader& header, CompletedOperation operation, CompletionCode code) noexcept {
    complete_front(header, operation, code, 0);
    refuse(header,
           code == CompletionCode::LocalLength ? CompletionCode::RemoteLength : CompletionCode::RemoteOperation);
}

// ---- Requests of the peer ----------------------------------------------------------------------------------------

bool ReceiveQueue::execute(const Frame& frame) noexcept {
    const FrameHeader& header = frame.header;
    if (in_progress_ != nothing && (header.kind != in_progress_ || header.total != total_)) {
        violate("a fragment that does not belong to the request before it");
        return false;
    }
    switch (frame.header.kind) {
        case FrameKind::Message: return receive(frame);
        case FrameKind::Write: return write(frame);
        case FrameKind::Read: return read(frame);
        case FrameKind::AtomicWrite:
        case FrameKind::FetchAdd:
        case FrameKind::CompareSwap: return change_word(frame);
        case FrameKind::FlushVisible:
        case FrameKind::FlushPersistent: return flush(frame);
        default: break;
    }
    violate("a frame of the wrong kind");
    return false;
}

void ReceiveQueue::begin(const FrameHeader& header) noexcept {
    in_progress_ = header.kind;
    notice_ = notifies(header);
    total_ = header.total;
    moved_ = 0;
    skipping_ = false;
}

bool ReceiveQueue::receive(const Frame& frame) noexcept {
    constexpr auto operation = CompletedOperation::Receive;
    const FrameHeader& header = frame.header;
    if (in_progress_ == nothing) {
        const Turn turn = find_receive(frame, operation);
        if (turn == Turn::Later) return false;
        begin(header);
        skipping_ = turn == Turn::Never;
    }
    if (!skipping_) {  // check each fragment, because the memory may be deregistered meanwhile
        if (const auto code = check(entries_.front(), header); code != CompletionCode::Success) {
            fail_front(header, operation, code);
            skipping_ = true;
        }
    }
    const bool last = !has(header, frame_flags::more);
    const bool aborted = has(header, frame_flags::aborted);
    if (!skipping_) {
        if (frame.payload.size() > header.total - moved_) {
            violate("a message that is longer than announced");
            return false;
        }
        if (!support::scatter(entries_.front().sges.span(), moved_, frame.payload.data(), frame.payload.size())) {
            fail_front(header, operation, CompletionCode::LocalProtection);
            skipping_ = true;
        }
    }
    if (!skipping_) {
        moved_ += frame.payload.size();
        if (last && aborted) {
            fail_front(header, operation, CompletionCode::PartialMessage);
        } else if (last) {
            if (moved_ != header.total) {
                violate("a message that is shorter than announced");
                return false;
            }
            finish_front(header, operation, header.total);
        }
    }
    if (last) in_progress_ = nothing;
    return true;
}

bool ReceiveQueue::write(const Frame& frame) noexcept {
    constexpr auto operation = CompletedOperation::ReceiveRdmaWrite;
    const FrameHeader& header = frame.header;
    if (in_progress_ == nothing) {
        const Turn turn = notifies(header) ? find_receive(frame, operation) : Turn::Now;
        if (turn == Turn::Later) return false;
        begin(header);
        skipping_ = turn == Turn::Never;
    }
    const bool notice = notice_;
    // The whole range is checked first; its rest begins at the address of the fragment.
    const std::uint64_t rest = header.total - moved_;
    if (frame.payload.size() > rest) {
        violate("an RDMA write that is longer than announced");
        return false;
    }
    const bool last = !has(header, frame_flags::more);
    if (!skipping_ && !(endpoint_.peer_may_access(RemoteUse::Write, header.key, header.address, rest) &&
                        support::deliver_piece(reinterpret_cast<std::byte*>(header.address), frame.payload.data(),
                                               frame.payload.size()))) {
        skipping_ = true;
        if (notice) {
            complete_front(header, operation, CompletionCode::LocalProtection, 0);
            refuse(header, CompletionCode::RemoteProtection);
        } else {
            refuse_access(header, RemoteUse::Write, CompletedOperation::RdmaWrite);
        }
    }
    if (!skipping_) {
        moved_ += frame.payload.size();
        if (last && moved_ != header.total && !has(header, frame_flags::aborted)) {
            violate("an RDMA write that is shorter than announced");
            return false;
        }
        if (last && has(header, frame_flags::aborted)) {
            if (notice)
                fail_front(header, operation, CompletionCode::PartialMessage);
            else
                endpoint_.raise(AsyncEventKind::RemoteWriteAborted, CompletedOperation::RdmaWrite);
        } else if (last && notice) {
            const Receive& entry = entries_.front();
            if (entry.fault != CompletionCode::Success)
                fail_front(header, operation, entry.fault);
            else
                finish_front(header, operation, header.total);
        } else if (last) {
            traffic_.add(CountedOperation::ServeWrite, Way::Frame, header.total);
        }
    }
    if (last) in_progress_ = nothing;
    return true;
}

std::size_t ReceiveQueue::find_destination(const FrameHeader& header, std::span<iovec> pieces) noexcept {
    if (in_progress_ != header.kind || total_ != header.total || skipping_ || header.bytes > header.total - moved_)
        return 0;
    if (header.kind == FrameKind::Message) {
        const Receive& entry = entries_.front();
        if (check(entry, header) != CompletionCode::Success) return 0;
        return support::to_iovecs(entry.sges.span(), moved_, header.bytes, pieces);
    }
    if (!endpoint_.peer_may_access(RemoteUse::Write, header.key, header.address, header.total - moved_)) return 0;
    pieces[0] = {.iov_base = reinterpret_cast<void*>(header.address), .iov_len = header.bytes};
    return 1;
}

bool ReceiveQueue::read(const Frame& frame) noexcept {
    const FrameHeader& header = frame.header;
    if (!endpoint_.peer_may_access(RemoteUse::Read, header.key, header.address, header.total)) {
        in_progress_ = nothing;
        refuse_access(header, RemoteUse::Read, CompletedOperation::RdmaRead);
        return true;
    }
    if (in_progress_ == nothing) begin(header);
    const Sge source{reinterpret_cast<void*>(header.address), header.key, header.total};
    do {
        bool there = true;
        const auto bytes = connection_->send_fragments({.total = header.total, .kind = FrameKind::Data}, {&source, 1},
                                                       moved_, header.total - moved_, 0, there);
        if (!there) {
            in_progress_ = nothing;
            refuse_access(header, RemoteUse::Read, CompletedOperation::RdmaRead);
            return true;
        }
        if (!bytes) return false;
        moved_ += *bytes;
    } while (moved_ < header.total);
    traffic_.add(CountedOperation::ServeRead, Way::Frame, header.total);
    in_progress_ = nothing;
    return true;
}

bool ReceiveQueue::change_word(const Frame& frame) noexcept {
    const FrameHeader& header = frame.header;
    const bool fetches = header.kind != FrameKind::AtomicWrite;
    if (header.address % 8 != 0 && !fetches) {
        violate("an atomic write to an address that is not aligned");
        return false;
    }
    const RemoteUse use = fetches ? RemoteUse::Atomic : RemoteUse::Write;
    if (in_progress_ == nothing && !endpoint_.peer_may_access(use, header.key, header.address, 8)) {
        refuse_access(header, use, CompletedOperation::RdmaWrite);
        return true;
    }
    auto* const word = reinterpret_cast<std::byte*>(header.address);
    const std::uint64_t value = word_at(frame.payload, 0);
    const auto change = [&] {
        if (header.kind == FrameKind::FetchAdd)
            old_ = support::fetch_add(word, value);
        else if (fetches)
            old_ = support::compare_swap(word, value, word_at(frame.payload, 1));
        else
            support::atomic_word(word).store(value, std::memory_order_release);
    };
    if (in_progress_ == nothing && !survives(change)) {
        refuse_access(header, use, CompletedOperation::RdmaWrite);
        return true;
    }
    if (!fetches) {
        traffic_.add(CountedOperation::ServeAtomic, Way::Frame, sizeof value);
        return true;
    }
    if (in_progress_ == nothing) {  // execute it once, even if the response has to wait
        begin(header);
        traffic_.add(CountedOperation::ServeAtomic, Way::Frame, sizeof value);
    }
    if (!connection_->send({.total = sizeof old_, .kind = FrameKind::Data}, std::as_bytes(std::span(&old_, 1))))
        return false;
    in_progress_ = nothing;
    return true;
}

bool ReceiveQueue::flush(const Frame& frame) noexcept {
    const FrameHeader& header = frame.header;
    const std::uint64_t bytes = word_at(frame.payload, 0);
    if (!endpoint_.peer_may_access(RemoteUse::Flush, header.key, header.address, bytes)) {
        flush_.reset();
        refuse_access(header, RemoteUse::Flush, CompletedOperation::RdmaRead);
        return true;
    }
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (header.kind == FrameKind::FlushVisible || !endpoint_.has_file(header.key)) return true;
    if (flush_ == nullptr) flush_ = endpoint_.start_flush(header.address, bytes);
    const auto state =
        flush_ != nullptr ? flush_->state.load(std::memory_order_acquire) : support::FlushJob::State::Failed;
    if (state == support::FlushJob::State::Running) return false;
    flush_.reset();
    if (state == support::FlushJob::State::Failed) refuse(header, CompletionCode::RemoteOperation);
    return true;
}

void ReceiveQueue::refuse_access(const FrameHeader& header, RemoteUse use, CompletedOperation operation) noexcept {
    const bool writes = use == RemoteUse::Write || use == RemoteUse::Atomic;
    endpoint_.raise(writes ? AsyncEventKind::RemoteWriteProtection : AsyncEventKind::RemoteReadProtection, operation);
    refuse(header, CompletionCode::RemoteProtection);
}

/// On reliable levels a refusal ends the connection, and the peer learns which request caused it.
void ReceiveQueue::refuse(const FrameHeader& header, CompletionCode code) noexcept {
    if (is_reliable()) {
        refusal_ = code;
        endpoint_.request_break();
        return;
    }
    const bool awaited = header.kind == FrameKind::AtomicWrite || header.kind == FrameKind::FlushVisible ||
                         header.kind == FrameKind::FlushPersistent;
    // If the frame cannot be sent now, an unreliable connection may lose it.
    if (awaited)
        (void)connection_->send({.immediate = static_cast<std::uint32_t>(code),
                                 .key = connection_->current_request(),
                                 .kind = FrameKind::Refused});
}

void ReceiveQueue::violate(const char* what) noexcept {
    log(LogLevel::Warning, "tcp: a peer sends %s", what);
    endpoint_.request_break();
}

}  // namespace viaduct::tcp
