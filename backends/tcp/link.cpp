// SPDX-License-Identifier: BSD-3-Clause
#include "backends/tcp/link.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "backends/software/connection.hpp"
#include "backends/software/node.hpp"
#include "backends/support/guarded.hpp"
#include "backends/support/sge_list.hpp"
#include "backends/tcp/port.hpp"
#include "core/base/address_text.hpp"
#include "core/log.hpp"

namespace viaduct::tcp {

using software::Connection;
using software::fragment_bytes;
using software::fragments_at_once;
using software::FrameKind;
using software::Node;
namespace frame_flags = software::frame_flags;

namespace {

using namespace std::chrono_literals;

/// How long a peer that has connected may take to authenticate and to say Hello.
constexpr auto greeting_time = 5s;

/// How long the peer may take to close its end of the socket, and what it may send meanwhile.
constexpr auto leaving_time = 1s;
constexpr std::size_t max_discarded = std::size_t{64} << 10;

/// What waits for room in the socket, before those that send have to wait.
constexpr std::size_t out_room = 64 * 1024;

/// Frames that are held for others to join them go with this size.
constexpr std::size_t most_held = 16 * 1024;

/// A peer that does not read what it causes is lost.
constexpr std::size_t max_untaken = std::size_t{16} << 20;

/// A payload of fewer bytes goes through the buffer.
constexpr std::size_t least_direct = software::most_copied;

/// The last bytes of a frame always do, so that they become visible last and one function completes requests.
constexpr std::size_t kept_back = 8;

/// How often a link reads before others have a turn.
constexpr int max_reads = 32;

/// `one` is send(2) or recv(2), which cost less, and `several` is sendmsg(2) or recvmsg(2).
std::ptrdiff_t transfer(int fd, std::span<const iovec> pieces, int flags, auto one, auto several) noexcept {
    const iovec& piece = pieces.front();
    msghdr message{.msg_iov = const_cast<iovec*>(pieces.data()), .msg_iovlen = pieces.size()};
    ssize_t count = 0;
    do count = pieces.size() == 1 ? one(fd, piece.iov_base, piece.iov_len, flags) : several(fd, &message, flags);
    while (count < 0 && errno == EINTR);
    return count;
}

std::size_t total_of(std::span<const iovec> pieces) noexcept {
    std::size_t total = 0;
    for (const iovec& piece : pieces) total += piece.iov_len;
    return total;
}

/// Reads one byte of each page. A system call would notice only in the middle of a frame that something is missing.
/// Returns how many bytes come before that.
std::size_t readable(std::span<const iovec> pieces) noexcept {
    constexpr std::uintptr_t page = 4096;
    std::size_t total = 0;
    std::byte last{};
    for (const iovec& piece : pieces) {
        const auto* const bytes = static_cast<const std::byte*>(piece.iov_base);
        for (std::size_t at = 0; at < piece.iov_len;) {
            if (!copy_guarded(&last, bytes + at, 1)) return total + at;
            at += page - reinterpret_cast<std::uintptr_t>(bytes + at) % page;
        }
        total += piece.iov_len;
    }
    return total;
}

}  // namespace

// ---- Life --------------------------------------------------------------------------------------------------------

Link::Link(Transport& transport, Node& node, Socket socket, Side side, const HostAddress& remote,
           std::uint16_t port) noexcept
    : software::Link(node, side, remote, port),
      transport_(transport),
      socket_(std::move(socket)),
      state_(side == Side::Connects ? State::Connecting : State::ShakingHands) {}

Link::~Link() {
    node_.agent().cancel(*this);
    if (!refuses_) return;
    socket_.reset();  // whose descriptor is the reserve
    if (const auto port = acceptor_.lock()) port->reserve_descriptor();
}

Result<std::shared_ptr<software::Link>> Link::connect(Transport& transport, Node& node, const HostAddress& to,
                                                      std::uint16_t port) {
    auto socket = Socket::connect(node.host(), to, port);
    if (!socket.ok()) return socket.status();
    auto link = std::make_shared<Link>(transport, node, std::move(*socket), Side::Connects, to, port);
    if (const Status status = node.add(link); !status.ok()) return status;
    link->expect_room(true);
    return std::shared_ptr<software::Link>(std::move(link));
}

Result<std::shared_ptr<Link>> Link::accept(Transport& transport, Node& node, const std::shared_ptr<Port>& port,
                                           Socket socket, bool refuses) {
    const HostAddress remote = socket.peer_host();
    auto link = std::make_shared<Link>(transport, node, std::move(socket), Side::Accepts, remote, port->number());
    link->acceptor_ = port;
    link->refuses_ = refuses;
    node.agent().call_at(Deadline::after(greeting_time), *link);
    if (const Status status = node.add(link); !status.ok()) return status;
    if (transport.policy().authentication() != Authentication::None) return link;  // who says nothing costs nothing
    if (const Status status = link->begin(); !status.ok()) {
        link->fail(status);
        return status;
    }
    return link;
}

/// Called when the socket is connected, and the client has said something.
Status Link::begin() {
    if (!in_) {
        in_ = std::make_unique_for_overwrite<std::byte[]>(in_capacity);
        // Once, and not while the program may have a hole in its registered memory, in which it would lie.
        out_.reserve(out_room + sizeof(FrameHeader) + fragment_bytes);
    }
    const Policy& policy = transport_.policy();
    if (policy.authentication() == Authentication::None) return greet();
    auto tls = Tls::start(transport_.tls_context(), policy, socket_.get(),
                          side() == Side::Connects ? Role::Client : Role::Server,
                          policy.encrypts(transport_.is_of_this_host(remote_host())));
    if (!tls.ok()) return tls.status();
    tls_ = std::move(*tls);
    state_ = State::ShakingHands;
    return {};
}

Status Link::greet() {
    if (tls_ != nullptr && !tls_->encrypts()) tls_.reset();
    state_ = State::Greeting;
    tell(0, software::Hello{});
    tell_waiting({});
    return {};
}

void Link::abandon() noexcept {
    state_ = State::Closed;
    node_.forget(*this);
}

void Link::on_deadline() noexcept {
    if (state_ == State::Leaving) {
        abandon();
    } else if (!is_open() && !is_closed()) {
        fail({Code::TimedOut, "it did not authenticate within 5 s"});
    }
}

void Link::fail(const Status& why) noexcept {
    if (is_closed()) return;
    const auto keep = self();
    const bool stranger = side() == Side::Accepts && !is_open();
    log(LogLevel::Debug, "tcp: a link to %s ends: %s (errno %d)", text_of(remote_host()).c_str(), why.where(),
        why.sys_errno());
    node_.agent().cancel(*this);
    if (stranger) node_.turn_away(port(), why);
    // What OpenSSL has to say arrives only if the socket is not reset. To who has said nothing it says nothing.
    if (why.code() != Code::Unreachable && in_ != nullptr)
        close();
    else
        state_ = State::Closed;
    end_users(why);
    if (state_ == State::Closed) node_.forget(*this);
}

void Link::close() noexcept {
    if (is_closed()) return;
    const auto keep = self();
    flush();
    expect_room(false);
    shutdown(fd(), SHUT_WR);
    state_ = State::Leaving;
    tls_.reset();
    const Status waits = support::guarded([this] { node_.agent().call_at(Deadline::after(leaving_time), *this); });
    if (waits.ok()) return discard();
    state_ = State::Closed;
    node_.forget(*this);
}

/// If a socket is closed while bytes of the peer are unread or on their way, the system resets the connection, and what
/// was sent may get lost. So this side discards what the peer still sends until it closes the socket, too.
void Link::discard() noexcept {
    std::array<std::byte, 4096> waste;
    const iovec room{.iov_base = waste.data(), .iov_len = waste.size()};
    while (discarded_ < max_discarded) {
        const std::ptrdiff_t count = transfer(fd(), {&room, 1}, 0, recv, recvmsg);
        if (count < 0 && errno == EAGAIN) return;
        if (count <= 0) break;
        discarded_ += static_cast<std::size_t>(count);
    }
    state_ = State::Closed;
    node_.forget(*this);
}

bool Link::work() noexcept {
    if (working_) return false;
    const auto keep = self();
    working_ = true;
    if (state_ == State::Leaving) {
        discard();
    } else if (state_ == State::Connecting || state_ == State::ShakingHands) {
        const Status status = support::guarded([this] { return go_on(); });
        if (!status.ok() && status.code() != Code::WouldBlock) fail(status);
    }
    bool arrived = false;
    if (is_usable()) {
        if (!out_.empty() || expects_room_) flush();
        arrived = receive();
    }
    working_ = false;  // what is sent from now on goes at once, because nobody would send it later
    if (!blocked_.empty() && !expects_room_ && is_usable()) flush();
    return arrived;
}

/// Connects and authenticates.
Status Link::go_on() {
    if (state_ == State::Connecting) {
        switch (const int error = socket_.finish_connecting()) {
            case 0: break;
            case ECONNREFUSED:
            case ECONNRESET: return {Code::NoListener, "nothing listens on the port", error};
            case ETIMEDOUT: return {Code::TimedOut, "the host does not answer", error};
            default: return Status::from_errno(error, "connect");
        }
        if (socket_.is_connected_to_itself()) return {Code::NoListener, "nothing listens on the port"};
        expect_room(false);
    }
    if (tls_ == nullptr)
        if (const Status status = begin(); !status.ok() || is_usable()) return status;
    const Status status = tls_->shake_hands();
    expect_room(status.code() == Code::WouldBlock && tls_->wants_to_write());
    return status.ok() ? greet() : status;
}

// ---- Sending -----------------------------------------------------------------------------------------------------

/// Sends a frame of few bytes, or holds it for others to join it.
bool Link::send_copy(const FrameHeader& header, std::span<const iovec> payload, Connection& sender,
                     bool& there) noexcept {
    if (out_.size() - out_begin_ >= out_room) {
        sender.wait_for(blocked_);
        return false;
    }
    there = append(header, payload);
    if (!there) return false;
    const bool holds = expects_room_ || working_ || (is_request(header.kind) && node_.may_hold(*this));
    const bool goes = !holds || (!expects_room_ && out_.size() >= most_held);
    if (!goes || !push()) sender.wait_for(blocked_);
    return true;
}

std::size_t Link::send(std::span<const FrameHeader> headers, std::span<const iovec> payload, Connection& sender,
                       bool& there) noexcept {
    if (headers.size() == 1 && headers.front().bytes <= software::most_copied)
        return send_copy(headers.front(), payload, sender, there) ? 1 : 0;
    if (!out_.empty() && (expects_room_ || !push())) {
        sender.wait_for(blocked_);
        return 0;
    }
    std::size_t whole = 0;
    for (std::size_t left = readable(payload); whole < headers.size() && headers[whole].bytes <= left; ++whole)
        left -= headers[whole].bytes;
    headers = headers.first(whole);
    there = whole != 0;
    if (!there) return 0;
    std::array<iovec, support::max_pieces + 2 * fragments_at_once> room;
    std::size_t count = 0;
    for (std::size_t i = 0, piece = 0, used = 0; i < headers.size(); ++i) {
        room[count++] = {.iov_base = const_cast<FrameHeader*>(&headers[i]), .iov_len = sizeof headers[i]};
        for (std::size_t left = headers[i].bytes; left != 0;) {
            const std::size_t part = std::min(left, payload[piece].iov_len - used);
            room[count++] = {.iov_base = static_cast<std::byte*>(payload[piece].iov_base) + used, .iov_len = part};
            left -= part;
            used += part;
            if (used == payload[piece].iov_len) ++piece, used = 0;
        }
    }
    const auto pieces = std::span<const iovec>(room).first(count);
    std::size_t sent = 0;
    if (tls_ != nullptr) {
        sent = encrypt(pieces, there);
    } else {
        sent = static_cast<std::size_t>(std::max<std::ptrdiff_t>(0, write(pieces)));
        node_.count_moved(sent);
    }
    std::size_t frames = 0;
    std::size_t end = 0;
    do end += size_of(headers[frames++]);
    while (end < sent);
    // The rest of the last one is copied, so that the program may free its memory at any time.
    if (there && sent < end) there = append(pieces, sent, end - sent);
    if (!there && sent == 0) {
        out_.clear();
        return 0;
    }
    if (!there) break_off();  // it has gone since it was looked at, and the frame has begun
    there = true;
    if (broken_ || (!out_.empty() && (expects_room_ || !push()))) sender.wait_for(blocked_);
    return frames;
}

bool Link::resume_later(Connection& connection) noexcept {
    connection.wait_for(blocked_);
    expect_room(true);
    return true;
}

void Link::send_message(const FrameHeader& header, std::span<const std::byte> body) noexcept {
    const iovec piece{.iov_base = const_cast<std::byte*>(body.data()), .iov_len = body.size()};
    (void)append(header, {&piece, body.empty() ? 0U : 1U});
    if (out_.size() - out_begin_ > max_untaken) break_off();
    flush();
}

void Link::lack_memory() noexcept {
    error_ = ENOMEM;
    break_off();
}

/// Sends no more. All users learn of that when they have received what has arrived; until then they wait.
void Link::break_off() noexcept {
    broken_ = true;
    shutdown(fd(), SHUT_RDWR);
}

/// Appends a frame, or returns false if its payload is not there.
bool Link::append(const FrameHeader& header, std::span<const iovec> payload) noexcept {
    const std::size_t before = out_.size();
    if (!support::guarded([&] { out_.resize(before + size_of(header)); }).ok()) {
        lack_memory();
        return true;
    }
    std::byte* at = out_.data() + before;
    std::memcpy(at, &header, sizeof header);
    at += sizeof header;
    for (const iovec& piece : payload) {
        if (!copy_guarded(at, static_cast<const std::byte*>(piece.iov_base), piece.iov_len)) {
            out_.resize(before);
            return false;
        }
        at += piece.iov_len;
    }
    return true;
}

/// Appends a part of the pieces. Memory that has gone since it was looked at is sent as zeros. Returns false then.
bool Link::append(std::span<const iovec> pieces, std::size_t skip, std::size_t bytes) noexcept {
    bool there = true;
    const Status appended = support::guarded([&] {
        for (const iovec& piece : pieces) {
            const std::size_t begin = std::min(skip, piece.iov_len);
            skip -= begin;
            const std::size_t part = std::min(bytes, piece.iov_len - begin);
            bytes -= part;
            out_.resize(out_.size() + part);
            if (!copy_guarded(out_.data() + out_.size() - part, static_cast<const std::byte*>(piece.iov_base) + begin,
                              part))
                there = false;
            if (bytes == 0) break;
        }
    });
    if (!appended.ok()) lack_memory();
    return there;
}

/// Sends the pieces in records of full size, each from a copy, because OpenSSL must not meet a fault. What it has not
/// taken stays in the buffer. Returns how many bytes it was given.
std::size_t Link::encrypt(std::span<const iovec> pieces, bool& there) noexcept {
    const std::size_t total = total_of(pieces);
    std::size_t given = 0;
    bool has_room = true;
    while (has_room && given < total) {
        const std::size_t bytes = std::min(total - given, Tls::record_bytes);
        there = append(pieces, given, bytes);
        if (!there) break;
        given += bytes;
        has_room = push();
    }
    return given;
}

/// That the peer has closed the socket shows when it is read, after what has arrived.
std::ptrdiff_t Link::write(std::span<const iovec> pieces) noexcept {
    const std::ptrdiff_t count =
        tls_ != nullptr ? tls_->write({static_cast<const std::byte*>(pieces.front().iov_base), pieces.front().iov_len})
                        : transfer(fd(), pieces, MSG_NOSIGNAL, ::send, sendmsg);
    if (count < 0 && (errno == ETIMEDOUT || errno == EHOSTUNREACH || errno == ENETUNREACH)) error_ = errno;
    return count;
}

/// Returns whether the system has taken everything.
bool Link::push() noexcept {
    while (!broken_ && out_begin_ < out_.size()) {
        const iovec rest{.iov_base = out_.data() + out_begin_, .iov_len = out_.size() - out_begin_};
        const std::ptrdiff_t count = write({&rest, 1});
        if (count > 0) {
            out_begin_ += static_cast<std::size_t>(count);
            node_.count_moved(static_cast<std::size_t>(count));
        } else if (errno == EAGAIN) {
            expect_room(true);
            if (out_begin_ >= out_room) {  // more may be appended before all of it has gone
                out_.erase(out_.begin(), out_.begin() + static_cast<std::ptrdiff_t>(out_begin_));
                out_begin_ = 0;
            }
            return false;
        } else {
            break_off();
        }
    }
    out_.clear();
    out_begin_ = 0;
    expect_room(false);
    return !broken_;
}

void Link::flush() noexcept {
    if (!push()) return;
    const auto blocked = std::exchange(blocked_, {});
    for (const auto& entry : blocked)
        if (const auto connection = entry.lock()) connection->resume_sending();
    // The first one may have taken all the room, and is the last one next time.
    if (!blocked_.empty()) std::ranges::rotate(blocked_, blocked_.begin() + 1);
}

void Link::expect_room(bool wanted) noexcept {
    if (std::exchange(expects_room_, wanted) != wanted) node_.watch(*this, wanted);
}

// ---- Receiving ---------------------------------------------------------------------------------------------------

std::ptrdiff_t Link::read(std::span<const iovec> pieces) noexcept {
    if (tls_ != nullptr) {
        const iovec& room = pieces.front();  // there is one
        std::size_t filled = 0;
        do {
            const std::ptrdiff_t count =
                tls_->read({static_cast<std::byte*>(room.iov_base) + filled, room.iov_len - filled});
            if (count <= 0 && filled == 0) return count;
            if (count <= 0) break;
            filled += static_cast<std::size_t>(count);
        } while (filled < room.iov_len && tls_->has_more());
        return static_cast<std::ptrdiff_t>(filled);
    }
    return transfer(fd(), pieces, 0, recv, recvmsg);
}

/// Reads what has arrived. What is left of a large payload is read into the memory that it is for.
bool Link::receive() noexcept {
    bool arrived = false;
    for (int round = 0; is_usable(); ++round) {
        if (round == max_reads) {
            // What OpenSSL has read already makes no descriptor readable. Room in the socket makes it writable.
            if (tls_ != nullptr && tls_->has_more()) expect_room(true);
            break;
        }
        if (in_begin_ != 0) {
            std::memmove(in_.get(), in_.get() + in_begin_, in_end_ - in_begin_);
            in_end_ -= std::exchange(in_begin_, 0);
        }
        std::array<iovec, support::max_pieces + 1> pieces;
        const bool may_place = in_end_ == 0 && !buffered_ && tls_ == nullptr;  // OpenSSL must not meet a fault
        const std::size_t count = may_place ? find_destination(std::span(pieces).first(support::max_pieces)) : 0;
        const std::size_t direct = total_of(std::span(pieces).first(count));
        const std::size_t room = direct != 0 ? read_ahead : in_capacity - in_end_;
        pieces[count] = {.iov_base = in_.get() + in_end_, .iov_len = room};
        const std::ptrdiff_t bytes = read(std::span(pieces).first(count + 1));
        if (bytes < 0 && errno == EFAULT && direct != 0) {
            buffered_ = true;
            continue;
        }
        if (bytes < 0 && errno == EAGAIN) break;
        if (bytes <= 0) {
            fail(reason_of_end(bytes < 0 ? errno : error_));
            break;
        }
        arrived = true;
        node_.count_moved(static_cast<std::size_t>(bytes));
        const std::size_t placed = std::min(static_cast<std::size_t>(bytes), direct);
        in_end_ += static_cast<std::size_t>(bytes) - placed;
        if (placed != 0) {
            const FrameHeader header = part(placed);
            left_ -= placed;
            if (const auto connection = receiver(header)) connection->has_placed(header);
        }
        if (const Status status = consume(); !status.ok()) {
            fail(status);
            break;
        }
        if (static_cast<std::size_t>(bytes) < direct + room) break;
    }
    return arrived;
}

/// Why the socket has ended. A client has shaken hands before the server has looked at its certificate; if the server
/// refuses that, it says so in a record of TLS.
Status Link::reason_of_end(int error) const noexcept {
    constexpr std::array record{std::byte{0x17}, std::byte{3}, std::byte{3}};
    const Policy& policy = transport_.policy();
    const bool expects_hello = !is_open() && side() == Side::Connects;
    if (expects_hello && policy.certificate() != nullptr) {
        if (tls_ != nullptr && error == EBADMSG) return tls_->failure();
        if (std::ranges::equal(record, std::span(in_.get() + in_begin_, std::min(in_end_ - in_begin_, record.size()))))
            return {Code::PermissionDenied, "the server refuses the certificate of this side, and its log says why"};
    }
    if (error == 0 && expects_hello) return policy.why_closed();
    if (error == 0) return {Code::Unreachable, "the peer has closed the socket"};
    if (error == EPROTO && tls_ != nullptr) return {Code::InvalidParameter, "the peer replaces its keys without need"};
    if (const Status status = Status::from_errno(error, "recvmsg"); status.code() == Code::NoResources) return status;
    return {Code::Unreachable, "the peer cannot be reached", error};
}

/// The header of a part of the frame: the next bytes.
FrameHeader Link::part(std::size_t bytes) const noexcept {
    FrameHeader header = header_;
    header.address += header_.bytes - left_;
    header.bytes = static_cast<std::uint32_t>(bytes);
    if (bytes != left_) {
        header.flags |= frame_flags::more;
        header.flags &= static_cast<std::uint8_t>(~(frame_flags::confirm | frame_flags::aborted));
    }
    return header;
}

/// Returns the number of pieces, in which there is room for the payload but its last bytes.
std::size_t Link::find_destination(std::span<iovec> pieces) noexcept {
    if (left_ < least_direct || left_ == header_.bytes || !is_divisible(header_.kind)) return 0;
    const auto connection = receiver(header_);
    return connection == nullptr ? 0 : connection->find_destination(part(left_ - kept_back), pieces);
}

/// Handles what is in the buffer.
Status Link::consume() noexcept {
    while (is_usable()) {
        if (left_ == 0) {
            if (in_end_ - in_begin_ < sizeof header_) break;
            if (const Status status = take_header(); !status.ok()) return status;
        }
        const std::size_t there = std::min(left_, in_end_ - in_begin_);
        if (there < left_ && (!is_divisible(header_.kind) || there == 0)) break;
        const std::span<const std::byte> payload(in_.get() + in_begin_, there);
        in_begin_ += there;
        if (!is_message(header_.kind)) {
            take_part(payload);
            continue;
        }
        left_ = 0;
        const FrameHeader header = header_;
        const Status status = header.kind == FrameKind::Hello ? take_hello(payload) : take_message(header, payload);
        if (!status.ok()) return status;
    }
    if (in_begin_ == in_end_) in_begin_ = in_end_ = 0;
    return {};
}

Status Link::take_header() noexcept {
    std::memcpy(&header_, in_.get() + in_begin_, sizeof header_);
    if (!is_valid(header_)) return {Code::InvalidParameter, "the peer sends what is no frame"};
    if (!is_open() && header_.kind != FrameKind::Hello)
        return {Code::InvalidParameter, "the peer does not begin with Hello"};
    in_begin_ += sizeof header_;
    left_ = header_.bytes;
    buffered_ = false;
    return {};
}

void Link::take_part(std::span<const std::byte> payload) noexcept {
    const FrameHeader header = part(payload.size());
    left_ -= payload.size();
    if (const auto connection = receiver(header)) connection->on_frame({header, payload}, left_ == 0);
}

Status Link::take_hello(std::span<const std::byte> body) noexcept {
    software::Hello hello;
    if (const Status status = decode(body, hello); !status.ok()) return status;
    if (std::exchange(state_, State::Open) == State::Open) return {Code::InvalidParameter, "the peer says Hello twice"};
    node_.agent().cancel(*this);  // it has authenticated in time
    return {};
}

}  // namespace viaduct::tcp
