// SPDX-License-Identifier: BSD-3-Clause
#include "backends/software/receive_queue.hpp"

#include "backends/software/device.hpp"
#include "backends/software/endpoint.hpp"
#include "backends/support/atomic_word.hpp"

namespace viaduct::software {
namespace {

bool has(const FrameHeader& header, std::uint8_t flag) noexcept { return (header.flags & flag) != 0; }

bool notifies(const FrameHeader& header) noexcept {
    return header.kind == FrameKind::Write && has(header, frame_flags::immediate);
}

RemoteAddress remote_of(const FrameHeader& header) noexcept { return {header.address, header.key}; }

CompletedOperation operation_of(FrameKind kind) noexcept {
    if (kind == FrameKind::FetchAdd) return CompletedOperation::FetchAdd;
    return kind == FrameKind::CompareSwap ? CompletedOperation::CompareSwap : CompletedOperation::AtomicWrite;
}

support::Arrival arrival_of(const FrameHeader& header) noexcept {
    const bool written = header.kind == FrameKind::Write;
    return {.operation = written ? CompletedOperation::ReceiveRdmaWrite : CompletedOperation::Receive,
            .total = header.total,
            .immediate = header.immediate,
            .with_immediate = has(header, frame_flags::immediate),
            .invalidates = has(header, frame_flags::invalidate),
            .solicited = has(header, frame_flags::solicited)};
}

}  // namespace

// ---- Receives ----------------------------------------------------------------------------------------------------

void ReceiveQueue::was_posted() noexcept {
    if (rejecting_)
        complete_front({}, CompletionCode::Flushed);
    else if (connection_ != nullptr && entries_.size() == 1)
        connection_->resume();
}

bool ReceiveQueue::may_use(const Sge& sge, std::uint64_t bytes) noexcept { return endpoint_.may_use(sge, bytes, true); }

void ReceiveQueue::attach(Connection& connection) noexcept {
    connection_ = &connection;
    in_progress_ = nothing;
    begin_message();
    rejecting_ = no_receive_ = false;
    refusal_ = CompletionCode::Success;
}

void ReceiveQueue::detach(bool reject) noexcept {
    flush_all(connection_ != nullptr && in_progress_ == FrameKind::Message);
    flush_.reset();
    rejecting_ = reject;
    connection_ = nullptr;
}

/// Finds a receive for a new message. Never: there is none, which the peer and the program have been told.
ReceiveQueue::Turn ReceiveQueue::find_receive(CompletedOperation operation) noexcept {
    if (shared_ != nullptr && entries_.empty() && entries_.reserve(1) && completions_.has_room() &&
        shared_->take_oldest(entries_.vacant())) {
        entries_.commit();
        count_->add();
        completions_.keep_place();
    }
    if (!entries_.empty()) return Turn::Now;
    const bool waits =
        shared_ != nullptr ||
        (endpoint_.is_reliable() && connection_->remote_attributes().receiver_not_ready == ReceiverNotReady::Wait);
    if (waits) return Turn::Later;
    endpoint_.missed_receive(operation);
    no_receive_ = endpoint_.is_reliable();
    refuse(CompletionCode::RemoteOperation);
    return Turn::Never;
}

// ---- Requests of the peer ----------------------------------------------------------------------------------------

bool ReceiveQueue::execute(const Frame& frame) noexcept {
    const FrameHeader& header = frame.header;
    if (in_progress_ != nothing && (header.kind != in_progress_ || header.total != total_))
        return violate("sends a fragment that does not belong to the request before it");
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
    return violate("sends a frame of the wrong kind");
}

void ReceiveQueue::begin(const FrameHeader& header) noexcept {
    in_progress_ = header.kind;
    notice_ = notifies(header);
    total_ = header.total;
    begin_message();
}

bool ReceiveQueue::receive(const Frame& frame) noexcept {
    const FrameHeader& header = frame.header;
    if (in_progress_ == nothing) {
        const Turn turn = find_receive(CompletedOperation::Receive);
        if (turn == Turn::Later) return false;
        begin(header);
        skipping_ = turn == Turn::Never;
    }
    const bool last = !has(header, frame_flags::more);
    if (last && has(header, frame_flags::aborted))
        abort_message(arrival_of(header));
    else if (!take_fragment(arrival_of(header), frame.payload, last))
        return violate("sends a message that is not as long as announced");
    if (last) in_progress_ = nothing;
    return true;
}

bool ReceiveQueue::write(const Frame& frame) noexcept {
    const FrameHeader& header = frame.header;
    if (in_progress_ == nothing) {
        const Turn turn = notifies(header) ? find_receive(CompletedOperation::ReceiveRdmaWrite) : Turn::Now;
        if (turn == Turn::Later) return false;
        begin(header);
        skipping_ = turn == Turn::Never;
    }
    const bool notice = notice_;
    // The whole range is checked first; its rest begins at the address of the fragment.
    const std::uint64_t rest = header.total - moved_;
    if (frame.payload.size() > rest) return violate("sends an RDMA write that is longer than announced");
    const bool last = !has(header, frame_flags::more);
    const bool aborted = last && has(header, frame_flags::aborted);
    if (!skipping_ && !(endpoint_.peer_may_access(RemoteUse::Write, remote_of(header), rest) &&
                        support::deliver_piece(reinterpret_cast<std::byte*>(header.address), frame.payload.data(),
                                               frame.payload.size()))) {
        skipping_ = true;
        if (notice) {
            endpoint_.explain_access(RemoteUse::Write, CompletedOperation::RdmaWrite, remote_of(header), rest);
            complete_front(arrival_of(header), CompletionCode::LocalProtection);
            refuse(CompletionCode::RemoteProtection);
        } else {
            (void)refuse_access(header, RemoteUse::Write, CompletedOperation::RdmaWrite, rest);
        }
    }
    if (!skipping_) {
        moved_ += frame.payload.size();
        if (last && moved_ != header.total && !aborted)
            return violate("sends an RDMA write that is shorter than announced");
        if (aborted && notice)
            abort_message(arrival_of(header));
        else if (aborted)
            endpoint_.raise(AsyncEventKind::RemoteWriteAborted, CompletedOperation::RdmaWrite);
        else if (last && notice)
            take_notice(arrival_of(header));
        else if (last)
            traffic_.add(CountedOperation::ServeWrite, Way::Frame, header.total);
    }
    if (last) in_progress_ = nothing;
    return true;
}

std::size_t ReceiveQueue::find_destination(const FrameHeader& header, std::span<iovec> pieces) noexcept {
    if (in_progress_ != header.kind || total_ != header.total || skipping_ || header.bytes > header.total - moved_)
        return 0;
    if (header.kind == FrameKind::Message) {
        if (check(header.total) != CompletionCode::Success) return 0;
        return support::to_iovecs(entries_.front().sges.span(), moved_, header.bytes, pieces);
    }
    if (!endpoint_.peer_may_access(RemoteUse::Write, remote_of(header), header.total - moved_)) return 0;
    pieces[0] = {.iov_base = reinterpret_cast<void*>(header.address), .iov_len = header.bytes};
    return 1;
}

bool ReceiveQueue::read(const Frame& frame) noexcept {
    const FrameHeader& header = frame.header;
    if (!endpoint_.peer_may_access(RemoteUse::Read, remote_of(header), header.total)) {
        in_progress_ = nothing;
        return refuse_access(header, RemoteUse::Read, CompletedOperation::RdmaRead, header.total);
    }
    if (in_progress_ == nothing) begin(header);
    const Sge source{reinterpret_cast<void*>(header.address), header.key, header.total};
    do {
        bool there = true;
        const auto bytes = connection_->send_fragments({.total = header.total, .kind = FrameKind::Data}, {&source, 1},
                                                       moved_, header.total - moved_, 0, there);
        if (!there) {
            in_progress_ = nothing;
            return refuse_access(header, RemoteUse::Read, CompletedOperation::RdmaRead, header.total);
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
    if (header.address % 8 != 0 && !fetches) return violate("sends an atomic write to an address that is not aligned");
    const RemoteUse use = fetches ? RemoteUse::Atomic : RemoteUse::Write;
    if (in_progress_ == nothing && !endpoint_.peer_may_access(use, remote_of(header), 8)) {
        return refuse_access(header, use, operation_of(header.kind), 8);
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
        return refuse_access(header, use, operation_of(header.kind), 8);
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
    if (!endpoint_.peer_may_access(RemoteUse::Flush, remote_of(header), bytes)) {
        flush_.reset();
        return refuse_access(header, RemoteUse::Flush, CompletedOperation::Flush, bytes);
    }
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (header.kind == FrameKind::FlushVisible || !endpoint_.has_file(header.key)) return true;
    if (flush_ == nullptr) flush_ = endpoint_.start_flush(header.address, bytes);
    const auto state =
        flush_ != nullptr ? flush_->state.load(std::memory_order_acquire) : support::FlushJob::State::Failed;
    if (state == support::FlushJob::State::Running) return false;
    if (state == support::FlushJob::State::Failed && !refuse_request(header, CompletionCode::RemoteOperation))
        return false;
    flush_.reset();
    return true;
}

bool ReceiveQueue::refuse_access(const FrameHeader& header, RemoteUse use, CompletedOperation operation,
                                 std::uint64_t bytes) noexcept {
    if (!refuse_request(header, CompletionCode::RemoteProtection)) return false;
    endpoint_.refused_access(use, operation, remote_of(header), bytes);
    return true;
}

/// On reliable levels a refusal ends the connection, and the peer learns which request caused it.
void ReceiveQueue::refuse(CompletionCode code) noexcept {
    if (!endpoint_.is_reliable()) return;
    refusal_ = code;
    endpoint_.request_break();
}

/// An unreliable peer is told, too, if it waits for the request. Returns false if that has to wait for room.
bool ReceiveQueue::refuse_request(const FrameHeader& header, CompletionCode code) noexcept {
    refuse(code);
    const bool awaited = header.kind == FrameKind::AtomicWrite || header.kind == FrameKind::FlushVisible ||
                         header.kind == FrameKind::FlushPersistent;
    return endpoint_.is_reliable() || !awaited ||
           connection_->send({.immediate = static_cast<std::uint32_t>(code),
                              .key = connection_->current_request(),
                              .kind = FrameKind::Refused});
}

}  // namespace viaduct::software
