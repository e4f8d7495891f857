// SPDX-License-Identifier: BSD-3-Clause
#include "backends/software/listener.hpp"

#include <algorithm>

#include "backends/software/connection.hpp"
#include "backends/software/endpoint.hpp"
#include "backends/support/guarded.hpp"
#include "backends/support/services.hpp"

namespace viaduct::software {
namespace {

/// The maximum number of requests that wait for one listener.
constexpr std::size_t max_waiting = 4096;

}  // namespace

// ---- Requests ----------------------------------------------------------------------------------------------------

ConnectionRequest::ConnectionRequest(std::shared_ptr<Node> node, std::shared_ptr<Link> link, const Connect& message)
    : node_(std::move(node)), link_(std::move(link)), message_(message) {
    link_->add(*this);
    link_->join();
}

ConnectionRequest::~ConnectionRequest() {
    if (handed_out_) {
        const Node::Guard guard(*node_);
        drop();
    } else {
        drop();  // by the listener, which holds the lock
    }
}

void ConnectionRequest::leave() noexcept {
    if (link_ == nullptr) return;
    link_->remove(*this);
    link_->leave();
    link_.reset();
}

Status ConnectionRequest::accept(backend::Endpoint& endpoint, const PrivateData& private_data) noexcept {
    return support::guarded([&]() -> Status {
        const Node::Guard guard(*node_);
        auto& own = static_cast<Endpoint&>(endpoint);
        if (!own.is_idle()) return {Code::InvalidState, "the endpoint is not idle"};
        if (answered_) return {Code::TimedOut, "the request was already answered"};
        if (!is_wanted()) return {Code::TimedOut, "the requester has given up or has ended"};
        const auto connection = std::make_shared<Connection>(*node_, own);
        const std::shared_ptr<Link> link = link_;  // which may be lost meanwhile
        const Status status = connection->accept(link, message_.end, answered_by_, private_data,
                                                 {.kind = ConnectionEventKind::Established});
        if (!status.ok()) return status;
        answered_ = true;
        leave();
        return {};
    });
}

// ---- Ports -------------------------------------------------------------------------------------------------------

Result<std::shared_ptr<Port>> Port::get(Node& node, std::uint16_t number) {
    if (const auto found = node.ports().find(number); found != node.ports().end()) return found->second;
    auto port = node.transport().listen(node, number);
    if (port.ok()) node.ports().emplace(number, port.value());
    return port;
}

void Port::close_if_unused() noexcept {
    if (!is_unused()) return;
    const auto keep = std::static_pointer_cast<Port>(shared_from_this());
    closes();
    node_.ports().erase(number_);
}

bool Port::admits(const Service& service, Sharing sharing) const noexcept {
    return std::ranges::none_of(listeners_, [&](const Listener* listener) {
        return listener->service() == service && (sharing == Sharing::Exclusive || listener->is_exclusive());
    });
}

Status Port::take(const std::shared_ptr<Link>& link, const Connect& request) {
    if (request.model == ConnectParameters::Model::PeerToPeer) {
        if (Connection* const peer = find_peer(link->remote_host(), request.remote.service)) {
            peer->on_peer(link, request);
            return {};
        }
    } else {
        Listener* listener = next_listener(request.remote.service);
        // The client may know the port by another number, as with the published ports of containers.
        if (listener == nullptr && port_of(request.remote.service) != 0) listener = next_listener(service_of(number_));
        if (listener != nullptr) return listener->add(link, request);
    }
    return {Code::NoListener, "the service has no listener"};
}

// ---- Listeners ---------------------------------------------------------------------------------------------------

Result<std::unique_ptr<viaduct::Listener>> Listener::create(std::shared_ptr<Node> node, const Address& local,
                                                            Sharing sharing) {
    std::unique_ptr<Listener> listener(new Listener(std::move(node), local.service));
    const Node::Guard guard(*listener->node_);
    if (listener->flag_.fd() < 0) return Status::from_errno(errno, "eventfd");
    auto port = Port::get(*listener->node_, support::port_for(local.service));
    if (!port.ok()) return port.status();
    if (!(*port)->admits(local.service, sharing)) return Status(Code::Busy, "the service has a listener");
    listener->exclusive_ = sharing == Sharing::Exclusive;
    listener->port_ = *port;  // which it closes if it cannot be added
    (*port)->add(*listener);
    return std::unique_ptr<viaduct::Listener>(std::move(listener));
}

Listener::~Listener() {
    const Node::Guard guard(*node_);
    const std::shared_ptr<Port> port = std::exchange(port_, nullptr);  // destroyed before the lock is released
    if (port == nullptr) return;
    for (const auto& request : requests_) (void)request->answer(NoListener{});
    requests_.clear();
    port->remove(*this);
}

Status Listener::add(const std::shared_ptr<Link>& link, const Connect& message) {
    if (requests_.size() >= max_waiting)
        std::erase_if(requests_, [](const auto& waiting) { return waiting->has_gone(); });
    std::list<std::unique_ptr<ConnectionRequest>> added(1);  // first: a request that is made has to be answered
    added.front() = std::make_unique<ConnectionRequest>(node_, link, message);
    if (requests_.size() >= max_waiting) {
        constexpr const char* why = "too many requests wait for the listener";
        node_->turn_away(port_->number(), {Code::NoResources, why});
        return added.front()->answer(NoListener{});
    }
    requests_.splice(requests_.end(), added);
    flag_.set(true);
    return {};
}

Result<Owned<viaduct::ConnectionRequest>> Listener::next_request() noexcept {
    const Node::Guard guard(*node_);
    while (!requests_.empty()) {
        std::unique_ptr<ConnectionRequest> request = std::move(requests_.front());
        requests_.pop_front();
        flag_.set(!requests_.empty());
        if (!request->is_wanted()) continue;
        request->hand_out();
        return Owned<viaduct::ConnectionRequest>(std::move(request));
    }
    return Status(Code::WouldBlock, "no request is pending");
}

}  // namespace viaduct::software
