// SPDX-License-Identifier: BSD-3-Clause
// A socket between two processes: authentication, the division of the bytes into frames, and the turns of those that
// send.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "backends/software/link.hpp"
#include "backends/tcp/socket.hpp"
#include "backends/tcp/tls.hpp"
#include "backends/tcp/transport.hpp"

namespace viaduct::tcp {

class Port;

using software::FrameHeader;

/// The lock of the node must be held.
class Link final : public software::Link {
public:
    /// See Transport::connect().
    static Result<std::shared_ptr<software::Link>> connect(Transport& transport, software::Node& node,
                                                           const HostAddress& to, std::uint16_t port);

    /// Takes a socket that a port has accepted. `refuses`: every request, because its descriptor is the reserve of the
    /// port. Throws std::bad_alloc.
    static Result<std::shared_ptr<Link>> accept(Transport& transport, software::Node& node,
                                                const std::shared_ptr<Port>& port, Socket socket, bool refuses);

    Link(Transport& transport, software::Node& node, Socket socket, Side side, const HostAddress& remote,
         std::uint16_t port) noexcept;
    ~Link() override;

    int fd() const noexcept override { return socket_.get(); }
    bool is_usable() const noexcept override { return state_ == State::Greeting || state_ == State::Open; }
    bool is_open() const noexcept override { return state_ == State::Open; }
    bool is_closed() const noexcept override { return state_ == State::Closed || state_ == State::Leaving; }
    bool is_connecting() const noexcept override { return state_ == State::Connecting; }
    bool refuses() const noexcept override { return refuses_; }

    std::size_t send(std::span<const FrameHeader> headers, std::span<const iovec> payload, software::Connection& sender,
                     bool& there) noexcept override;
    bool resume_later(software::Connection& connection) noexcept override;
    void send_message(const FrameHeader& header, std::span<const std::byte> body) noexcept override;
    void flush() noexcept override;
    bool has_sent_all() const noexcept override { return out_.empty() || is_closed(); }
    bool work() noexcept override;
    void close() noexcept override;
    void abandon() noexcept override;

    /// Ends the link, and with it all its connections, which are told why.
    void fail(const Status& why) noexcept;

    /// The same, and closes the socket at once, even if the peer may not learn why then.
    void evict(const Status& why) noexcept {
        const auto keep = self();
        fail(why);
        if (state_ == State::Leaving) abandon();
    }

private:
    enum class State : std::uint8_t {
        Connecting,
        ShakingHands,
        Greeting,  ///< this side has sent Hello
        Open,      ///< and the peer, too
        Leaving,   ///< this side has closed its direction; what arrives is discarded
        Closed,
    };

    void on_deadline() noexcept override;

    Status go_on();
    Status begin();
    Status greet();
    void lack_memory() noexcept;
    void break_off() noexcept;
    bool send_copy(const FrameHeader& header, std::span<const iovec> payload, software::Connection& sender,
                   bool& there) noexcept;
    bool append(const FrameHeader& header, std::span<const iovec> payload) noexcept;
    bool append(std::span<const iovec> pieces, std::size_t skip, std::size_t bytes) noexcept;
    std::size_t encrypt(std::span<const iovec> pieces, bool& there) noexcept;
    bool push() noexcept;
    void expect_room(bool wanted) noexcept;
    std::ptrdiff_t write(std::span<const iovec> pieces) noexcept;
    std::ptrdiff_t read(std::span<const iovec> pieces) noexcept;
    bool receive() noexcept;
    Status reason_of_end(int error) const noexcept;
    std::size_t find_destination(std::span<iovec> pieces) noexcept;
    Status consume() noexcept;
    Status take_header() noexcept;
    Status take_hello(std::span<const std::byte> body) noexcept;
    void take_part(std::span<const std::byte> payload) noexcept;
    FrameHeader part(std::size_t bytes) const noexcept;
    void discard() noexcept;

    Transport& transport_;
    Socket socket_;
    State state_;
    bool refuses_ = false;
    bool broken_ = false;  // the socket takes no more; what was sent since is lost
    bool expects_room_ = false;
    bool working_ = false;
    std::unique_ptr<Tls> tls_;  // during the handshake, and then if the link is encrypted
    std::weak_ptr<Port> acceptor_;

    // What could not be sent yet.
    std::vector<std::byte> out_;
    std::size_t out_begin_ = 0;
    std::vector<std::weak_ptr<software::Connection>> blocked_;

    // What has arrived and was not handled yet, and the frame of which a part was handled. There is room for a whole
    // frame: to read it at once and to copy it is faster than to read what is left to its place.
    static constexpr std::size_t read_ahead = 512;  // of the next frame, with the rest of a large one
    static constexpr std::size_t in_capacity = sizeof(FrameHeader) + software::fragment_bytes + read_ahead;
    std::unique_ptr<std::byte[]> in_;
    std::size_t in_begin_ = 0;
    std::size_t in_end_ = 0;
    FrameHeader header_;
    std::size_t left_ = 0;   // of the payload of that frame; 0: a header is next
    bool buffered_ = false;  // the rest of it goes through the buffer
    std::size_t discarded_ = 0;
    int error_ = 0;  // of the socket, which reports it only once; ENOMEM: of this side
};

}  // namespace viaduct::tcp
