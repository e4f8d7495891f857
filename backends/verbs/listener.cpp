// SPDX-License-Identifier: BSD-3-Clause
#include "backends/verbs/listener.hpp"

#include <algorithm>
#include <cerrno>
#include <new>

#include "backends/support/guarded.hpp"
#include "backends/verbs/endpoint.hpp"
#include "backends/verbs/nic.hpp"
#include "backends/verbs/peer_connector.hpp"
#include "core/base/socket_address.hpp"
#include "core/log.hpp"
#include "viaduct/detail/mutex.hpp"

namespace viaduct::verbs {
namespace {

/// How many requests may wait for the connection manager, and for a listener.
constexpr int backlog = 1024;

}  // namespace

Status refuse(rdma_cm_id* id, const Handshake& handshake) noexcept {
    const auto answer = EncodedHandshake::encode(handshake);
    if (!answer) return {Code::InvalidParameter, "the private data are too long for an answer"};
    if (rdma_reject(id, answer->data(), answer->size()) == 0) return {};
    const Status status = unanswered("rdma_reject");
    log(LogLevel::Info, "verbs: cannot refuse a request: %s", Reason(status).c_str());
    return status;
}

Request::Request(std::shared_ptr<Nic> nic, CmEvent event, const Handshake& handshake)
    : nic_(std::move(nic)), event_(std::move(event)), handshake_(handshake) {
    const sockaddr* peer = rdma_get_peer_addr(event_.id.get());
    remote_address_.host = host_of(peer);
    remote_address_.service = handshake.framed ? handshake.local_service : service_of(port_of(peer));
    link_ = Link::create(nic_->agent(), std::move(event_.id), *this);
}

/// A request without a link may be destroyed with the lock held.
Request::~Request() {
    if (link_ == nullptr) return;
    const LockGuard lock(nic_->control());
    if (!given_up() && !refused_) nic_->agent().keep_dropped(std::move(link_));
    link_.reset();
}

Status Request::accept(backend::Endpoint& endpoint, const PrivateData& private_data) noexcept {
    return support::guarded([&]() -> Status {
        const LockGuard lock(nic_->control());
        if (link_ == nullptr) return {Code::TimedOut, "the peer has given up"};
        return static_cast<Endpoint&>(endpoint).accept(link_, event_, handshake_, private_data);
    });
}

Status Request::refuse_with(const Handshake& answer) noexcept {
    const LockGuard lock(nic_->control());
    return refuse(answer);
}

Status Request::refuse(Handshake answer) noexcept {
    if (link_ == nullptr) return {};
    answer.framed = handshake_.framed;
    const Status status = verbs::refuse(link_->id(), answer);
    if (status.code() == Code::InvalidParameter) return status;
    refused_ = true;
    if (status.code() == Code::NoResources) return status;
    link_.reset();
    return {};
}

Result<std::unique_ptr<ListeningPort>> ListeningPort::open(Nic& nic, std::uint16_t port) {
    std::unique_ptr<ListeningPort> made(new ListeningPort(nic, port));
    auto id = create_id(nic.agent().channel());
    if (!id.ok()) return id.status();
    SocketAddress address(nic.host(), port);
    made->link_ = Link::create(nic.agent(), std::move(*id), *made);
    if (unforked<rdma_bind_addr>(made->link_->id(), address.get()) != 0 || rdma_listen(made->link_->id(), backlog) != 0)
        return is_port_in_use(errno) ? Status(Code::Busy, "the port already has a listener", errno)
                                     : Status::from_errno(errno, "rdma_listen");
    return made;
}

Result<ListeningPort*> ListeningPort::get(Nic& nic, std::uint16_t port) {
    auto& ports = nic.ports();
    if (const auto found = ports.find(port); found != ports.end()) return found->second.get();
    auto opened = open(nic, port);
    if (!opened.ok()) return opened.status();
    return ports.emplace(port, std::move(*opened)).first->second.get();
}

void ListeningPort::close_if_unused(Nic& nic, std::uint16_t port) noexcept {
    const auto found = nic.ports().find(port);
    if (found->second->is_unused()) nic.ports().erase(found);
}

bool ListeningPort::serves(std::uint64_t service) const noexcept {
    return std::ranges::any_of(listeners_, [&](const Listener* listener) { return listener->service() == service; });
}

/// Returns the service of a request that does not name one: the port's own service or, if that has no listener, the
/// service of any listener on the port.
std::uint64_t ListeningPort::bare_service() const noexcept {
    const std::uint64_t service = support::fingerprint(service_of(port_));
    return serves(service) || listeners_.empty() ? service : listeners_.front()->service();
}

void ListeningPort::on_event(CmEvent& event) noexcept try {
    if (event.type == RDMA_CM_EVENT_DEVICE_REMOVAL) return on_removal();
    if (event.type != RDMA_CM_EVENT_CONNECT_REQUEST) return;
    const Handshake handshake = decode(event.private_data.span());
    switch (handshake.kind) {
        case Handshake::Kind::PeerRequest: on_peer(event, handshake); break;
        case Handshake::Kind::Probe: on_probe(event, handshake); break;
        default: on_request(event, handshake); break;
    }
} catch (const std::bad_alloc&) {
    // The request is destroyed with its id.
    log(LogLevel::Warning, "verbs: port %u: a client was refused: out of memory", port_);
}

/// Closes this port and notifies all its listeners.
void ListeningPort::on_removal() noexcept {
    const auto last_owner = nic_.ports().extract(port_);
    for (Listener* listener : listeners_) listener->lose_port();
    for (PeerConnector* connector : peers_) connector->lose_port();
}

/// More requests than a listener has room for are refused as if there was none.
void ListeningPort::on_request(CmEvent& event, const Handshake& handshake) {
    Listener* listener = next_listener(handshake.framed ? handshake.service : bare_service());
    if (listener != nullptr && listener->has_room()) return listener->add(event, handshake);
    if (listener != nullptr)
        log(LogLevel::Warning, "verbs: port %u: a client was refused: too many requests wait for the listener", port_);
    (void)refuse(event.id.get(), {.kind = Handshake::Kind::NoListener, .framed = handshake.framed}).ok();
}

/// Destroying a connector may destroy the port.
void ListeningPort::on_peer(CmEvent& event, const Handshake& handshake) noexcept {
    if (PeerConnector* connector = find_peer(host_of(rdma_get_peer_addr(event.id.get())), handshake))
        connector->on_peer_request(event, handshake);
    else
        (void)refuse(event.id.get(), {.kind = Handshake::Kind::NoListener, .framed = true}).ok();
}

/// A connector that fails leaves the port, which is destroyed with the last one.
void ListeningPort::on_probe(CmEvent& event, const Handshake& handshake) noexcept {
    const HostAddress host = host_of(rdma_get_peer_addr(event.id.get()));
    (void)refuse(event.id.get(), {.kind = Handshake::Kind::Reject, .framed = true}).ok();
    for (std::size_t i = peers_.size(); i-- != 0;)
        if (peers_[i]->expects(host, handshake)) peers_[i]->on_probe();
}

Result<std::unique_ptr<Listener>> Listener::create(std::shared_ptr<Nic> nic, const Address& local, Sharing sharing) {
    std::unique_ptr<Listener> listener(new Listener(std::move(nic), local.service));
    if (listener->readable_.fd() < 0) return Status::from_errno(errno, "eventfd");
    const LockGuard lock(listener->nic_->control());
    const auto port = ListeningPort::get(*listener->nic_, listener->port_);
    if (!port.ok()) return port.status();
    if (sharing == Sharing::Exclusive && port.value()->serves(listener->service_))
        return Status(Code::Busy, "the service already has a listener");
    listener->listening_ = true;  // before it is added, so that it leaves the port if that fails
    port.value()->add(*listener);
    return listener;
}

Listener::~Listener() {
    std::list<std::unique_ptr<Request>> left;
    {
        const LockGuard lock(nic_->control());
        if (!listening_) return;
        nic_->ports().find(port_)->second->remove(*this);
        ListeningPort::close_if_unused(*nic_, port_);
        for (const auto& request : requests_) (void)request->refuse({.kind = Handshake::Kind::NoListener}).ok();
        left.swap(requests_);
    }
}

int Listener::fd() const noexcept {
    const LockGuard lock(nic_->control());
    return readable_.fd();
}

/// Requests that the peers have given up need no room.
bool Listener::has_room() noexcept {
    if (requests_.size() >= backlog) std::erase_if(requests_, [](const auto& request) { return request->given_up(); });
    return requests_.size() < backlog;
}

/// Takes memory for the list first: a request with a link must not be destroyed with the lock held.
void Listener::add(CmEvent& event, const Handshake& handshake) {
    std::list<std::unique_ptr<Request>> added(1);
    added.front() = std::make_unique<Request>(nic_, std::move(event), handshake);
    requests_.splice(requests_.end(), added);
    readable_.set(true);
}

Result<Owned<viaduct::ConnectionRequest>> Listener::next_request() noexcept {
    std::unique_ptr<Request> request;
    const LockGuard lock(nic_->control());
    while (!requests_.empty() && requests_.front()->given_up()) requests_.pop_front();
    if (!requests_.empty()) {
        request = std::move(requests_.front());
        requests_.pop_front();
    }
    readable_.set(!listening_ || !requests_.empty());
    if (request == nullptr)
        return listening_ ? Status(Code::WouldBlock, "no request is pending")
                          : Status(Code::Unreachable, device_removed);
    return Owned<viaduct::ConnectionRequest>(std::move(request));
}

}  // namespace viaduct::verbs
