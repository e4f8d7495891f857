// SPDX-License-Identifier: BSD-3-Clause
// The passive side of connection setup: ports, listeners and requests.
#pragma once

#include <list>
#include <memory>

#include "backends/software/node.hpp"
#include "backends/support/port_base.hpp"
#include "core/backend.hpp"
#include "core/base/event_channel.hpp"

namespace viaduct::software {

class Listener;

class ConnectionRequest final : public viaduct::ConnectionRequest {
public:
    ConnectionRequest(std::shared_ptr<Node> node, std::shared_ptr<Link> link, const Connect& message);
    ~ConnectionRequest() override;

    const Address& remote_address() const noexcept override { return message_.local; }
    const EndpointAttributes& remote_attributes() const noexcept override { return message_.end.attributes; }
    const PrivateData& private_data() const noexcept override { return message_.private_data; }
    Status accept(backend::Endpoint& endpoint, const PrivateData& private_data) noexcept override;
    Status reject(const PrivateData& private_data) noexcept override {
        return refuse_with(Rejected{.private_data = private_data});
    }
    Status refuse() noexcept override { return refuse_with(NoListener{}); }
    Status conflict(const EndpointAttributes& own) noexcept override {
        return refuse_with(Conflict{.attributes = own});
    }
    void redirect(const Service& service) noexcept override { answered_by_ = service; }

    // The lock of the node must be held for the functions below.
    template <class Message>
    Status answer(const Message& message) noexcept {
        if (link_ != nullptr) link_->tell(requester(), message);
        answered_ = true;
        leave();
        return {};
    }
    /// Reports whether the peer still waits for an answer.
    bool is_wanted() noexcept {
        if (const auto link = link_) (void)link->work();  // the requester may have given up since
        return !has_gone();
    }
    /// Whether it is known that nobody waits.
    bool has_gone() const noexcept { return link_ == nullptr || link_->is_closed(); }
    /// The number of the requester's connection.
    std::uint32_t requester() const noexcept { return message_.end.connection; }
    /// The requester has given up, or its link has ended; the link forgets the request.
    void link_lost() noexcept {
        if (link_ != nullptr) link_->leave();
        link_.reset();
    }

    /// The program gets the request, and will destroy it without the lock.
    void hand_out() noexcept { handed_out_ = true; }

private:
    template <class Message>
    Status refuse_with(const Message& message) noexcept {
        const Node::Guard guard(*node_);
        return answer(message);
    }
    void drop() noexcept {
        if (link_ == nullptr) return;
        link_->drop(requester());
        leave();
    }
    void leave() noexcept;

    const std::shared_ptr<Node> node_;
    std::shared_ptr<Link> link_;  // null: nobody waits for an answer
    const Connect message_;
    bool answered_ = false;
    bool handed_out_ = false;
    Service answered_by_;  // empty: the requested service
};

/// A port of an address, on which several services may have listeners. The lock of the node must be held.
class Port : public AgentClient, public support::PortBase<Listener, Connection> {
public:
    /// Returns the port if this process already listens on it; otherwise opens it. Busy: another process uses it.
    static Result<std::shared_ptr<Port>> get(Node& node, std::uint16_t number);

    template <class User>
    void remove(const User& user) noexcept {
        PortBase::remove(user);
        close_if_unused();
    }

    /// Whether the service may have another listener.
    bool admits(const Service& service, Sharing sharing) const noexcept;

    std::uint16_t number() const noexcept { return number_; }

    /// Handles a request that has arrived. NoListener: the service has none.
    Status take(const std::shared_ptr<Link>& link, const Connect& request);

protected:
    Port(Node& node, std::uint16_t number) noexcept : node_(node), number_(number) {}

    /// Nobody uses the port any more, so it will be destroyed.
    virtual void closes() noexcept {}

    Node& node_;

private:
    void close_if_unused() noexcept;

    const std::uint16_t number_;
};

class Listener final : public viaduct::Listener {
public:
    static Result<std::unique_ptr<viaduct::Listener>> create(std::shared_ptr<Node> node, const Address& local,
                                                             Sharing sharing);
    ~Listener() override;

    int fd() const noexcept override {
        const Node::Guard guard(*node_);
        return flag_.fd();
    }
    Result<Owned<viaduct::ConnectionRequest>> next_request() noexcept override;

    const Service& service() const noexcept { return service_; }
    bool is_exclusive() const noexcept { return exclusive_; }

    /// The lock of the node must be held. Throws std::bad_alloc.
    Status add(const std::shared_ptr<Link>& link, const Connect& message);

private:
    Listener(std::shared_ptr<Node> node, const Service& service) : node_(std::move(node)), service_(service) {}

    const std::shared_ptr<Node> node_;
    const Service service_;
    std::shared_ptr<Port> port_;
    bool exclusive_ = false;
    std::list<std::unique_ptr<ConnectionRequest>> requests_;
    mutable ReadableFlag flag_;
};

}  // namespace viaduct::software
