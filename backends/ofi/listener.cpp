// SPDX-License-Identifier: BSD-3-Clause
#include "backends/ofi/listener.hpp"

#include <algorithm>
#include <chrono>

#include "backends/ofi/connector.hpp"
#include "backends/ofi/endpoint.hpp"
#include "backends/ofi/farewell.hpp"
#include "backends/support/guarded.hpp"
#include "backends/support/services.hpp"
#include "backends/support/take_turns.hpp"
#include "core/log.hpp"

namespace viaduct::ofi {
namespace {

using namespace std::chrono_literals;

/// How long a peer may take to send its request after it has connected.
constexpr auto greeting_time = 5s;

/// How long a port accepts no clients if resources are exhausted.
constexpr auto accept_pause = 100ms;

/// The maximum number of requests that wait for one listener.
constexpr std::size_t max_waiting = 4096;

/// Keeps a socket until its peer closes it. If the device is closed first, says that there will be no answer.
class DroppedSocket final : public AgentClient {
public:
    static void keep(Node& node, ControlSocket socket) {
        auto dropped = std::make_shared<DroppedSocket>(node, std::move(socket));
        if (!node.agent().watch(dropped->socket_.fd(), dropped).ok()) return;
        (void)node.keep(dropped);  // if this fails, the peer is refused
    }
    DroppedSocket(Node& node, ControlSocket socket) noexcept : node_(node), socket_(std::move(socket)) {}
    ~DroppedSocket() override {
        node_.agent().unwatch(socket_.fd());
        (void)socket_.send(control::Closing{.on_purpose = true});
    }

private:
    void on_ready() noexcept override {
        const auto message = socket_.receive();
        if (message.ok() && !message.value()) return;
        node_.agent().unwatch(socket_.fd());
        node_.forget(*this);
    }

    Node& node_;
    ControlSocket socket_;
};

/// A peer that has connected to a port, but has not sent its request yet.
class Greeting final : public AgentClient {
public:
    static void begin(Node& node, const std::shared_ptr<Port>& port, ControlSocket socket, bool refuses) {
        auto greeting = std::make_shared<Greeting>(node, port, std::move(socket), refuses);
        if (const Status kept = node.keep(greeting); !kept.ok()) return port->turn_away(kept.where());
        if (!greeting->socket_.send(control::Challenge{}).ok() ||
            !node.agent().watch(greeting->socket_.fd(), greeting).ok())
            return node.forget(*greeting);
        node.agent().call_at(greeting->deadline_, greeting);
    }
    Greeting(Node& node, std::weak_ptr<Port> port, ControlSocket socket, bool refuses) noexcept
        : node_(node), port_(std::move(port)), socket_(std::move(socket)), refuses_(refuses) {}
    ~Greeting() override {
        if (socket_) node_.agent().unwatch(socket_.fd());
    }

private:
    void on_ready() noexcept override {
        const auto message = socket_.receive();
        if (message.ok() && !message.value()) return;
        node_.agent().unwatch(socket_.fd());
        const auto* request = message.ok() ? std::get_if<control::Request>(&*message.value()) : nullptr;
        const auto port = port_.lock();
        if (refuses_) {
            if (request != nullptr) (void)socket_.send(control::NoResources{});
        } else if (request != nullptr && port != nullptr) {
            (void)support::guarded([&]() -> Status {
                port->take(std::move(socket_), *request);
                return {};
            });
        } else if (request != nullptr) {
            take_leave(node_, std::move(socket_), control::NoListener{});
        } else if (message.status().code() == Code::PermissionDenied) {
            turn_away(message.status().where());
            take_leave(node_, std::move(socket_), control::AuthenticationFailed{});
        } else if (message.status().code() != Code::Unreachable) {
            turn_away(message.ok() ? "it sent an unexpected message" : message.status().where());
            take_leave(node_, std::move(socket_), std::nullopt);
        } else {
            log(LogLevel::Info, "ofi: a client was turned away: it closed the socket before its request");
        }
        finish();
    }

    void on_deadline() noexcept override {
        if (!socket_) return;
        node_.agent().unwatch(socket_.fd());
        turn_away("it sent no request within 5 s");
        finish();
    }

    /// The port may have been closed since the client connected.
    void turn_away(const char* why) const noexcept {
        if (const auto port = port_.lock()) return port->turn_away(why);
        log(LogLevel::Info, "ofi: a client was turned away: %s", why);
    }

    void finish() noexcept {
        socket_ = {};
        if (const auto port = port_.lock(); port != nullptr && refuses_) port->reserve_descriptor();
        node_.agent().cancel_call(deadline_, weak_from_this());
        node_.forget(*this);
    }

    Node& node_;
    const std::weak_ptr<Port> port_;
    ControlSocket socket_;
    const bool refuses_;  // every request, because its socket is the reserve of the port
    const Deadline deadline_ = Deadline::after(greeting_time);
};

}  // namespace

// ---- Requests ----------------------------------------------------------------------------------------------------

ConnectionRequest::~ConnectionRequest() {
    if (!socket_) return;
    const Node::Guard guard(*node_);
    (void)support::guarded([this]() -> Status {
        DroppedSocket::keep(*node_, std::move(socket_));
        return {};
    });
}

Status ConnectionRequest::accept(backend::Endpoint& endpoint, const PrivateData& private_data) noexcept {
    return support::guarded([&]() -> Status {
        const Node::Guard guard(*node_);
        auto& own = static_cast<Endpoint&>(endpoint);
        if (!own.is_idle()) return {Code::InvalidState, "the endpoint is not idle"};
        return accept_locked(own, private_data, {.kind = ConnectionEventKind::Established});
    });
}

Status ConnectionRequest::accept_locked(Endpoint& endpoint, const PrivateData& private_data,
                                        const ConnectionEvent& established) {
    if (!socket_) return {Code::TimedOut, "the request was already answered"};
    if (!is_wanted()) return {Code::TimedOut, "the requester has given up or has ended"};
    auto connection = Connection::create(*node_);
    if (!connection.ok()) return connection.status();
    const std::shared_ptr<Connection> accepted = std::move(*connection);
    const control::Accepted message{
        .end = accepted->describe(endpoint), .service = answered_by_, .private_data = private_data};
    if (const Status status = accepted->open(endpoint, message_.end, std::move(socket_)); !status.ok()) return status;
    endpoint.establish(accepted);
    endpoint.connecting_finished(established);
    accepted->tell(message);  // last, because the peer may cause further events as soon as it gets the message
    return {};
}

bool ConnectionRequest::is_wanted() noexcept {
    if (socket_ && socket_.has_hung_up()) socket_.close();
    return static_cast<bool>(socket_);
}

Status ConnectionRequest::answer(const control::Message& message) noexcept {
    if (!socket_) return {};
    take_leave(*node_, std::move(socket_), message);
    return {};
}

Status ConnectionRequest::reject(const PrivateData& private_data) noexcept {
    const Node::Guard guard(*node_);
    return answer(control::Rejected{.private_data = private_data});
}

Status ConnectionRequest::refuse() noexcept {
    const Node::Guard guard(*node_);
    return answer(control::NoListener{});
}

Status ConnectionRequest::conflict(const EndpointAttributes& own) noexcept {
    const Node::Guard guard(*node_);
    return answer(control::Conflict{.attributes = own});
}

// ---- Ports -------------------------------------------------------------------------------------------------------

Result<std::shared_ptr<Port>> Port::get(Node& node, std::uint16_t number) {
    if (const auto found = node.ports().find(number); found != node.ports().end()) return found->second;
    auto socket = ControlSocket::listen(node.host(), number);
    if (!socket.ok()) {
        log(LogLevel::Info, "ofi: cannot listen at port %u: %s", number, socket.status().where());
        return socket.status();
    }
    auto port = std::make_shared<Port>(node, number, std::move(*socket));
    if (!port->reserve_) return Status::from_errno(errno, "open of /dev/null");
    if (const Status status = node.agent().watch(port->socket_.get(), port); !status.ok()) return status;
    node.ports().emplace(number, port);
    return port;
}

Port::~Port() { node_.agent().unwatch(socket_.get()); }

void Port::close_if_unused() noexcept {
    if (!listeners_.empty() || !connectors_.empty()) return;
    const auto keep = std::static_pointer_cast<Port>(shared_from_this());
    (void)greet_clients();  // the system would reset those that are not accepted when the port closes
    node_.ports().erase(number_);
}

void Port::remove(const Listener& listener) noexcept {
    std::erase(listeners_, &listener);
    close_if_unused();
}

void Port::remove(const Connector& connector) noexcept {
    std::erase(connectors_, &connector);
    close_if_unused();
}

bool Port::serves(const Service& service) const noexcept {
    return std::ranges::any_of(listeners_, [&](const Listener* listener) { return listener->service() == service; });
}

bool Port::is_exclusive(const Service& service) const noexcept {
    return std::ranges::any_of(listeners_, [&](const Listener* listener) {
        return listener->service() == service && listener->is_exclusive();
    });
}

/// Alternates between the listeners of a service.
Listener* Port::next_listener(const Service& service) noexcept {
    return support::take_turns(listeners_, [&](const Listener* listener) { return listener->service() == service; });
}

Connector* Port::find_connector(const HostAddress& host, const Service& service) const noexcept {
    const auto found = std::ranges::find_if(
        connectors_, [&](const Connector* connector) { return connector->expects(host, service); });
    return found == connectors_.end() ? nullptr : *found;
}

/// Accepts the clients that have connected, or one that is to be refused. WouldBlock: there are no more.
Status Port::greet_clients(bool refuses) noexcept {
    const auto self = std::static_pointer_cast<Port>(shared_from_this());
    return support::guarded([&]() -> Status {
        while (true) {
            auto socket = ControlSocket::accept(node_.policy(), socket_.get());
            if (!socket.ok()) return socket.status();
            Greeting::begin(node_, self, std::move(*socket), refuses);
            if (refuses) return {};
        }
    });
}

/// If resources are exhausted, one client learns that, and the others wait for a moment.
void Port::on_ready() noexcept {
    const auto keep = std::static_pointer_cast<Port>(shared_from_this());
    const Status status = greet_clients();
    if (status.code() == Code::WouldBlock) return;
    turn_away(status.sys_errno() == EMFILE ? support::lack_of_descriptors.where() : status.where());
    reserve_.reset();
    if (!greet_clients(true).ok()) reserve_descriptor();
    node_.agent().unwatch(socket_.get());
    (void)support::guarded([&]() -> Status {
        node_.agent().call_at(Deadline::after(accept_pause), keep);
        return {};
    });
}

void Port::on_deadline() noexcept {
    if (!reserve_) reserve_descriptor();
    (void)support::guarded([this] { return node_.agent().watch(socket_.get(), shared_from_this()); });
}

/// Tells why a client was not served: on a port that is open to the network, as a warning at most once in a while.
void Port::turn_away(const char* why) noexcept {
    log(turned_away_.next(LogLevel::Info), "ofi: port %u: a client was turned away: %s", number_, why);
}

void Port::take(ControlSocket socket, const control::Request& request) {
    if (!(request.remote.host == node_.host())) {
        turn_away("its request is for another host");
        return take_leave(node_, std::move(socket), std::nullopt);
    }
    if (!(request.end.provider == node_.engine().provider())) {
        turn_away("it uses another provider of libfabric");
        return take_leave(node_, std::move(socket), control::ProviderMismatch{.provider = node_.engine().provider()});
    }
    if (request.model == ConnectParameters::Model::PeerToPeer) {
        if (Connector* connector = find_connector(socket.peer_host(), request.remote.service))
            return connector->on_peer(std::move(socket), request);
    } else if (Listener* listener = next_listener(request.remote.service)) {
        return listener->add(std::make_unique<ConnectionRequest>(listener->node(), std::move(socket), request));
    }
    take_leave(node_, std::move(socket), control::NoListener{});
}

// ---- Listeners ---------------------------------------------------------------------------------------------------

Result<std::unique_ptr<viaduct::Listener>> Listener::create(std::shared_ptr<Node> node, const Address& local,
                                                            Sharing sharing) {
    std::unique_ptr<Listener> listener(new Listener(std::move(node), local.service));
    const Node::Guard guard(*listener->node_);
    auto port = Port::get(*listener->node_, support::port_for(local.service));
    if (!port.ok()) return port.status();
    if ((*port)->is_exclusive(local.service) || (sharing == Sharing::Exclusive && (*port)->serves(local.service)))
        return Status(Code::Busy, "the service has a listener");
    listener->exclusive_ = sharing == Sharing::Exclusive;
    (*port)->add(*listener);
    listener->port_ = std::move(*port);
    return std::unique_ptr<viaduct::Listener>(std::move(listener));
}

Listener::~Listener() {
    const Node::Guard guard(*node_);
    const std::shared_ptr<Port> port = std::exchange(port_, nullptr);  // destroyed before the lock is released
    if (port == nullptr) return;
    for (const auto& request : requests_) (void)request->answer(control::NoListener{});
    requests_.clear();
    port->remove(*this);
}

int Listener::fd() const noexcept {
    const Node::Guard guard(*node_);
    return flag_.fd();
}

void Listener::add(std::unique_ptr<ConnectionRequest> request) {
    if (requests_.size() >= max_waiting) {
        port_->turn_away("too many requests wait for the listener");
        (void)request->answer(control::NoListener{});
        return;
    }
    requests_.push_back(std::move(request));
    flag_.set(true);
}

Result<std::unique_ptr<viaduct::ConnectionRequest>> Listener::next_request() noexcept {
    const Node::Guard guard(*node_);
    while (!requests_.empty()) {
        std::unique_ptr<ConnectionRequest> request = std::move(requests_.front());
        requests_.pop_front();
        flag_.set(!requests_.empty());
        if (request->is_wanted()) return std::unique_ptr<viaduct::ConnectionRequest>(std::move(request));
    }
    return Status(Code::WouldBlock, "no request is pending");
}

}  // namespace viaduct::ofi
