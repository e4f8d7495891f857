// SPDX-License-Identifier: BSD-3-Clause
// One socket between two processes, which carries the frames of all their connections: authentication, the division of
// the bytes into frames, and the turns of those that send.
#pragma once

#include <sys/uio.h>

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "backends/tcp/agent.hpp"
#include "backends/tcp/frames.hpp"
#include "backends/tcp/messages.hpp"
#include "backends/tcp/socket.hpp"
#include "backends/tcp/tls.hpp"

namespace viaduct::tcp {

class Connection;
class ConnectionRequest;
class Connector;
class Node;
class Port;

/// The lock of the node must be held.
class Link final : public AgentClient {
public:
    /// Starts to connect to a port. Errors as Socket::connect(). Throws std::bad_alloc.
    static Result<std::shared_ptr<Link>> connect(Node& node, const HostAddress& to, std::uint16_t port);

    /// Takes a socket that a port has accepted. `refuses`: every request, because its descriptor is the reserve of the
    /// port. Throws std::bad_alloc.
    static Result<std::shared_ptr<Link>> accept(Node& node, const std::shared_ptr<Port>& port, Socket socket,
                                                bool refuses);

    Link(Node& node, Socket socket, Role role, std::uint16_t port) noexcept;
    ~Link() override;

    int fd() const noexcept { return socket_.get(); }
    std::uint64_t id = 0;  ///< in events; set by the node

    /// Whether requests can be sent.
    bool is_usable() const noexcept { return state_ == State::Greeting || state_ == State::Open; }
    bool is_closed() const noexcept { return state_ == State::Closed || state_ == State::Leaving; }
    /// Whether the peer has authenticated.
    bool is_open() const noexcept { return state_ == State::Open; }
    /// Whether this process has connected it to a port.
    bool leads_to(const HostAddress& host, std::uint16_t port) const noexcept {
        return role_ == Role::Client && !is_closed() && !refused_ && port_ == port && remote_ == host;
    }
    bool is_connecting() const noexcept { return state_ == State::Connecting; }
    const HostAddress& remote_host() const noexcept { return remote_; }

    // ---- What uses the link. A link of a client that nobody uses may be closed. ----
    void join() noexcept { ++users_; }
    void leave() noexcept { --users_; }
    bool is_idle() const noexcept { return users_ == 0 && role_ == Role::Client && is_usable() && out_.empty(); }

    /// Calls Connector::on_link() when the link is usable or has failed.
    void await(const std::shared_ptr<Connector>& connector) { waiting_.push_back(connector); }
    /// The connector gives up. A link that nobody waits for is closed, unless it is usable.
    void await_no_more(const Connector& connector) noexcept;

    /// Requests that have not been answered.
    void add(ConnectionRequest& request) { requests_.push_back(&request); }
    void remove(const ConnectionRequest& request) noexcept { std::erase(requests_, &request); }
    /// The program has dropped a request without an answer.
    void drop(std::uint32_t requester) noexcept;
    /// Tells those whose requests were dropped that there will be no answer.
    void say_goodbye() noexcept;

    // ---- Sending ----

    /// Sends a frame whose payload is small. Returns false if the socket has no room; then the connection is resumed
    /// later. It is resumed, too, if the frame is not given to the system at once.
    bool send(const FrameHeader& header, std::span<const std::byte> payload, Connection& sender) noexcept;

    /// The same with frames of any size, whose payload is in the memory of the program. Returns how many were sent.
    /// `there` is false if the memory is not there, and nothing was sent.
    std::size_t send(std::span<const FrameHeader> headers, std::span<const iovec> payload, Connection& sender,
                     bool& there) noexcept;

    /// Sends a message, which never has to wait for its turn.
    template <class Message>
    void tell(std::uint32_t connection, const Message& message, std::uint32_t key = 0) noexcept {
        tell({.connection = connection, .key = key, .kind = Message::kind}, encode(message).bytes());
    }
    void tell(const FrameHeader& header, std::span<const std::byte> body) noexcept;

    /// Gives to the system what it takes, and resumes connections if that was all.
    void flush() noexcept;

    /// Goes on with everything. Returns whether anything has arrived.
    bool work() noexcept;

    /// Ends the link, and with it all its connections, which are told why.
    void fail(const Status& why) noexcept;

    /// Closes the socket so that what was sent arrives.
    void close() noexcept;
    bool has_sent_all() const noexcept { return out_.empty() || is_closed(); }

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

    Status go_on() noexcept;
    Status begin();
    Status greet();
    void append(const FrameHeader& header, std::span<const std::byte> payload) noexcept;
    bool append(std::span<const iovec> pieces, std::size_t skip, std::size_t bytes) noexcept;
    std::size_t encrypt(std::span<const iovec> pieces, bool& there) noexcept;
    bool push() noexcept;
    void expect_room(bool wanted) noexcept;
    std::ptrdiff_t write(std::span<const iovec> pieces) noexcept;
    std::ptrdiff_t read(std::span<const iovec> pieces) noexcept;
    bool receive() noexcept;
    std::size_t find_destination(std::span<iovec> pieces) noexcept;
    Status consume() noexcept;
    Status take_header() noexcept;
    Status take_message(const FrameHeader& header, std::span<const std::byte> body) noexcept;
    void take_part(std::span<const std::byte> payload) noexcept;
    FrameHeader part(std::size_t bytes) const noexcept;
    std::shared_ptr<Connection> receiver() noexcept;
    Status request(const Connect& message) noexcept;
    void cancel(std::uint32_t requester) noexcept;
    void tell_waiting(const Status& status) noexcept;
    void discard() noexcept;
    void forget_stranger() noexcept;

    Node& node_;
    Socket socket_;
    const Role role_;
    const std::uint16_t port_;  // to which it is connected, or which has accepted it
    HostAddress remote_;
    State state_;
    bool refuses_ = false;
    bool refused_ = false;  // the peer lacks descriptors, and closes the link
    bool expects_room_ = false;
    bool working_ = false;
    std::size_t users_ = 0;
    std::unique_ptr<Tls> tls_;  // during the handshake, and then if the link is encrypted
    Deadline deadline_ = Deadline::never();
    std::weak_ptr<Port> acceptor_;
    std::vector<std::weak_ptr<Connector>> waiting_;
    std::vector<ConnectionRequest*> requests_;
    std::vector<std::uint32_t> dropped_;  // numbers of requesters that wait for an answer in vain

    // What could not be sent yet.
    std::vector<std::byte> out_;
    std::size_t out_begin_ = 0;
    std::vector<std::weak_ptr<Connection>> blocked_;

    // What has arrived and was not handled yet, and the frame of which a part was handled.
    static constexpr std::size_t in_capacity = 16 * 1024;
    std::unique_ptr<std::byte[]> in_;
    std::size_t in_begin_ = 0;
    std::size_t in_end_ = 0;
    FrameHeader header_;
    std::size_t left_ = 0;   // of the payload of that frame; 0: a header is next
    bool buffered_ = false;  // the rest of it goes through the buffer
    std::size_t discarded_ = 0;
};

}  // namespace viaduct::tcp
