// SPDX-License-Identifier: BSD-3-Clause
// What carries the frames of all connections between two processes. A transport derives from it; here is who uses a
// link, and who gets what arrives.
#pragma once

#include <sys/uio.h>

#include <memory>
#include <span>
#include <vector>

#include "backends/software/agent.hpp"
#include "backends/software/frames.hpp"
#include "backends/software/messages.hpp"

namespace viaduct::software {

class Connection;
class ConnectionRequest;

/// The lock of the node must be held.
class Link : public AgentClient {
public:
    /// How a link has come about: this process has connected to a port of the other, or the other way round.
    enum class Side : std::uint8_t { Connects, Accepts };

    std::uint64_t id = 0;           ///< in events; set by the node
    std::uint64_t last_use_id = 0;  ///< the order in which links that nothing uses are closed

    // ---- The transport ----

    /// Readable while work() should be called.
    virtual int fd() const noexcept = 0;

    virtual bool is_closed() const noexcept = 0;
    /// Whether frames can be sent.
    virtual bool is_usable() const noexcept { return !is_closed(); }
    /// Whether the peer has authenticated, if the transport requires that.
    virtual bool is_open() const noexcept { return is_usable(); }
    /// Whether the other host has not answered yet.
    virtual bool is_connecting() const noexcept { return false; }
    /// Whether every request has to be refused for lack of resources.
    virtual bool refuses() const noexcept { return false; }

    /// Sends frames, whose payload may be in the memory of the program. Returns how many were sent; if that is not all
    /// of them, or if a frame is only kept for now, the connection is resumed later (Connection::wait_for()). `there`:
    /// set to false if the memory is not there, and nothing was sent.
    virtual std::size_t send(std::span<const FrameHeader> headers, std::span<const iovec> payload, Connection& sender,
                             bool& there) noexcept = 0;

    /// Resumes the connection at the next work() as if there had been no room. Returns false if the transport cannot,
    /// because it always has room.
    virtual bool resume_later(Connection&) noexcept { return false; }

    /// Sends a message, which never has to wait for its turn. The link is usable.
    virtual void send_message(const FrameHeader& header, std::span<const std::byte> body) noexcept = 0;

    /// Sends what was kept, as far as there is room, and resumes connections if that was all.
    virtual void flush() noexcept {}
    virtual bool has_sent_all() const noexcept { return true; }

    /// Goes on with everything. Returns whether anything has arrived.
    virtual bool work() noexcept = 0;

    /// Closes the link so that what was sent arrives.
    virtual void close() noexcept = 0;
    /// Drops a link that nobody uses, with what the peer may still send.
    virtual void abandon() noexcept { close(); }

    /// Closes the link, and tells all that use it why.
    void give_up(const Status& why) noexcept {
        close();
        end_users(why);
    }

    // ---- What uses the link. One that is not used may be closed; the peer makes another if it needs one. ----

    /// Sends a message, if the link is usable. `header.bytes` need not be set.
    void tell(FrameHeader header, std::span<const std::byte> body) noexcept {
        header.bytes = static_cast<std::uint32_t>(body.size());
        if (is_usable()) send_message(header, body);
    }
    template <class Message>
    void tell(std::uint32_t connection, const Message& message, std::uint32_t key = 0) noexcept {
        tell({.connection = connection, .key = key, .kind = Message::kind}, encode(message).bytes());
    }

    void join() noexcept { ++users_; }
    void leave() noexcept;
    /// Whether nothing uses it, and nobody waits for an answer.
    bool is_idle() const noexcept {
        if (users_ != 0 || !dropped_.empty()) return false;
        return (side_ == Side::Connects ? is_usable() : is_open()) && has_sent_all();
    }
    /// Whether this process has connected it to a port.
    bool leads_to(const HostAddress& host, std::uint16_t port) const noexcept {
        return side_ == Side::Connects && !is_closed() && !refused_ && port_ == port && remote_ == host;
    }
    const HostAddress& remote_host() const noexcept { return remote_; }
    std::uint16_t port() const noexcept { return port_; }
    Side side() const noexcept { return side_; }

    /// Calls Connection::on_link() when the link is usable or has failed.
    void await(const std::shared_ptr<Connection>& connection) { waiting_.push_back(connection); }
    /// The connection gives up. A link that nobody waits for is dropped, unless it is usable.
    void await_no_more(const Connection& connection) noexcept;

    /// Requests that have not been answered.
    void add(ConnectionRequest& request) { requests_.push_back(&request); }
    void remove(const ConnectionRequest& request) noexcept { std::erase(requests_, &request); }
    /// The program has dropped a request without an answer.
    void drop(std::uint32_t requester) noexcept;
    /// Tells those whose requests were dropped that there will be no answer.
    void say_goodbye() noexcept {
        for (const std::uint32_t requester : std::exchange(dropped_, {})) tell(requester, Dropped{});
    }

protected:
    /// `port`: to which it is connected, or which has accepted it.
    Link(Node& node, Side side, const HostAddress& remote, std::uint16_t port) noexcept
        : node_(node), side_(side), port_(port), remote_(remote) {}

    // ---- What the transport calls ----

    /// The link is usable, or has failed.
    void tell_waiting(const Status& status) noexcept;

    /// Handles a frame for which is_message() is true. An error ends the link.
    Status take_message(const FrameHeader& header, std::span<const std::byte> body) noexcept;

    /// The connection that gets frames with this header; see Connection::on_frame(). Null: it has ended.
    std::shared_ptr<Connection> receiver(const FrameHeader& header) noexcept;

    /// The link has failed or was closed by the peer, and is_closed() says so. Tells all that use it why.
    void end_users(const Status& why) noexcept;

    std::shared_ptr<Link> self() noexcept { return std::static_pointer_cast<Link>(shared_from_this()); }

    Node& node_;

private:
    Status request(const Connect& message) noexcept;
    void cancel(std::uint32_t requester) noexcept;

    const Side side_;
    const std::uint16_t port_;
    const HostAddress remote_;
    bool refused_ = false;  // the peer lacks resources, and closes the link
    std::size_t users_ = 0;
    std::vector<std::weak_ptr<Connection>> waiting_;
    std::vector<ConnectionRequest*> requests_;
    std::vector<std::uint32_t> dropped_;  // numbers of requesters that wait for an answer in vain
};

}  // namespace viaduct::software
