// SPDX-License-Identifier: BSD-3-Clause
#include "backends/verbs/rendezvous.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <new>

#include "backends/verbs/endpoint.hpp"
#include "backends/verbs/interfaces.hpp"
#include "backends/verbs/nic.hpp"

namespace viaduct::verbs {
namespace {

using namespace std::chrono_literals;

/// A reason of InfiniBand's connection manager (IBTA, table 108).
constexpr int stale_connection = 10;

/// Until the next call where no knock will tell that it is worth it.
constexpr auto pause = 5ms;

bool is_lower(const HostAddress& one, const HostAddress& other) noexcept {
    return std::ranges::lexicographical_compare(one.span(), other.span());
}

/// The same for both ends, and that of no listener unless hashes collide.
std::uint16_t meeting_port(const HostAddress& one, const HostAddress& other, const Service& service) noexcept {
    const auto [lower, higher] = is_lower(one, other) ? std::pair(one, other) : std::pair(other, one);
    std::array<std::uint8_t, 2 * Address::max_host + Service::capacity> bytes{};
    auto end = std::ranges::copy(lower.span(), bytes.begin()).out;
    end = std::ranges::copy(higher.span(), end).out;
    end = std::ranges::copy(service.span(), end).out;
    return port_of_hash(fingerprint(std::span(bytes.begin(), end)));
}

}  // namespace

Rendezvous::Rendezvous(Nic& nic, Endpoint& endpoint, const backend::ConnectParameters& parameters)
    : nic_(nic),
      endpoint_(endpoint),
      parameters_(parameters),
      port_(meeting_port(nic.host(), parameters.remote.host, parameters.remote.service)) {}

Result<std::unique_ptr<Rendezvous>> Rendezvous::begin(Nic& nic, Endpoint& endpoint,
                                                      const backend::ConnectParameters& parameters) {
    std::unique_ptr<Rendezvous> made(new Rendezvous(nic, endpoint, parameters));
    made->hang_up(parameters.deadline);
    if (made->link_ == nullptr) return Status::from_errno(errno, "rdma_create_id");
    if (const Status status = made->take_role(); !status.ok()) return status;
    made->start();
    return made;
}

Rendezvous::~Rendezvous() { leave(); }

bool Rendezvous::on_one_host() const noexcept { return parameters_.remote.host == nic_.host(); }

/// Listens where the port can be had, which on one host decides who waits.
Status Rendezvous::take_role() {
    const auto known = nic_.ports().find(port_);
    const bool partner_here =
        on_one_host() && known != nic_.ports().end() &&
        known->second->find_rendezvous(nic_.host(), {.kind = Greeting::Kind::PeerRequest,
                                                     .service = fingerprint(parameters_.remote.service)}) != nullptr;
    role_ = Role::Calls;
    if (partner_here) return {};
    const auto port = ListeningPort::get(nic_, port_);
    if (!port.ok()) return on_one_host() && port.status().code() == Code::Busy ? Status() : port.status();
    port.value()->add(*this);
    listening_ = true;
    if (on_one_host() || is_lower(nic_.host(), parameters_.remote.host)) role_ = Role::Waits;
    return {};
}

void Rendezvous::start() {
    if (role_ == Role::Calls || !on_one_host()) call();
}

void Rendezvous::leave() noexcept {
    if (!std::exchange(listening_, false)) return;
    nic_.ports().find(port_)->second->remove(*this);
    ListeningPort::close_if_unused(nic_, port_);
}

void Rendezvous::lose_port() noexcept {
    listening_ = false;
    endpoint_.end_attempt({.kind = ConnectionEventKind::Unreachable});
}

bool Rendezvous::expects(const HostAddress& host, const Greeting& greeting) const noexcept {
    const Role wanted = greeting.kind == Greeting::Kind::Knock ? Role::Calls : Role::Waits;
    return role_ == wanted && parameters_.remote.host == host &&
           fingerprint(parameters_.remote.service) == greeting.service;
}

void Rendezvous::on_partner(ManagerEvent& event, const Greeting& greeting) noexcept { endpoint_.meet(event, greeting); }

void Rendezvous::on_knock() noexcept try {
    knocked_ = true;
    if (!calling_) call();
} catch (const std::bad_alloc&) {
    return;
}

void Rendezvous::on_refusal(bool nobody) noexcept try {
    calling_ = false;
    const bool will_knock = nobody && !on_one_host();
    const Deadline soon = Deadline::after(pause);
    hang_up(!will_knock && soon < parameters_.deadline ? soon : parameters_.deadline);
    if (knocked_) call();
} catch (const std::bad_alloc&) {
    return;  // without a link there is no deadline either, but the next knock
}

/// A fresh id for the next call.
void Rendezvous::hang_up(const Deadline& deadline) {
    link_.reset();
    auto id = create_id(nic_.agent().channel());
    if (!id.ok()) return;
    link_ = std::make_unique<Link>(nic_.agent(), std::move(*id), static_cast<LinkOwner&>(*this), deadline);
}

/// The partner's system knows all knocks of this host as one queue pair's, and takes one at a time.
void Rendezvous::on_refusal_of_knock() noexcept try {
    hang_up(parameters_.deadline);
    call();
} catch (const std::bad_alloc&) {
    return;
}

/// Begins a call or a knock: the way is looked for, and on_event() goes on.
void Rendezvous::call() {
    knocked_ = calling_ = false;
    if (link_ == nullptr) return;
    link_->set_deadline(parameters_.deadline);
    SocketAddress from(nic_.host(), 0);
    SocketAddress to(parameters_.remote.host, port_);
    calling_ = rdma_resolve_addr(link_->id(), from.get(), to.get(), resolution_ms) == 0;
}

void Rendezvous::on_event(ManagerEvent& event) noexcept {
    switch (event.type) {
        case RDMA_CM_EVENT_ADDR_RESOLVED:
            if (rdma_resolve_route(link_->id(), resolution_ms) != 0) on_refusal(false);
            break;
        case RDMA_CM_EVENT_ROUTE_RESOLVED:
            if (role_ == Role::Waits)
                endpoint_.knock(*link_);
            else
                endpoint_.call(link_);
            break;
        case RDMA_CM_EVENT_ADDR_ERROR:
        case RDMA_CM_EVENT_ROUTE_ERROR:
            if (role_ == Role::Calls) on_refusal(false);
            break;
        case RDMA_CM_EVENT_REJECTED:
            if (event.status == stale_connection) on_refusal_of_knock();
            break;
        case RDMA_CM_EVENT_DEVICE_REMOVAL: endpoint_.end_attempt({.kind = ConnectionEventKind::Unreachable}); break;
        default: break;  // what becomes of a knock is all the same
    }
}

void Rendezvous::on_deadline() noexcept try {
    if (parameters_.deadline.passed()) {
        endpoint_.end_attempt({.kind = ConnectionEventKind::TimedOut});
        return;
    }
    if (listening_ || take_role().ok()) start();
} catch (const std::bad_alloc&) {
    return;
}

}  // namespace viaduct::verbs
