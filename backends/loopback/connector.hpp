// SPDX-License-Identifier: BSD-3-Clause
// The active side of connecting: asks a listener, or meets a peer, until an answer or the deadline ends it.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "backends/loopback/connection.hpp"
#include "backends/loopback/listener.hpp"
#include "core/backend.hpp"

namespace viaduct::loopback {

/// Runs on the agent's thread once started. Everything happens with the mutex of the endpoint's reference held. Owned
/// by the endpoint until the attempt ends, and by each of its calls from the agent until that returns.
class Connector final : public AgentClient, public std::enable_shared_from_this<Connector> {
public:
    /// NoListener: nobody listens (client/server).
    static Result<std::shared_ptr<Connector>> start(Endpoint& endpoint, const ConnectParameters& parameters);
    ~Connector() override;

    /// The endpoint gives up. No event follows.
    void abandon() noexcept;

private:
    Connector(Endpoint& endpoint, const ConnectParameters& parameters) noexcept;

    void on_readable(int fd) noexcept override;
    void on_deadline() noexcept override;

    Status attempt();
    Status ask_listener();
    Status connect_peer();
    Status send_request(UniqueFd socket);
    void read_answer();
    void answer_hung_up();
    bool may_still_answer() noexcept;
    void take_peer_requests();
    void established_with(Handshake& handshake);
    void fail(const Status& status) noexcept;
    void finish(const ConnectionEvent& event) noexcept;
    void stop() noexcept;
    bool peer_to_peer() const noexcept { return parameters_.model == ConnectParameters::Model::PeerToPeer; }
    Endpoint* endpoint() const noexcept { return stopped_ ? nullptr : owner_->endpoint; }

    Device& device_;
    const std::shared_ptr<EndpointRef> owner_;
    const ConnectParameters parameters_;
    const Deadline grace_;  // of asking where nobody listens
    std::chrono::milliseconds pause_;
    bool asks_again_ = false;  // after the pause, or when the grace is over
    bool stopped_ = false;

    // Asking: the offered connection and the socket on which the answer comes.
    std::shared_ptr<Connection> offered_;
    UniqueFd socket_;
    Deadline answer_by_ = Deadline::never();  // for an answer that was given and has not come

    // Meeting, where this side came first: peers that come, and those that belong to another pair.
    std::optional<PendingConnections> pending_;
    std::vector<std::unique_ptr<ConnectionRequest>> deferred_;
};

}  // namespace viaduct::loopback
