// SPDX-License-Identifier: BSD-3-Clause
#include "backends/software/connector.hpp"

#include <cerrno>

#include "backends/software/endpoint.hpp"
#include "backends/support/guarded.hpp"
#include "backends/support/interfaces.hpp"
#include "backends/support/services.hpp"
#include "core/base/address_text.hpp"
#include "core/base/outcome.hpp"
#include "core/log.hpp"
#include "core/reason.hpp"

namespace viaduct::software {

Connector::Connector(Endpoint& endpoint, const ConnectParameters& parameters) noexcept
    : node_(endpoint.node()), endpoint_(&endpoint), parameters_(parameters), retry_(parameters) {}

Result<std::shared_ptr<Connector>> Connector::start(Endpoint& endpoint, const ConnectParameters& parameters) {
    auto connector = std::make_shared<Connector>(endpoint, parameters);
    if (const Status status = connector->attempt(); !status.ok()) {
        connector->stop();
        return status;
    }
    endpoint.node().agent().call_at(parameters.deadline, connector);
    return connector;
}

std::uint16_t Connector::port() const noexcept {
    return peer_to_peer()
               ? support::peer_to_peer_port(node_.host(), parameters_.remote.host, parameters_.remote.service)
               : support::port_for(parameters_.remote.service);
}

/// Sends the request over a link, or waits for the peer to do so.
Status Connector::attempt() {
    withdraw();
    if (peer_to_peer()) {
        const bool passive = on_one_host() || support::is_lower(node_.host(), parameters_.remote.host);
        if (passive) {
            if (const Status route = node_.transport().find_route(parameters_.remote.host); !route.ok()) return route;
            const Status waiting = wait_for_peer();
            if (waiting.ok() || !on_one_host()) return waiting;  // the peer on this host waits for this one
        }
    }
    const auto link =
        node_.link_to(parameters_.remote.host, port(), std::exchange(needs_new_link_, false), link_is_new_);
    if (link.status().code() == Code::NoListener) {
        retry(true);
        return {};
    }
    if (!link.ok()) return link.status();
    if (link.value()->is_usable()) {
        ask(link.value());
    } else {
        link.value()->await(std::static_pointer_cast<Connector>(shared_from_this()));
        awaited_ = link.value();
    }
    return {};
}

void Connector::on_link(Link& link, const Status& status) noexcept {
    const auto keep = shared_from_this();
    if (endpoint_ == nullptr || awaited_.lock().get() != &link) return;
    awaited_.reset();
    if (status.ok()) return ask(std::static_pointer_cast<Link>(link.shared_from_this()));
    switch (status.code()) {
        case Code::NoListener: return retry(true);  // also if the listener was destroyed before it accepted
        case Code::Unreachable:
            if (status.sys_errno() == 0 || status.sys_errno() == ECONNRESET) return hung_up();
            return fail(status);
        default: return fail(status);
    }
}

void Connector::ask(const std::shared_ptr<Link>& link) noexcept {
    const Status asked = support::guarded([&]() -> Status {
        auto connection = Connection::create(node_);
        if (!connection.ok()) return connection.status();
        offered_ = std::move(*connection);
        offered_->request(*this, link,
                          {.model = parameters_.model,
                           .end = offered_->describe(*endpoint_),
                           .local = parameters_.local,
                           .remote = parameters_.remote,
                           .private_data = parameters_.private_data});
        return {};
    });
    if (!asked.ok()) fail(asked);
}

/// Busy: the peer already waits, in this or another process.
Status Connector::wait_for_peer() {
    const std::uint16_t number = port();
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
void Connector::retry(bool no_listener) noexcept {
    withdraw();
    if (no_listener && !peer_to_peer() && retry_.is_over()) return no_listener_found();
    pausing_ = true;
    const Status status = support::guarded([&]() -> Status {
        node_.agent().call_at(retry_.next(), shared_from_this());
        return {};
    });
    if (!status.ok()) fail(status);
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

Status Connector::on_answer(FrameKind kind, std::span<const std::byte> body) noexcept {
    const auto keep = shared_from_this();
    offered_.reset();
    switch (kind) {
        case FrameKind::Rejected: {
            Rejected rejected;
            if (const Status status = decode(body, rejected); !status.ok()) return status;
            finish({.kind = ConnectionEventKind::Rejected,
                    .private_data = rejected.private_data,
                    .why = explain("the program that listens on %s rejected the request",
                                   text_of(parameters_.remote.host).c_str())});
            return {};
        }
        case FrameKind::Conflict: {
            Conflict conflict;
            if (const Status status = decode(body, conflict); !status.ok()) return status;
            finish(viaduct::conflict(compatible(endpoint_->attributes(), conflict.attributes), conflict.attributes));
            return {};
        }
        case FrameKind::NoListener:
            if (!ask_over_new_link()) retry(true);
            return {};
        case FrameKind::NoResources:
            if (retry_.is_over())
                fail({Code::Unreachable, explain("the server %s has too few free descriptors (RLIMIT_NOFILE)",
                                                 text_of(parameters_.remote).c_str())});
            else
                retry(true);
            return {};
        case FrameKind::Dropped: dropped(); return {};
        default: return {Code::InvalidParameter, "the peer sends an unexpected message"};
    }
}

void Connector::established(const Accepted& accepted) noexcept {
    const auto keep = shared_from_this();
    ConnectionEvent event{.kind = ConnectionEventKind::Established,
                          .remote = accepted.end.attributes,
                          .remote_address = parameters_.remote,
                          .private_data = accepted.private_data};
    if (!accepted.service.empty()) event.remote_address.service = accepted.service;
    const std::shared_ptr<Connection> connection = std::exchange(offered_, nullptr);
    connection->open(*endpoint_, nullptr, accepted.end);
    endpoint_->establish(connection);
    finish(event);
}

/// The request of the peer of a peer-to-peer connection has arrived.
void Connector::on_peer(const std::shared_ptr<Link>& link, const Connect& request) noexcept {
    const auto keep = shared_from_this();
    const Status status = support::guarded([&]() -> Status {
        ConnectionEvent event{.kind = ConnectionEventKind::Established,
                              .remote = request.end.attributes,
                              .remote_address = request.local,
                              .private_data = request.private_data};
        if (const Status matches = compatible(endpoint_->attributes(), request.end.attributes); !matches.ok()) {
            link->tell(request.end.connection, Conflict{.attributes = endpoint_->attributes()});
            finish(conflict(matches, event.remote));
            return {};
        }
        auto connection = Connection::create(node_);
        if (!connection.ok()) return connection.status();
        const std::shared_ptr<Connection> accepted = std::move(*connection);
        const Accepted message{
            .end = accepted->describe(*endpoint_), .service = {}, .private_data = parameters_.private_data};
        accepted->open(*endpoint_, link, request.end);
        link->tell(request.end.connection, message);
        endpoint_->establish(accepted);
        finish(event);
        return {};
    });
    if (!status.ok() && endpoint_ != nullptr) fail(status);
}

/// The listener has closed its device without an answer, so wait for the deadline (VIPL guide, section 3.3.4). Servers
/// of the other APIs may be back in a moment.
void Connector::dropped() noexcept {
    constexpr const char* why = "the server dropped the request";
    if (parameters_.ends_if_dropped && !retry_.is_over()) return retry(true);
    if (parameters_.ends_if_dropped) return finish({.kind = ConnectionEventKind::Unreachable, .why = why});
    if (parameters_.deadline.infinite())
        return finish({.kind = ConnectionEventKind::Rejected, .reason = Code::NoListener, .why = why});
}

/// The listener has closed the socket without an answer: its process has ended, or the port belongs to another program.
/// Without a request, it may have been destroyed before it accepted, like those that are there only at times.
void Connector::hung_up() noexcept {
    const auto keep = shared_from_this();
    if (endpoint_ == nullptr) return;
    const bool asked = std::exchange(offered_, nullptr) != nullptr;
    if (asked && ask_over_new_link()) return;
    if (peer_to_peer()) return retry(false);
    if (!asked && !retry_.is_over()) return retry(true);
    finish({.kind = ConnectionEventKind::Rejected,
            .reason = Code::NoListener,
            .why = explain("%s closed the connection without an answer: its process ended, or it is another "
                           "program",
                           text_of(parameters_.remote).c_str())});
}

/// If the answer came over a link that was used before, another process may have the port now.
bool Connector::ask_over_new_link() noexcept {
    if (link_is_new_) return false;
    needs_new_link_ = true;
    const Status status = support::guarded([this] { return attempt(); });
    if (!status.ok()) fail(status);
    return true;
}

void Connector::no_listener_found() noexcept {
    finish({.kind = ConnectionEventKind::Rejected,
            .reason = Code::NoListener,
            .why = explain("%s has no listener (TCP port %u)", text_of(parameters_.remote).c_str(),
                           support::port_for(parameters_.remote.service))});
}

void Connector::timed_out() noexcept {
    const auto link = awaited_.lock();
    const bool connecting = link != nullptr && link->is_connecting();
    const char* const state = connecting ? "the host did not answer" : "the program took no decision";
    finish({.kind = ConnectionEventKind::TimedOut,
            .why = explain("%s did not accept within the time: %s", text_of(parameters_.remote).c_str(),
                           peer_to_peer() ? "the peer did not connect" : state)});
}

/// Keys are the business of the administrator: these failures are also warnings.
void Connector::fail(const Status& status) noexcept {
    if (status.code() == Code::PermissionDenied)
        log(LogLevel::Warning, "%s: cannot connect: %s", node_.transport().name(), status.where());
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

/// The listener may have accepted the request: its connection was ended on purpose.
void Connector::withdraw() noexcept {
    if (const auto link = std::exchange(awaited_, {}).lock()) link->await_no_more(*this);
    if (const auto offered = std::exchange(offered_, nullptr)) offered->withdraw();
}

void Connector::stop() noexcept {
    endpoint_ = nullptr;
    node_.agent().cancel_call(parameters_.deadline, weak_from_this());
    withdraw();
    if (const auto port = std::exchange(port_, nullptr)) port->remove(*this);
}

}  // namespace viaduct::software
