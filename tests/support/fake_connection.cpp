// SPDX-License-Identifier: BSD-3-Clause
// Setup and teardown of connections of the fake backend.
#include <algorithm>

#include "core/base/outcome.hpp"
#include "tests/support/fake_endpoint.hpp"

namespace viaduct::testing::fake {

using Model = ConnectParameters::Model;

void World::expire() noexcept {
    const auto waiting = connecting;  // a copy, because end_attempt() removes endpoints from the original
    for (Endpoint* endpoint : waiting) {
        const Attempt& attempt = endpoint->attempt();
        if (!attempt.heard && attempt.grace.passed())
            endpoint->end_attempt({.kind = ConnectionEventKind::Rejected, .reason = Code::NoListener});
        else if (attempt.parameters.deadline.passed())
            endpoint->end_attempt({.kind = ConnectionEventKind::TimedOut});
    }
}

void World::begin_listening(Listener& listener) {
    listeners.push_back(&listener);
    for (Endpoint* endpoint : connecting) {
        const auto& wanted = endpoint->attempt();
        if (!wanted.heard && wanted.parameters.model == Model::ClientServer &&
            wanted.parameters.remote == listener.local())
            endpoint->ask(listener);
    }
}

Listener* World::next_listener(const Address& service) noexcept {
    const auto found =
        std::ranges::find_if(listeners, [&](const Listener* listener) { return listener->local() == service; });
    if (found == listeners.end()) return nullptr;
    Listener* listener = *found;
    std::rotate(found, found + 1, listeners.end());
    return listener;
}

Endpoint* World::matching_peer(const Endpoint& endpoint) noexcept {
    const auto& wanted = endpoint.attempt().parameters;
    const auto found = std::ranges::find_if(connecting, [&](const Endpoint* other) {
        const auto& offered = other->attempt().parameters;
        // Each must request the other's host, and both the same service (guide, sections 3.3 and 6.7).
        return other != &endpoint && offered.model == Model::PeerToPeer && offered.local.host == wanted.remote.host &&
               offered.remote.host == wanted.local.host && offered.remote.service == wanted.remote.service;
    });
    return found == connecting.end() ? nullptr : *found;
}

Endpoint::Endpoint(std::shared_ptr<World> world, Device& device, const backend::EndpointInit& init)
    : CountedObject(std::move(world)),
      device_(device),
      attributes_(init.attributes),
      domain_(init.domain),
      send_queue_(static_cast<CompletionQueue*>(init.send_queue)),
      receive_queue_(static_cast<CompletionQueue*>(init.receive_queue)),
      shared_receives_(static_cast<SharedReceiveQueue*>(init.shared_receives)),
      send_depth_(init.send_depth),
      receive_depth_(init.receive_depth),
      context_(init.context),
      observer_(init.observer) {}

Status Endpoint::modify(const EndpointAttributes& attributes, const backend::ProtectionDomain& domain) noexcept {
    const std::lock_guard lock(world().mutex);
    if (state_ == State::Connecting || state_ == State::Connected) return {Code::InvalidState, "endpoint is connected"};
    attributes_ = attributes;
    domain_ = &domain;
    return {};
}

Status Endpoint::connect(const ConnectParameters& parameters) noexcept {
    const std::lock_guard lock(world().mutex);
    world().expire();
    if (state_ != State::Idle) return {Code::InvalidState, "endpoint is not idle"};
    if (!World::knows(parameters.remote.host)) return {Code::Unreachable, "no such host"};
    Listener* listener = nullptr;
    if (parameters.model == Model::ClientServer) {
        listener = world().next_listener(parameters.remote);
        if (listener == nullptr && parameters.grace.count() == 0)
            return {Code::NoListener, "nobody listens on the service"};
    }
    attempt_ = std::make_shared<Attempt>(this, parameters, attributes_);
    state_ = State::Connecting;
    world().connecting.push_back(this);
    if (listener != nullptr)
        ask(*listener);
    else if (parameters.model == Model::PeerToPeer)
        meet_peer();
    else
        attempt_->grace = std::min(Deadline::after(parameters.grace), parameters.deadline);
    return {};
}

void Endpoint::ask(Listener& listener) {
    attempt_->heard = true;
    listener.add(attempt_);
}

void Endpoint::meet_peer() {
    Endpoint* peer = world().matching_peer(*this);
    if (peer == nullptr) return;
    const auto told = [](const Endpoint& other) {
        return ConnectionEvent{.kind = ConnectionEventKind::Established,
                               .remote = other.attributes_,
                               .remote_address = other.attempt_->parameters.local,
                               .private_data = other.attempt_->parameters.private_data};
    };
    const Status status = compatible(attributes_, peer->attributes_);
    if (!status.ok()) {
        peer->end_attempt({.kind = ConnectionEventKind::Conflict, .reason = status.code(), .remote = attributes_});
        end_attempt({.kind = ConnectionEventKind::Conflict, .reason = status.code(), .remote = peer->attributes_});
        return;
    }
    const ConnectionEvent to_peer = told(*this);
    const ConnectionEvent to_this = told(*peer);
    join(*peer, *this);
    peer->tell(to_peer);
    tell(to_this);
}

void Endpoint::join(Endpoint& one, Endpoint& other) noexcept {
    for (Endpoint* endpoint : {&one, &other}) {
        endpoint->stop_connecting();
        endpoint->state_ = State::Connected;
    }
    one.peer_ = &other;
    other.peer_ = &one;
}

void Endpoint::end_attempt(const ConnectionEvent& event) noexcept {
    stop_connecting();
    state_ = State::Idle;
    tell(event);
}

void Endpoint::stop_connecting() noexcept {
    std::erase(world().connecting, this);
    if (attempt_) attempt_->client = nullptr;
    attempt_.reset();
}

void Endpoint::disconnect() noexcept { leave(State::Idle, ConnectionEventKind::Disconnected); }

void Endpoint::drain() noexcept {
    const std::lock_guard lock(world().mutex);
    if (state_ != State::Connected || left_to_drain_) return;
    left_to_drain_ = sends_.size();
    end_if_drained();
}

void Endpoint::end_if_drained() noexcept {
    if (left_to_drain_ != 0) return;
    peer_->lose(ConnectionEventKind::Disconnected);
    lose(ConnectionEventKind::Disconnected);
}

void Endpoint::fail() noexcept { leave(State::Broken, ConnectionEventKind::Lost); }

void Endpoint::leave(State next, ConnectionEventKind to_peer) noexcept {
    const std::lock_guard lock(world().mutex);
    stop_connecting();
    state_ = next;
    close_views();
    if (Endpoint* peer = std::exchange(peer_, nullptr)) peer->lose(to_peer);
    flush_sends();
    flush_receives();
}

void Endpoint::lose(ConnectionEventKind kind, Code reason) noexcept {
    state_ = State::Broken;
    peer_ = nullptr;
    close_views();
    flush_sends();
    flush_receives();
    tell({.kind = kind, .reason = reason});
}

void Endpoint::tell(const ConnectionEvent& event) noexcept {
    if (observer_ != nullptr) observer_->on_connection_event(event);
}

Listener::Listener(std::shared_ptr<World> world, const Address& local) noexcept
    : CountedObject(std::move(world)), local_(local) {}

Listener::~Listener() {
    const std::lock_guard lock(world().mutex);
    std::erase(world().listeners, this);
    for (const auto& attempt : attempts_)
        if (attempt->client != nullptr)
            attempt->client->end_attempt({.kind = ConnectionEventKind::Rejected, .reason = Code::NoListener});
}

int Listener::fd() const noexcept {
    const std::lock_guard lock(world().mutex);
    return readable_.fd();
}

void Listener::add(std::shared_ptr<Attempt> attempt) {
    attempts_.push_back(std::move(attempt));
    readable_.set(true);
}

Result<std::unique_ptr<ConnectionRequest>> Listener::next_request() noexcept {
    const std::lock_guard lock(world().mutex);
    world().expire();
    std::shared_ptr<Attempt> attempt;
    while (attempt == nullptr && !attempts_.empty()) {
        if (attempts_.front()->client != nullptr) attempt = attempts_.front();
        attempts_.pop_front();
    }
    readable_.set(!attempts_.empty());
    if (attempt == nullptr) return Status(Code::WouldBlock, "no request waits");
    return std::unique_ptr<ConnectionRequest>(std::make_unique<Request>(shared_world(), local_, std::move(attempt)));
}

Request::Request(std::shared_ptr<World> world, const Address& local, std::shared_ptr<Attempt> attempt) noexcept
    : CountedObject(std::move(world)), local_(local), attempt_(std::move(attempt)) {}

Status Request::accept(backend::Endpoint& endpoint, const PrivateData& private_data) noexcept {
    const std::lock_guard lock(world().mutex);
    world().expire();
    auto& passive = static_cast<Endpoint&>(endpoint);
    if (!passive.idle()) return {Code::InvalidState, "endpoint is not idle"};
    if (attempt_->client == nullptr) return {Code::TimedOut, "the peer has given up"};
    Endpoint& active = *attempt_->client;
    Endpoint::join(active, passive);
    passive.tell({.kind = ConnectionEventKind::Established});
    active.tell({.kind = ConnectionEventKind::Established,
                 .remote = passive.attributes(),
                 .remote_address = local_,
                 .private_data = private_data});
    return {};
}

Status Request::reject(const PrivateData& private_data) noexcept {
    return refuse({.kind = ConnectionEventKind::Rejected, .private_data = private_data});
}

Status Request::refuse() noexcept {
    return refuse({.kind = ConnectionEventKind::Rejected, .reason = Code::NoListener});
}

Status Request::conflict(const EndpointAttributes& own) noexcept {
    return refuse(viaduct::conflict(compatible(remote_attributes(), own), own));
}

Status Request::refuse(const ConnectionEvent& event) noexcept {
    const std::lock_guard lock(world().mutex);
    world().expire();
    if (attempt_->client != nullptr) attempt_->client->end_attempt(event);
    return {};
}

}  // namespace viaduct::testing::fake
