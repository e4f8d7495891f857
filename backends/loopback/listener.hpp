// SPDX-License-Identifier: BSD-3-Clause
// The passive side of connection setup: listeners and their connection requests.
#pragma once

#include <memory>
#include <optional>
#include <unordered_map>

#include "backends/loopback/connection.hpp"
#include "backends/loopback/handshake.hpp"
#include "core/backend.hpp"
#include "viaduct/detail/mutex.hpp"

namespace viaduct::loopback {

/// A connection request whose message has been read.
class ConnectionRequest final : public viaduct::ConnectionRequest {
public:
    /// InvalidParameter: the segment is invalid. TimedOut: the requester has already given up. NoResources: the
    /// requester is told.
    static Result<std::unique_ptr<ConnectionRequest>> take(Device& device, UniqueSocket socket, Handshake handshake);
    ~ConnectionRequest() override;

    const Address& remote_address() const noexcept override { return handshake_.local; }
    const EndpointAttributes& remote_attributes() const noexcept override { return handshake_.attributes; }
    const PrivateData& private_data() const noexcept override { return handshake_.private_data; }
    Status accept(backend::Endpoint& endpoint, const PrivateData& private_data) noexcept override;
    Status reject(const PrivateData& private_data) noexcept override {
        return refuse(make_handshake(MessageType::Rejected, {}, {}, private_data));
    }
    Status refuse() noexcept override { return refuse(make_handshake(MessageType::NoListener, {}, {}, {})); }
    Status conflict(const EndpointAttributes& own) noexcept override {
        return refuse(make_handshake(MessageType::Conflict, {}, own, {}));
    }
    void redirect(const Bytes<Address::max_service>& service) noexcept override { answered_by_ = service; }

    const Bytes<Address::max_host>& remote_host_asked_for() const noexcept { return handshake_.remote_host; }

    /// Like accept(), for an endpoint whose mutex is held and which is idle or connecting (peer-to-peer), with the
    /// event for its observer.
    Status accept_locked(class Endpoint& endpoint, const PrivateData& private_data, const ConnectionEvent& established);

private:
    ConnectionRequest(UniqueSocket socket, Handshake handshake, std::shared_ptr<Connection> connection) noexcept;
    static bool answer(Connection& connection, const HandshakeMessage& message,
                       std::span<const int> descriptors) noexcept;
    Status refuse(const HandshakeMessage& message) noexcept;

    Mutex mutex_;  // of answering; accept_locked() does not take it, because its caller is the only one that knows this
    UniqueSocket socket_;
    Handshake handshake_;
    std::shared_ptr<Connection> connection_;
    bool refused_ = false;
    Bytes<Address::max_service> answered_by_;  // empty: the requested service
};

/// Sockets of peers that have connected but not yet sent their message.
class PendingConnections {
public:
    static Result<PendingConnections> create(UniqueSocket listening) noexcept;

    /// Readable when a peer connects or sends.
    int fd() const noexcept { return epoll_.get(); }

    /// Returns the next valid handshake with its socket. WouldBlock: there is none yet.
    using Request = std::pair<UniqueSocket, Handshake>;
    Result<Request> next();

private:
    Result<std::optional<Request>> admit();
    Status turn_next_away() noexcept;
    static std::optional<Request> request_of(UniqueSocket socket, Result<Handshake>& handshake);

    UniqueFd epoll_;
    UniqueFd reserve_;  // makes room for the socket of a peer that is turned away
    UniqueSocket listening_;
    std::unordered_map<int, UniqueSocket> accepted_;
};

class Listener final : public viaduct::Listener {
public:
    static Result<std::unique_ptr<viaduct::Listener>> create(Device& device, const Address& local, Sharing sharing);

    /// Unchecked: the descriptor does not change.
    int fd() const noexcept VIADUCT_UNCHECKED override { return pending_.fd(); }
    Result<Owned<viaduct::ConnectionRequest>> next_request() noexcept override;

private:
    Listener(Device& device, PendingConnections pending) noexcept : device_(device), pending_(std::move(pending)) {}

    Device& device_;
    Mutex mutex_;
    PendingConnections pending_ VIADUCT_GUARDED_BY(mutex_);
};

}  // namespace viaduct::loopback
