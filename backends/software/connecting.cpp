// SPDX-License-Identifier: BSD-3-Clause
// How a connection comes about. The active side sends a request to a listener, or meets a peer, until there is an
// answer or the deadline passes.
#include <cerrno>

#include "backends/software/endpoint.hpp"
#include "backends/software/listener.hpp"
#include "backends/support/guarded.hpp"
#include "backends/support/services.hpp"
#include "core/base/address_text.hpp"
#include "core/base/outcome.hpp"
#include "core/base/retry.hpp"
#include "core/log.hpp"
#include "viaduct/reason.hpp"

namespace viaduct::software {

/// What the active side knows until the attempt has ended.
struct Connection::Attempt {
    Attempt(const Node& node, const ConnectParameters& wanted) noexcept
        : parameters(wanted),
          retry(wanted),
          peer_to_peer(wanted.model == ConnectParameters::Model::PeerToPeer),
          on_one_host(wanted.remote.host == node.host()),
          number(peer_to_peer ? support::peer_to_peer_port(node.host(), wanted.remote.host, wanted.remote.service)
                              : support::port_for(wanted.remote.service)) {}

    const ConnectParameters parameters;
    Retry retry;
    const bool peer_to_peer;
    const bool on_one_host;
    const std::uint16_t number;     // of the port
    std::weak_ptr<Link> awaited{};  // which is not usable yet
    bool link_is_new = false;       // the request is the first one over it
    bool needs_new_link = false;    // another process may have the port of the old one
    bool pausing = false;           // the next call starts another attempt
    std::shared_ptr<Port> port{};   // on which it waits for the peer
};

Connection::Connection(Node& node, Endpoint& owner) noexcept : node_(node), owner_(&owner) {}

Connection::~Connection() {
    end_attempt();
    release();
}

Status Connection::take_number() {
    const auto number = node_.add(self());
    if (!number.ok()) return number.status();
    number_ = number.value();
    has_number_ = true;
    return {};
}

/// Returns what the peer has to know of this end.
End Connection::describe() const noexcept {
    return {.connection = number_, .shares_receives = owner_->shares_receives(), .attributes = owner_->attributes()};
}

/// Starts to exchange frames. `link`: null if it is that of the request.
void Connection::open(const std::shared_ptr<Link>& link, const End& peer) noexcept {
    end_attempt();
    progress_ = Progress::Open;
    if (link != nullptr) {
        link_ = link;
        link_->join();
    }
    peer_number_ = peer.connection;
    peer_shares_receives_ = peer.shares_receives;
    remote_attributes_ = peer.attributes;
}

Status Connection::accept(const std::shared_ptr<Link>& link, const End& peer, const Service& answered_by,
                          const PrivateData& private_data, const ConnectionEvent& established) {
    if (const Status status = take_number(); !status.ok()) return status;
    open(link, peer);
    // Before what the program sends when it learns of the connection.
    link->tell(peer.connection, Accepted{.end = describe(), .service = answered_by, .private_data = private_data});
    owner_->establish(self(), established);
    return {};
}

// ---- Attempts ----------------------------------------------------------------------------------------------------

Status Connection::connect(const ConnectParameters& parameters) {
    attempt_ = std::make_unique<Attempt>(node_, parameters);
    node_.agent().call_at(parameters.deadline, *this);
    return attempt();
}

/// Sends the request over a link, or waits for the peer to do so.
Status Connection::attempt() {
    Attempt& now = *attempt_;
    const HostAddress& remote = now.parameters.remote.host;
    if (now.peer_to_peer && (now.on_one_host || support::is_lower(node_.host(), remote))) {
        if (const Status route = node_.transport().find_route(remote); !route.ok()) return route;
        const Status waiting = wait_for_peer();
        if (waiting.ok() || !now.on_one_host) return waiting;  // the peer on this host waits for this one
    }
    const auto link = node_.link_to(remote, now.number, std::exchange(now.needs_new_link, false), now.link_is_new);
    if (link.status().code() == Code::NoListener) {
        retry(true);
        return {};
    }
    if (!link.ok()) return link.status();
    if (link.value()->is_usable()) {
        ask(link.value());
    } else {
        link.value()->await(self());
        now.awaited = link.value();
    }
    return {};
}

void Connection::attempt_again() noexcept {
    const Status status = support::guarded([this] { return attempt(); });
    if (!status.ok()) fail(status);
}

void Connection::on_link(Link& link, const Status& status) noexcept {
    if (attempt_ == nullptr || attempt_->awaited.lock().get() != &link) return;
    attempt_->awaited.reset();
    if (status.ok()) return ask(std::static_pointer_cast<Link>(link.shared_from_this()));
    if (status.code() == Code::NoListener) return retry(true);  // also if it was destroyed before it accepted
    if (status.code() == Code::TimedOut) return attempt_again();  // the deadline decides how long
    if (status.sys_errno() == ECONNRESET || (status.code() == Code::Unreachable && status.sys_errno() == 0))
        return hung_up(false, status);
    fail(status);
}

void Connection::ask(const std::shared_ptr<Link>& link) noexcept {
    const Status numbered = support::guarded([this] { return take_number(); });
    if (!numbered.ok()) return fail(numbered);
    const ConnectParameters& parameters = attempt_->parameters;
    link_ = link;
    link_->join();
    progress_ = Progress::Asked;
    link_->tell(0, Connect{.model = parameters.model,
                           .end = describe(),
                           .local = parameters.local,
                           .remote = parameters.remote,
                           .private_data = parameters.private_data});
}

/// Busy: the peer already waits, in this or another process.
Status Connection::wait_for_peer() {
    const auto known = node_.ports().find(attempt_->number);
    if (attempt_->on_one_host && known != node_.ports().end() &&
        known->second->find_peer(node_.host(), attempt_->parameters.remote.service) != nullptr)
        return {Code::Busy, "the peer waits"};
    auto port = Port::get(node_, attempt_->number);
    if (!port.ok()) return port.status();
    attempt_->port = *port;  // which it closes if it cannot be added
    (*port)->add(*this);
    return {};
}

bool Connection::expects(const HostAddress& host, const Service& service) const noexcept {
    return attempt_->parameters.remote.host == host && attempt_->parameters.remote.service == service;
}

/// Starts another attempt after a pause. Without a listener, this ends with the grace period.
void Connection::retry(bool no_listener) noexcept {
    Attempt& now = *attempt_;
    if (no_listener && !now.peer_to_peer && now.retry.is_over()) return no_listener_found();
    now.pausing = true;
    const Status status = support::guarded([&] { node_.agent().call_at(now.retry.next(), *this); });
    if (!status.ok()) fail(status);
}

void Connection::on_deadline() noexcept {
    if (attempt_ == nullptr) return;
    if (attempt_->parameters.deadline.passed())
        return attempt_->pausing && !attempt_->peer_to_peer ? no_listener_found() : timed_out();
    if (!std::exchange(attempt_->pausing, false)) return;
    owner_->count_retry();
    const Status status = support::guarded([this] {
        node_.agent().call_at(attempt_->parameters.deadline, *this);
        return attempt();
    });
    if (!status.ok()) fail(status);
}

// ---- Outcomes ----------------------------------------------------------------------------------------------------

void Connection::established(const Accepted& accepted) noexcept {
    ConnectionEvent event{.kind = ConnectionEventKind::Established,
                          .remote = accepted.end.attributes,
                          .remote_address = attempt_->parameters.remote,
                          .private_data = accepted.private_data};
    if (!accepted.service.empty()) event.remote_address.service = accepted.service;
    open(nullptr, accepted.end);
    owner_->establish(self(), event);
}

/// The request of the peer of a peer-to-peer connection has arrived.
void Connection::on_peer(const std::shared_ptr<Link>& link, const Connect& request) noexcept {
    const ConnectionEvent event{.kind = ConnectionEventKind::Established,
                                .remote = request.end.attributes,
                                .remote_address = request.local,
                                .private_data = request.private_data};
    if (const Status matches = compatible(owner_->attributes(), event.remote); !matches.ok()) {
        link->tell(request.end.connection, Conflict{.attributes = owner_->attributes()});
        return finish(conflict(matches, event.remote));
    }
    const Status status = support::guarded([&] {
        const PrivateData private_data = attempt_->parameters.private_data;  // a copy: accept() ends the attempt
        return accept(link, request.end, {}, private_data, event);
    });
    if (status.ok()) return;
    link->tell(request.end.connection, NoResources{});
    fail(status);
}

/// Handles an answer other than Accepted.
Status Connection::refused(FrameKind kind, std::span<const std::byte> body) noexcept {
    const Address& remote = attempt_->parameters.remote;
    switch (kind) {
        case FrameKind::Rejected: {
            Rejected rejected;
            if (const Status status = decode(body, rejected); !status.ok()) return status;
            finish(
                {.kind = ConnectionEventKind::Rejected,
                 .private_data = rejected.private_data,
                 .why = explain("the program that listens on %s rejected the request", text_of(remote.host).c_str())});
            return {};
        }
        case FrameKind::Conflict: {
            Conflict conflict;
            if (const Status status = decode(body, conflict); !status.ok()) return status;
            finish(viaduct::conflict(compatible(owner_->attributes(), conflict.attributes), conflict.attributes));
            return {};
        }
        case FrameKind::NoListener:
            if (!ask_over_new_link()) retry(true);
            return {};
        case FrameKind::NoResources:
            if (attempt_->retry.is_over())
                fail({Code::Unreachable,
                      explain("the server %s has too few free descriptors (RLIMIT_NOFILE)", text_of(remote).c_str())});
            else
                retry(true);
            return {};
        case FrameKind::Dropped: dropped(); return {};
        default: return {Code::InvalidParameter, "the peer sends an unexpected message"};
    }
}

/// The listener has closed its device without an answer, so wait for the deadline (VIPL guide, section 3.3.4). Servers
/// of the other APIs may be back in a moment.
void Connection::dropped() noexcept {
    constexpr const char* why = "the server dropped the request";
    const ConnectParameters& parameters = attempt_->parameters;
    if (parameters.ends_if_dropped && !attempt_->retry.is_over()) return retry(true);
    if (parameters.ends_if_dropped) return finish({.kind = ConnectionEventKind::Unreachable, .why = why});
    if (parameters.deadline.infinite())
        return finish({.kind = ConnectionEventKind::Rejected, .reason = Code::NoListener, .why = why});
}

/// The listener has closed the socket without an answer: its process has ended, or the port belongs to another program.
/// Without a request, it may have been destroyed before it accepted, like those that are there only at times.
void Connection::hung_up(bool asked, const Status& why) noexcept {
    if (asked && ask_over_new_link()) return;
    if (attempt_->peer_to_peer) return retry(false);
    if (!asked && !attempt_->retry.is_over()) return retry(true);
    if (why.code() == Code::PermissionDenied) return fail(why);
    finish({.kind = ConnectionEventKind::Rejected,
            .reason = Code::NoListener,
            .why = explain("%s closed the connection without an answer: its process ended, or it is another "
                           "program",
                           text_of(attempt_->parameters.remote).c_str())});
}

/// If the answer came over a link that was used before, another process may have the port now.
bool Connection::ask_over_new_link() noexcept {
    if (attempt_->link_is_new) return false;
    attempt_->needs_new_link = true;
    attempt_again();
    return true;
}

void Connection::no_listener_found() noexcept {
    finish({.kind = ConnectionEventKind::Rejected,
            .reason = Code::NoListener,
            .why = explain("%s has no listener (TCP port %u)", text_of(attempt_->parameters.remote).c_str(),
                           attempt_->number)});
}

void Connection::timed_out() noexcept {
    const auto link = attempt_->awaited.lock();
    const bool connecting = link != nullptr && link->is_connecting();
    const char* const state = connecting ? "the host did not answer" : "the program took no decision";
    finish({.kind = ConnectionEventKind::TimedOut,
            .why = explain("%s did not accept within the time: %s", text_of(attempt_->parameters.remote).c_str(),
                           attempt_->peer_to_peer ? "the peer did not connect" : state)});
}

/// Keys are the business of the administrator: these failures are also warnings.
void Connection::fail(const Status& status) noexcept {
    if (status.code() == Code::PermissionDenied)
        log(LogLevel::Warning, "%s: cannot connect: %s", node_.transport().name(), status.where());
    finish(failed_attempt(status));
}

void Connection::finish(const ConnectionEvent& event) noexcept {
    const auto keep = shared_from_this();  // the endpoint drops its reference
    Endpoint& endpoint = *owner_;
    end(true, CompletionCode::Success);
    endpoint.attempt_failed(event);
}

void Connection::end_attempt() noexcept {
    const auto ended = std::exchange(attempt_, nullptr);
    if (ended == nullptr) return;
    node_.agent().cancel(*this);
    if (const auto link = ended->awaited.lock()) link->await_no_more(*this);
    if (ended->port != nullptr) ended->port->remove(*this);
}

}  // namespace viaduct::software
