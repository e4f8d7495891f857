// SPDX-License-Identifier: BSD-3-Clause
// The active side of connection setup: sends a request to a listener, or meets a peer, until there is an answer or the
// deadline passes.
#pragma once

#include <chrono>

#include "backends/ofi/listener.hpp"

namespace viaduct::ofi {

/// Owned by the endpoint until the attempt ends, and by the agent during each of its calls. The lock of the node must
/// be held.
class Connector final : public AgentClient {
public:
    /// Unreachable: there is no route.
    static Result<std::shared_ptr<Connector>> start(Endpoint& endpoint, const ConnectParameters& parameters);
    Connector(Endpoint& endpoint, const ConnectParameters& parameters) noexcept;
    ~Connector() override { stop(); }

    /// Reports whether the attempt has ended; start() may already have reported the event.
    bool has_ended() const noexcept { return endpoint_ == nullptr; }

    /// Called when the endpoint gives up. No event follows.
    void abandon() noexcept { stop(); }

    /// Reports whether it waits for a peer-to-peer request.
    bool expects(const HostAddress& host, const Service& service) const noexcept;
    void on_peer(ControlSocket socket, const control::Request& request) noexcept;

private:
    void on_ready() noexcept override;
    void on_deadline() noexcept override;

    Status attempt();
    Status wait_for_peer();
    void retry(bool no_listener);
    void on_connected();
    void on_message(const control::Message& message);
    void established(const control::Accepted& accepted);
    void dropped();
    void hung_up();
    void no_listener_found() noexcept;
    void timed_out() noexcept;
    void fail(const Status& status) noexcept;
    void finish(const ConnectionEvent& event) noexcept;
    void stop() noexcept;
    void close_socket() noexcept;
    void withdraw() noexcept;
    bool peer_to_peer() const noexcept { return parameters_.model == ConnectParameters::Model::PeerToPeer; }
    bool on_one_host() const noexcept { return parameters_.remote.host == node_.host(); }

    Node& node_;
    Endpoint* endpoint_;  // null: the attempt has ended
    const ConnectParameters parameters_;
    const Deadline grace_;  // for retries while there is no listener
    std::chrono::milliseconds pause_;
    std::shared_ptr<Connection> offered_;
    ControlSocket socket_;
    bool connecting_ = false;     // the socket is not connected yet
    bool challenged_ = false;     // the listener has accepted the socket, and has not answered yet
    bool pausing_ = false;        // the next deadline starts another attempt
    std::shared_ptr<Port> port_;  // on which it waits for the peer
};

}  // namespace viaduct::ofi
