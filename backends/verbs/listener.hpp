// SPDX-License-Identifier: BSD-3-Clause
// Listeners, the connection manager's port that they share, and incoming requests.
#pragma once

#include <list>
#include <memory>

#include "backends/support/port_base.hpp"
#include "backends/verbs/agent.hpp"
#include "core/backend.hpp"
#include "core/base/event_channel.hpp"

namespace viaduct::verbs {

class Listener;
class Nic;
class PeerConnector;

/// Thread-safe: everything is guarded by the control lock of the card.
class Request final : public viaduct::ConnectionRequest, private LinkOwner {
public:
    /// The control lock must be held. Throws std::bad_alloc.
    Request(std::shared_ptr<Nic> nic, CmEvent event, const Handshake& handshake);
    ~Request() override;

    const Address& remote_address() const noexcept override { return remote_address_; }
    const EndpointAttributes& remote_attributes() const noexcept override { return handshake_.attributes; }
    const PrivateData& private_data() const noexcept override { return handshake_.private_data; }
    Status accept(backend::Endpoint& endpoint, const PrivateData& private_data) noexcept override;
    Status reject(const PrivateData& private_data) noexcept override {
        return refuse_with({.kind = Handshake::Kind::Reject, .private_data = private_data});
    }
    Status refuse() noexcept override { return refuse_with({.kind = Handshake::Kind::NoListener}); }
    Status conflict(const EndpointAttributes& own) noexcept override {
        return refuse_with({.kind = Handshake::Kind::Conflict, .attributes = own});
    }
    void redirect(const Service&) noexcept override {}  // an answer has no room for it

    // The control lock must be held.
    bool given_up() noexcept {
        if (link_ != nullptr && !is_pending(link_->id())) link_.reset();
        return link_ == nullptr;
    }
    Status refuse(Handshake answer) noexcept;

private:
    Status refuse_with(const Handshake& answer) noexcept;
    void on_event(CmEvent&) noexcept override {}  // there is none before it is accepted

    std::shared_ptr<Nic> nic_;
    CmEvent event_;
    const Handshake handshake_;
    Address remote_address_;
    std::shared_ptr<Link> link_;  // null if answered, or if the peer has given up
    bool refused_ = false;        // or this was tried
};

/// Refuses a request. If this fails, the system does so when the id is destroyed. NoResources: it can be repeated.
/// InvalidParameter: the private data are too long for an answer, so this was not tried.
Status refuse(rdma_cm_id* id, const Handshake& handshake) noexcept;

/// The control lock must be held. Owned by the card as long as it has listeners.
class ListeningPort final : public support::PortBase<Listener, PeerConnector>, private LinkOwner {
public:
    /// Returns the port of the card and opens it if necessary. Busy: another process uses the port. Throws
    /// std::bad_alloc.
    static Result<ListeningPort*> get(Nic& nic, std::uint16_t port);
    static void close_if_unused(Nic& nic, std::uint16_t port) noexcept;

    bool serves(std::uint64_t service) const noexcept;

private:
    static Result<std::unique_ptr<ListeningPort>> open(Nic& nic, std::uint16_t port);
    ListeningPort(Nic& nic, std::uint16_t port) noexcept : nic_(nic), port_(port) {}
    void on_event(CmEvent& event) noexcept override;
    std::uint64_t bare_service() const noexcept;
    void on_removal() noexcept;
    void on_request(CmEvent& event, const Handshake& handshake);
    void on_peer(CmEvent& event, const Handshake& handshake) noexcept;
    void on_probe(CmEvent& event, const Handshake& handshake) noexcept;

    Nic& nic_;
    const std::uint16_t port_;
    std::shared_ptr<Link> link_;
};

/// Thread-safe: everything is guarded by the control lock of the card.
class Listener final : public viaduct::Listener {
public:
    static Result<std::unique_ptr<Listener>> create(std::shared_ptr<Nic> nic, const Address& local, Sharing sharing);
    ~Listener() override;

    int fd() const noexcept override;
    Result<Owned<viaduct::ConnectionRequest>> next_request() noexcept override;

    // The control lock must be held for the functions below.
    std::uint64_t service() const noexcept { return service_; }
    bool has_room() noexcept;
    void add(CmEvent& event, const Handshake& handshake);
    void lose_port() noexcept {
        listening_ = false;
        readable_.set(true);
    }

private:
    Listener(std::shared_ptr<Nic> nic, const Service& service)
        : nic_(std::move(nic)), port_(support::port_for(service)), service_(support::fingerprint(service)) {}

    std::shared_ptr<Nic> nic_;
    const std::uint16_t port_;
    const std::uint64_t service_;
    bool listening_ = false;
    mutable ReadableFlag readable_;
    std::list<std::unique_ptr<Request>> requests_;
};

}  // namespace viaduct::verbs
