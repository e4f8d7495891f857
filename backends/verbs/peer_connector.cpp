// SPDX-License-Identifier: BSD-3-Clause
#include "backends/verbs/peer_connector.hpp"

#include "backends/support/guarded.hpp"
#include "backends/verbs/endpoint.hpp"
#include "backends/verbs/nic.hpp"
#include "core/base/outcome.hpp"
#include "core/base/socket_address.hpp"

namespace viaduct::verbs {

PeerConnector::PeerConnector(Nic& nic, Endpoint& endpoint, const ConnectParameters& parameters)
    : nic_(nic),
      endpoint_(endpoint),
      parameters_(parameters),
      port_(support::peer_to_peer_port(nic.host(), parameters.remote.host, parameters.remote.service)),
      retry_(parameters) {}

Result<std::shared_ptr<PeerConnector>> PeerConnector::begin(Nic& nic, Endpoint& endpoint,
                                                            const ConnectParameters& parameters) {
    std::shared_ptr<PeerConnector> made(new PeerConnector(nic, endpoint, parameters));
    Status status = made->renew_link(parameters.deadline);
    if (status.ok()) status = made->choose_role();
    if (status.ok()) status = made->start();
    if (!status.ok()) return status;
    return made;
}

PeerConnector::~PeerConnector() { stop_listening(); }

bool PeerConnector::on_one_host() const noexcept { return parameters_.remote.host == nic_.host(); }

/// Listens on the port if it is free. On one host, this decides the role.
Status PeerConnector::choose_role() {
    const auto known = nic_.ports().find(port_);
    const Handshake request{.kind = Handshake::Kind::PeerRequest,
                            .service = support::fingerprint(parameters_.remote.service)};
    const bool peer_here =
        on_one_host() && known != nic_.ports().end() && known->second->find_peer(nic_.host(), request) != nullptr;
    role_ = Role::Active;
    if (peer_here) return {};
    const auto port = ListeningPort::get(nic_, port_);
    if (!port.ok()) return on_one_host() && port.status().code() == Code::Busy ? Status() : port.status();
    listening_ = true;  // before it is added, so that it leaves the port if that fails
    port.value()->add(*this);
    if (on_one_host() || support::is_lower(nic_.host(), parameters_.remote.host)) role_ = Role::Passive;
    return {};
}

Status PeerConnector::start() {
    if (role_ == Role::Active || !on_one_host()) return request_peer();
    link_->set_deadline(parameters_.deadline);  // for the peer, which comes by itself
    return {};
}

/// Calls a function that returns a Status. If it fails, the attempt ends.
template <class Step>
void PeerConnector::go_on(Step step) noexcept {
    const auto self = shared_from_this();
    if (const Status status = support::guarded(step); !status.ok()) endpoint_.end_attempt(failed_attempt(status));
}

void PeerConnector::stop_listening() noexcept {
    if (!std::exchange(listening_, false)) return;
    nic_.ports().find(port_)->second->remove(*this);
    ListeningPort::close_if_unused(nic_, port_);
}

void PeerConnector::lose_port() noexcept {
    const auto self = shared_from_this();
    listening_ = false;
    endpoint_.end_attempt({.kind = ConnectionEventKind::Unreachable, .why = "the port was lost"});
}

bool PeerConnector::expects(const HostAddress& host, const Handshake& handshake) const noexcept {
    const Role wanted = handshake.kind == Handshake::Kind::Probe ? Role::Active : Role::Passive;
    return role_ == wanted && parameters_.remote.host == host &&
           support::fingerprint(parameters_.remote.service) == handshake.service;
}

void PeerConnector::on_peer_request(CmEvent& event, const Handshake& handshake) noexcept {
    const auto self = shared_from_this();
    endpoint_.accept_peer(event, handshake);
}

void PeerConnector::on_probe() noexcept {
    probed_ = true;
    if (!requesting_) go_on([this] { return request_peer(); });
}

void PeerConnector::on_refusal(bool nobody) noexcept {
    requesting_ = false;
    const bool will_probe = nobody && !on_one_host();
    go_on([&] {
        const Status status = renew_link(will_probe ? parameters_.deadline : retry_.next());
        return status.ok() && probed_ ? request_peer() : status;
    });
}

/// For the next request; on_deadline() is called at the deadline.
Status PeerConnector::renew_link(const Deadline& deadline) { return Link::renew(link_, nic_.agent(), *this, deadline); }

/// Starts a request or a probe: resolves the address, and on_event() continues. If that fails at once, tries again
/// later.
Status PeerConnector::request_peer() {
    probed_ = false;
    SocketAddress from(nic_.host(), 0);
    SocketAddress to(parameters_.remote.host, port_);
    requesting_ = rdma_resolve_addr(link_->id(), from.get(), to.get(), resolution_ms) == 0;
    if (!requesting_) return renew_link(retry_.next());
    link_->set_deadline(parameters_.deadline);
    return {};
}

void PeerConnector::on_event(CmEvent& event) noexcept {
    const auto self = shared_from_this();
    switch (event.type) {
        case RDMA_CM_EVENT_ADDR_RESOLVED:
            if (unforked<rdma_resolve_route>(link_->id(), resolution_ms) != 0) on_refusal(false);
            break;
        case RDMA_CM_EVENT_ROUTE_RESOLVED:
            if (role_ == Role::Active)
                endpoint_.request_peer(link_);
            else if (!endpoint_.probe(*link_))
                on_refusal(false);
            break;
        case RDMA_CM_EVENT_ADDR_ERROR:
        case RDMA_CM_EVENT_ROUTE_ERROR:
        case RDMA_CM_EVENT_UNREACHABLE:
        case RDMA_CM_EVENT_CONNECT_ERROR: on_refusal(false); break;
        case RDMA_CM_EVENT_REJECTED:
            // The peer's system attributes all probes of this host to one queue pair, and accepts one at a time.
            if (event.status == stale_connection) on_refusal(false);
            break;
        case RDMA_CM_EVENT_DEVICE_REMOVAL:
            endpoint_.end_attempt({.kind = ConnectionEventKind::Unreachable, .why = device_removed});
            break;
        default: break;
    }
}

void PeerConnector::on_deadline(Link&) noexcept {
    if (parameters_.deadline.passed()) {
        const auto self = shared_from_this();
        endpoint_.end_attempt(
            {.kind = ConnectionEventKind::TimedOut, .why = "the peer did not connect within the time"});
        return;
    }
    go_on([this] {
        const Status status = listening_ ? Status() : choose_role();
        return status.ok() ? start() : status;
    });
}

}  // namespace viaduct::verbs
