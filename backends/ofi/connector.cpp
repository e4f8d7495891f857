// SPDX-License-Identifier: BSD-3-Clause
#include "backends/ofi/connector.hpp"

#include <cerrno>

#include "backends/ofi/endpoint.hpp"
#include "backends/ofi/farewell.hpp"
#include "backends/support/guarded.hpp"
#include "backends/support/interfaces.hpp"
#include "backends/support/services.hpp"
#include "core/base/address_text.hpp"
#include "core/base/outcome.hpp"
#include "core/log.hpp"
#include "core/reason.hpp"

namespace viaduct::ofi {
namespace {

using namespace std::chrono_literals;

/// The first pause before connecting again. The pause is doubled each time, up to the last one.
constexpr std::chrono::milliseconds first_pause = 1ms;
constexpr std::chrono::milliseconds last_pause = 50ms;

}  // namespace

Connector::Connector(Endpoint& endpoint, const ConnectParameters& parameters) noexcept
    : node_(endpoint.node()),
      endpoint_(&endpoint),
      parameters_(parameters),
      grace_(std::min(Deadline::after(parameters.grace), parameters.deadline)),
      pause_(first_pause) {}

Result<std::shared_ptr<Connector>> Connector::start(Endpoint& endpoint, const ConnectParameters& parameters) {
    auto connector = std::make_shared<Connector>(endpoint, parameters);
    if (const Status status = connector->attempt(); !status.ok()) {
        connector->stop();
        return status;
    }
    endpoint.node().agent().call_at(parameters.deadline, connector);
    return connector;
}

/// Connects a socket, or waits for the peer to do so.
Status Connector::attempt() {
    close_socket();
    challenged_ = false;
    if (peer_to_peer()) {
        const bool passive = on_one_host() || support::is_lower(node_.host(), parameters_.remote.host);
        if (passive) {
            if (const auto source = support::source_for(parameters_.remote.host); !source.ok()) return source.status();
            const Status waiting = wait_for_peer();
            if (waiting.ok() || !on_one_host()) return waiting;  // the peer on this host waits for this one
        }
    }
    const std::uint16_t port =
        peer_to_peer() ? support::peer_to_peer_port(node_.host(), parameters_.remote.host, parameters_.remote.service)
                       : support::port_for(parameters_.remote.service);
    auto socket = ControlSocket::connect(node_.policy(), node_.host(), parameters_.remote.host, port);
    if (!socket.ok() && socket.status().code() == Code::NoListener) {
        retry(true);
        return {};
    }
    if (!socket.ok()) return socket.status();
    socket_ = std::move(*socket);
    connecting_ = true;
    return node_.agent().watch(socket_.fd(), shared_from_this(), Agent::Until::Writable);
}

/// Busy: the peer already waits, in this or another process.
Status Connector::wait_for_peer() {
    const std::uint16_t number =
        support::peer_to_peer_port(node_.host(), parameters_.remote.host, parameters_.remote.service);
    const auto known = node_.ports().find(number);
    if (on_one_host() && known != node_.ports().end() &&
        known->second->find_connector(node_.host(), parameters_.remote.service) != nullptr)
        return {Code::Busy, "the peer waits"};
    auto port = Port::get(node_, number);
    if (!port.ok()) return port.status();
    (*port)->add(*this);
    port_ = std::move(*port);
    return {};
}

bool Connector::expects(const HostAddress& host, const Service& service) const noexcept {
    return parameters_.remote.host == host && parameters_.remote.service == service;
}

/// Starts another attempt after a pause. Without a listener, this ends with the grace period.
void Connector::retry(bool no_listener) {
    close_socket();
    if (no_listener && !peer_to_peer() && grace_.passed()) return no_listener_found();
    pausing_ = true;
    const Deadline next = Deadline::after(pause_);
    node_.agent().call_at(peer_to_peer() ? next : std::min(next, grace_), shared_from_this());
    pause_ = std::min(2 * pause_, last_pause);
}

void Connector::on_deadline() noexcept {
    const auto keep = shared_from_this();
    if (endpoint_ == nullptr) return;
    const bool no_listener = pausing_ && !peer_to_peer();
    if (parameters_.deadline.passed() && no_listener) return no_listener_found();
    if (parameters_.deadline.passed()) return timed_out();
    if (!std::exchange(pausing_, false)) return;
    endpoint_->count_retry();
    const Status status = support::guarded([this] { return attempt(); });
    if (!status.ok()) fail(status);
}

void Connector::on_ready() noexcept {
    const auto keep = shared_from_this();
    if (endpoint_ == nullptr) return;
    const Status status = support::guarded([this]() -> Status {
        if (connecting_) {
            on_connected();
            return {};
        }
        while (socket_) {
            auto message = socket_.receive();
            if (message.status().code() == Code::Unreachable) {
                hung_up();
                return {};
            }
            if (!message.ok()) return message.status();
            if (!message.value()) return {};
            on_message(*message.value());
        }
        return {};
    });
    if (!status.ok() && endpoint_ != nullptr) fail(status);
}

void Connector::on_connected() {
    connecting_ = false;
    switch (const int error = socket_.error()) {
        case 0: break;
        case ECONNREFUSED:
        case ECONNRESET: return retry(true);  // the listener was destroyed before it accepted
        default: return fail(Status::from_errno(error, "connect"));
    }
    if (const Status status = node_.agent().watch(socket_.fd(), shared_from_this()); !status.ok()) return fail(status);
}

void Connector::on_message(const control::Message& message) {
    if (std::holds_alternative<control::Challenge>(message)) {
        challenged_ = true;
        if (offered_ == nullptr) {
            auto offered = Connection::create(node_);
            if (!offered.ok()) return fail(offered.status());
            offered_ = std::move(*offered);
        }
        const Status sent = socket_.send(control::Request{.nonce = {},
                                                          .model = parameters_.model,
                                                          .end = offered_->describe(*endpoint_),
                                                          .local = parameters_.local,
                                                          .remote = parameters_.remote,
                                                          .private_data = parameters_.private_data});
        if (!sent.ok()) fail(sent);
        return;
    }
    challenged_ = false;
    if (const auto* accepted = std::get_if<control::Accepted>(&message)) {
        established(*accepted);
    } else if (const auto* rejected = std::get_if<control::Rejected>(&message)) {
        finish({.kind = ConnectionEventKind::Rejected,
                .private_data = rejected->private_data,
                .why = explain("the program that listens on %s rejected the request",
                               text_of(parameters_.remote.host).c_str())});
    } else if (std::holds_alternative<control::NoListener>(message)) {
        retry(true);
    } else if (std::holds_alternative<control::NoResources>(message)) {
        if (!grace_.passed()) return retry(true);
        fail({Code::Unreachable, explain("the server %s has too few free descriptors (RLIMIT_NOFILE)",
                                         text_of(parameters_.remote).c_str())});
    } else if (std::holds_alternative<control::Closing>(message)) {
        dropped();
    } else if (const auto* conflict = std::get_if<control::Conflict>(&message)) {
        finish(viaduct::conflict(compatible(endpoint_->attributes(), conflict->attributes), conflict->attributes));
    } else if (const auto* mismatch = std::get_if<control::ProviderMismatch>(&message)) {
        fail({Code::PermissionDenied,
              explain("the peer uses libfabric's provider %.*s, this side another one; see VIADUCT_OFI_PROVIDER",
                      static_cast<int>(mismatch->provider.size()),
                      reinterpret_cast<const char*>(mismatch->provider.span().data()))});
    } else if (std::holds_alternative<control::AuthenticationFailed>(message)) {
        fail({Code::PermissionDenied, node_.policy().advice()});
    } else {
        fail({Code::InvalidParameter, "an unexpected control message"});
    }
}

void Connector::established(const control::Accepted& accepted) {
    ConnectionEvent event{.kind = ConnectionEventKind::Established,
                          .remote = accepted.end.attributes,
                          .remote_address = parameters_.remote,
                          .private_data = accepted.private_data};
    if (!accepted.service.empty()) event.remote_address.service = accepted.service;
    node_.agent().unwatch(socket_.fd());
    const std::shared_ptr<Connection> connection = std::exchange(offered_, nullptr);
    if (connection == nullptr) return fail({Code::InvalidParameter, "an answer without a request"});
    if (const Status status = connection->open(*endpoint_, accepted.end, std::move(socket_)); !status.ok())
        return fail(status);
    endpoint_->establish(connection);
    finish(event);
    connection->resume();                               // frames may have arrived before the answer
    static_cast<AgentClient&>(*connection).on_ready();  // and the end of the connection with it
}

/// The request of the peer of a peer-to-peer connection has arrived.
void Connector::on_peer(ControlSocket socket, const control::Request& request) noexcept {
    const auto keep = shared_from_this();
    const Status status = support::guarded([&]() -> Status {
        ConnectionEvent event{.kind = ConnectionEventKind::Established,
                              .remote = request.end.attributes,
                              .remote_address = request.local,
                              .private_data = request.private_data};
        if (const Status matches = compatible(endpoint_->attributes(), request.end.attributes); !matches.ok()) {
            take_leave(node_, std::move(socket), control::Conflict{.attributes = endpoint_->attributes()});
            finish(conflict(matches, event.remote));
            return {};
        }
        auto connection = Connection::create(node_);
        if (!connection.ok()) return connection.status();
        const std::shared_ptr<Connection> accepted = std::move(*connection);
        if (const Status opened = accepted->open(*endpoint_, request.end, std::move(socket)); !opened.ok())
            return opened;
        const control::Accepted message{
            .end = accepted->describe(*endpoint_), .service = {}, .private_data = parameters_.private_data};
        endpoint_->establish(accepted);
        finish(event);
        accepted->tell(message);
        return {};
    });
    if (!status.ok() && endpoint_ != nullptr) fail(status);
}

/// The listener has closed its device without an answer, so wait for the deadline (VIPL guide, section 3.3.4). Servers
/// of the other APIs may be back in a moment.
void Connector::dropped() {
    constexpr const char* why = "the server dropped the request";
    if (parameters_.ends_if_dropped && !grace_.passed()) return retry(true);
    if (parameters_.ends_if_dropped) return finish({.kind = ConnectionEventKind::Unreachable, .why = why});
    if (parameters_.deadline.infinite())
        return finish({.kind = ConnectionEventKind::Rejected, .reason = Code::NoListener, .why = why});
    close_socket();
}

/// The listener has closed the socket without an answer: its process has ended, or the port belongs to another program.
/// Without a challenge, it may have been destroyed before it accepted, like those that are there only at times.
void Connector::hung_up() {
    if (peer_to_peer()) return retry(false);
    if (!challenged_ && !grace_.passed()) return retry(true);
    finish({.kind = ConnectionEventKind::Rejected,
            .reason = Code::NoListener,
            .why = explain("%s closed the connection without an answer: its process ended, or it is another "
                           "program",
                           text_of(parameters_.remote).c_str())});
}

void Connector::no_listener_found() noexcept {
    finish({.kind = ConnectionEventKind::Rejected,
            .reason = Code::NoListener,
            .why = explain("%s has no listener (TCP port %u)", text_of(parameters_.remote).c_str(),
                           support::port_for(parameters_.remote.service))});
}

void Connector::timed_out() noexcept {
    const char* const state = connecting_ ? "the host did not answer" : "the program took no decision";
    finish({.kind = ConnectionEventKind::TimedOut,
            .why = explain("%s did not accept within the time: %s", text_of(parameters_.remote).c_str(),
                           peer_to_peer() ? "the peer did not connect" : state)});
}

/// Keys and providers are the business of the administrator: these failures are also warnings.
void Connector::fail(const Status& status) noexcept {
    if (status.code() == Code::PermissionDenied) log(LogLevel::Warning, "ofi: cannot connect: %s", status.where());
    const bool exhausted = status.code() == Code::NoResources;
    finish(
        {.kind = ConnectionEventKind::Unreachable, .reason = exhausted ? Code::NoResources : Code::Ok, .why = status});
}

void Connector::finish(const ConnectionEvent& event) noexcept {
    const auto keep = weak_from_this().lock();  // the endpoint drops its reference
    Endpoint& endpoint = *endpoint_;
    stop();
    endpoint.connecting_finished(event);
}

void Connector::close_socket() noexcept {
    if (socket_) node_.agent().unwatch(socket_.fd());
    socket_ = {};
    connecting_ = false;
}

/// The listener may have accepted the request: its connection was ended on purpose.
void Connector::withdraw() noexcept {
    if (!socket_ || !challenged_) return close_socket();
    node_.agent().unwatch(socket_.fd());
    take_leave(node_, std::move(socket_), control::Closing{.on_purpose = true});
}

void Connector::stop() noexcept {
    endpoint_ = nullptr;
    node_.agent().cancel_call(parameters_.deadline, weak_from_this());
    withdraw();
    offered_.reset();
    if (const auto port = std::exchange(port_, nullptr)) port->remove(*this);
}

}  // namespace viaduct::ofi
