// SPDX-License-Identifier: BSD-3-Clause
#include "backends/software/connection.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "backends/software/endpoint.hpp"
#include "backends/software/node.hpp"
#include "backends/support/guarded.hpp"
#include "backends/support/sge_list.hpp"
#include "core/log.hpp"

namespace viaduct::software {
namespace {

/// A receiver acknowledges after so much, even if the sender does not wait.
constexpr std::uint32_t acknowledged_requests = window_requests / 4;
constexpr std::uint64_t acknowledged_bytes = window_bytes / 4;

/// Marks a part that is the last of its frame, while it is held.
constexpr std::uint16_t last_part = 1;

}  // namespace

// ---- Life --------------------------------------------------------------------------------------------------------

/// The peer may still answer or send, so the number is in use until it has noticed.
void Connection::end(bool on_purpose, CompletionCode code) noexcept {
    if (std::exchange(owner_, nullptr) == nullptr) return;
    end_attempt();
    if (progress_ == Progress::Idle || link_->is_closed()) return release();
    if (progress_ == Progress::Asked) {
        if (!node_.keep_closing(self())) return release();
        progress_ = Progress::Withdrawn;
        link_->tell(0, Cancel{}, number_);
        return;
    }
    const bool peer_closed = std::exchange(progress_, Progress::Closed) == Progress::PeerClosed;
    link_->tell({.connection = peer_number_, .executed = done_, .kind = FrameKind::Closing},
                encode(Closing{.on_purpose = on_purpose, .code = code}).bytes());
    if (peer_closed || !node_.keep_closing(self())) return release();
    forget_held();
}

/// Nothing is expected of the peer any more.
void Connection::release() noexcept {
    progress_ = Progress::Idle;
    if (link_ != nullptr) link_->leave();
    link_.reset();
    if (std::exchange(has_number_, false)) node_.remove(number_);
    forget_held();
}

void Connection::lose(const char* why) noexcept {
    log(LogLevel::Warning, "%s: a peer %s", node_.transport().name(), why);
    if (owner_ != nullptr) owner_->request_break();
}

/// Without memory for what it has to remember, the connection would wait forever.
void Connection::lack_memory() noexcept {
    log(LogLevel::Error, "%s: out of memory: a connection is lost", node_.transport().name());
    if (owner_ != nullptr) owner_->request_break();
}

void Connection::link_lost(const Status& why) noexcept {
    const auto keep = shared_from_this();
    node_.forget_closing(*this);
    const bool by_peer = why.sys_errno() == 0 || why.sys_errno() == ECONNRESET;
    if (is_open()) return owner_->connection_lost(*this, by_peer);
    const bool asked = progress_ == Progress::Asked;
    release();
    if (!asked) return;
    if (why.code() == Code::Unreachable && by_peer)
        hung_up(true, why);
    else if (!ask_over_new_link())
        fail(why);
}

// ---- Sending -----------------------------------------------------------------------------------------------------

FrameHeader Connection::complete(FrameHeader header, std::size_t bytes) const noexcept {
    header.bytes = static_cast<std::uint32_t>(bytes);
    header.connection = peer_number_;
    header.executed = done_;
    return header;
}

/// A request beyond the window is resumed by the acknowledgment. Others may go before it.
bool Connection::may_send(const FrameHeader& header, std::uint32_t ahead_requests,
                          std::uint64_t ahead_bytes) const noexcept {
    if (!is_request(header.kind)) return true;
    const std::uint32_t unconfirmed = sent_ - confirmed_ + ahead_requests;
    if (unconfirmed == 0) return true;
    return unconfirmed < window_requests && unconfirmed_bytes_ + ahead_bytes + size_of(header) <= window_bytes;
}

void Connection::was_sent(const FrameHeader& header) noexcept {
    told_ = header.executed;
    untold_bytes_ = 0;
    if (!is_request(header.kind)) return node_.count_served(header.bytes);
    ++sent_;
    if (!is_blocked_) taken_ = sent_;
    unconfirmed_bytes_ += size_of(header);
    sizes_.push(static_cast<std::uint32_t>(size_of(header)));
}

bool Connection::send(FrameHeader header, std::span<const std::byte> payload) noexcept {
    const iovec piece{.iov_base = const_cast<std::byte*>(payload.data()), .iov_len = payload.size()};
    bool there = true;
    return send_frame(header, {&piece, payload.empty() ? 0U : 1U}, payload.size(), there);
}

bool Connection::send_frame(FrameHeader header, std::span<const iovec> payload, std::uint64_t bytes,
                            bool& there) noexcept {
    header = complete(header, bytes);
    if (!may_send(header) || !has_room(1)) return false;
    if (link_->send({&header, 1}, payload, *this, there) == 0) return false;
    was_sent(header);
    return true;
}

std::optional<std::uint64_t> Connection::send_fragments(FrameHeader header, std::span<const Sge> sges,
                                                        std::uint64_t moved, std::uint64_t left, std::uint8_t flags,
                                                        bool& there) noexcept {
    there = true;
    if (header.kind == FrameKind::Data && node_.has_served_much() && link_->resume_later(*this)) return std::nullopt;
    std::array<iovec, support::max_pieces> pieces;
    if (left <= fragment_bytes) {
        header.flags |= flags;
        const std::size_t used = support::to_iovecs(sges, moved, left, pieces);
        if (!send_frame(header, std::span(pieces).first(used), left, there)) return std::nullopt;
        return left;
    }
    std::array<FrameHeader, fragments_at_once> headers;
    std::size_t count = 0;
    std::uint64_t bytes = 0;
    do {
        FrameHeader& next = headers[count];
        const std::uint64_t part = std::min<std::uint64_t>(left - bytes, fragment_bytes);
        next = complete(header, part);
        next.address += bytes;
        next.flags |= bytes + part < left ? frame_flags::more : flags;
        if (!may_send(next, static_cast<std::uint32_t>(count), bytes + count * sizeof next)) break;
        bytes += part;
    } while (++count < headers.size() && bytes < left);
    if (count == 0 || !has_room(count)) return std::nullopt;
    const std::size_t used = support::to_iovecs(sges, moved, bytes, pieces);
    const std::size_t sent = link_->send(std::span(headers).first(count), std::span(pieces).first(used), *this, there);
    if (sent == 0) return std::nullopt;
    bytes = 0;
    for (const FrameHeader& fragment : std::span(headers).first(sent)) {
        was_sent(fragment);
        bytes += fragment.bytes;
    }
    return bytes;
}

void Connection::wait_for(std::vector<std::weak_ptr<Connection>>& list) noexcept {
    if (std::exchange(is_blocked_, true)) return;
    const Status added = support::guarded([&] { list.push_back(self()); });
    if (added.ok()) return;
    is_blocked_ = false;
    lack_memory();
}

void Connection::acknowledge() noexcept {
    if (!is_open() || told_ == done_) return;
    (void)send({.kind = FrameKind::Acknowledge});  // if the link has no room, when it has
}

void Connection::resume() noexcept {
    if (!is_open()) return;
    owner_->progress();
    handle_held();
    acknowledge();
}

// ---- Receiving ---------------------------------------------------------------------------------------------------

/// Takes a counter of the peer.
void Connection::confirm(std::uint32_t count) noexcept {
    const std::uint32_t more = count - confirmed_;
    if (more == 0) return;
    if (more > sent_ - confirmed_) return lose("acknowledges requests that were not sent");
    for (std::uint32_t i = 0; i < more; ++i) {
        unconfirmed_bytes_ -= sizes_.front();
        sizes_.pop();
    }
    confirmed_ = count;
    if (owner_ != nullptr) owner_->progress();
}

void Connection::on_frame(const Frame& frame, bool last) noexcept {
    if (!is_open()) return;  // this side has ended the connection
    const auto keep = shared_from_this();
    confirm(frame.header.executed);
    if (owner_ == nullptr || frame.header.kind == FrameKind::Acknowledge) return;
    if (is_response(frame.header.kind)) {
        (void)owner_->handle(frame);
        return;
    }
    if (held_begin_ != held_.size() || handling_ || !handle(frame)) return hold(frame, last);
    if (last) finished(frame.header);
}

std::size_t Connection::find_destination(const FrameHeader& header, std::span<iovec> pieces) noexcept {
    if (!is_open() || handling_ || (is_request(header.kind) && held_begin_ != held_.size())) return 0;
    return owner_->find_destination(header, pieces);
}

void Connection::has_placed(const FrameHeader& header) noexcept {
    if (!is_open()) return;
    untold_bytes_ += header.bytes;
    owner_->has_placed(header);
}

/// Executes a request or handles a response. Returns false if it has to wait.
bool Connection::handle(const Frame& frame) noexcept {
    handling_ = true;
    const bool done = owner_->handle(frame);
    handling_ = false;
    untold_bytes_ += done ? frame.payload.size() : 0;
    return done;
}

void Connection::finished(const FrameHeader& header) noexcept {
    ++done_;
    untold_bytes_ += sizeof header;
    if (owner_ == nullptr) return;
    if (done_ - told_ >= acknowledged_requests || untold_bytes_ >= acknowledged_bytes) acknowledge();
    if (told_ != done_ && (header.flags & frame_flags::confirm) != 0) node_.owes(self());
}

void Connection::hold(const Frame& frame, bool last) noexcept {
    if (owner_ == nullptr || owner_->is_breaking()) return;
    if (held_.size() - held_begin_ > 2 * window_bytes) return lose("sends more than it may");
    FrameHeader header = frame.header;
    header.reserved[0] = last ? last_part : 0;
    const auto* const bytes = reinterpret_cast<const std::byte*>(&header);
    const Status held = support::guarded([&] {
        if (held_begin_ > held_.size() / 2) {
            held_.erase(held_.begin(), held_.begin() + static_cast<std::ptrdiff_t>(held_begin_));
            held_begin_ = 0;
        }
        held_.insert(held_.end(), bytes, bytes + sizeof header);
        held_.insert(held_.end(), frame.payload.begin(), frame.payload.end());
    });
    if (!held.ok()) lack_memory();
}

void Connection::handle_held() noexcept {
    const auto keep = shared_from_this();
    while (owner_ != nullptr && !handling_ && held_begin_ != held_.size()) {
        Frame frame;
        std::memcpy(&frame.header, held_.data() + held_begin_, sizeof frame.header);
        frame.payload = std::span(held_).subspan(held_begin_ + sizeof frame.header, frame.header.bytes);
        const bool last = std::exchange(frame.header.reserved[0], 0) == last_part;
        if (!handle(frame)) return;
        held_begin_ += size_of(frame.header);
        if (last) finished(frame.header);
    }
    if (held_begin_ == held_.size()) forget_held();
}

// ---- Messages ----------------------------------------------------------------------------------------------------

Status Connection::on_message(const FrameHeader& header, std::span<const std::byte> body) noexcept {
    const auto keep = shared_from_this();
    if (header.kind == FrameKind::Closing) {
        Closing closing;
        if (const Status status = decode(body, closing); !status.ok()) return status;
        confirm(header.executed);
        on_closing(closing);
        return {};
    }
    if (progress_ != Progress::Asked && progress_ != Progress::Withdrawn)
        return {Code::InvalidParameter, "the peer answers a request twice"};
    const bool wanted = progress_ == Progress::Asked;
    if (header.kind == FrameKind::Accepted) {
        Accepted accepted;
        if (const Status status = decode(body, accepted); !status.ok()) return status;
        if (wanted) {
            established(accepted);
        } else {
            peer_number_ = accepted.end.connection;
            progress_ = Progress::Closed;
            link_->tell(peer_number_, Closing{.on_purpose = true});
        }
        return {};
    }
    node_.forget_closing(*this);
    release();
    const Status status = wanted ? refused(header.kind, body) : Status();
    if (!status.ok()) fail(status);  // nobody else will: the connection has left the link
    return status;
}

/// Ends the connection when all that the peer has sent was executed. Requests that would have to wait are dropped.
void Connection::on_closing(const Closing& closing) noexcept {
    if (progress_ == Progress::Closed) {
        node_.forget_closing(*this);
        return release();
    }
    if (progress_ != Progress::Open) return;
    progress_ = Progress::PeerClosed;
    handle_held();
    if (owner_ != nullptr) owner_->peer_ended(*this, closing.on_purpose, closing.code);
}

}  // namespace viaduct::software
