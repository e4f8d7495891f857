// SPDX-License-Identifier: BSD-3-Clause
// Decides which of two endpoints that connect to each other is passive and which is active.
//
// Both compute the same port from the two hosts and the service. On one host, the endpoint that gets the port is
// passive and the other one is active. Of two hosts, the one with the lower address is passive. Each endpoint first
// listens on the port. Then the passive one sends a probe to the other host. The active one sends a request
// immediately, and again after each probe. Whichever endpoint starts later finds the other one listening, so there is
// no need to poll.
#pragma once

#include <memory>

#include "backends/verbs/agent.hpp"
#include "backends/verbs/listener.hpp"
#include "core/backend.hpp"

namespace viaduct::verbs {

class Endpoint;
class Nic;

/// Peer-to-peer connection setup of one endpoint, which owns this object. The control lock must be held for all
/// functions.
class PeerConnector final : private LinkOwner {
public:
    /// Busy: another process of this host uses the port. Throws std::bad_alloc.
    static Result<std::unique_ptr<PeerConnector>> begin(Nic& nic, Endpoint& endpoint,
                                                        const backend::ConnectParameters& parameters);
    ~PeerConnector();
    PeerConnector(const PeerConnector&) = delete;
    PeerConnector& operator=(const PeerConnector&) = delete;

    const backend::ConnectParameters& parameters() const noexcept { return parameters_; }

    /// Reports whether a request or probe from `host` is meant for this connector.
    bool expects(const HostAddress& host, const Handshake& handshake) const noexcept;

    /// Called when the peer's request arrives. Destroys this connector.
    void on_peer_request(CmEvent& event, const Handshake& handshake) noexcept;
    void on_probe() noexcept;

    /// Called when the device was removed, and the port with it. Destroys this connector.
    void lose_port() noexcept;

    /// Called when the endpoint's request failed. `nobody`: there was no listener; otherwise it was lost.
    void on_refusal(bool nobody) noexcept;

private:
    enum class Role : std::uint8_t { Passive, Active };

    PeerConnector(Nic& nic, Endpoint& endpoint, const backend::ConnectParameters& parameters);
    void on_event(CmEvent& event) noexcept override;
    void on_deadline() noexcept override;
    void on_error() noexcept override {}
    bool on_one_host() const noexcept;
    Status choose_role();
    void start();
    void request_peer();
    void on_refusal_of_probe() noexcept;
    void renew_link(const Deadline& deadline);
    void stop_listening() noexcept;

    Nic& nic_;
    Endpoint& endpoint_;
    const backend::ConnectParameters parameters_;
    const std::uint16_t port_;
    Role role_ = Role::Passive;
    bool listening_ = false;
    bool requesting_ = false;
    bool probed_ = false;  // a probe arrived during a request
    std::unique_ptr<Link>
        link_;  // for the next request or probe, and the deadline; the endpoint has it during a request
};

}  // namespace viaduct::verbs
