// SPDX-License-Identifier: BSD-3-Clause
// Peer-to-peer connections: decides which endpoint is passive and which one is active.
//
// Both endpoints compute the same port from the two hosts and the service. On one host, the endpoint that gets the port
// is passive. On two hosts, the one with the lower address is passive. Each endpoint first listens on the port. Then
// the passive one sends a probe to the other host, and the active one sends a request, immediately and after each
// probe. Whichever starts later finds the other one listening, so neither needs to repeat its message all the time.
#pragma once

#include <memory>

#include "backends/verbs/agent.hpp"
#include "backends/verbs/listener.hpp"
#include "core/backend.hpp"
#include "core/base/retry.hpp"

namespace viaduct::verbs {

class Endpoint;
class Nic;

/// The attempt of one endpoint to connect to its peer. The endpoint owns it and may drop it in any call; handlers keep
/// it alive until they return. All functions are called with the control lock held.
class PeerConnector final : public std::enable_shared_from_this<PeerConnector>, private LinkOwner {
public:
    /// Busy: the port belongs to another process of this host. Throws std::bad_alloc.
    static Result<std::shared_ptr<PeerConnector>> begin(Nic& nic, Endpoint& endpoint,
                                                        const ConnectParameters& parameters);
    ~PeerConnector();
    PeerConnector(const PeerConnector&) = delete;
    PeerConnector& operator=(const PeerConnector&) = delete;

    const ConnectParameters& parameters() const noexcept { return parameters_; }

    /// Whether a request or a probe from `host` is for this endpoint.
    bool expects(const HostAddress& host, const Handshake& handshake) const noexcept;

    /// The peer's request arrived. Ends the attempt.
    void on_peer_request(CmEvent& event, const Handshake& handshake) noexcept;
    void on_probe() noexcept;

    /// The device is gone, and the port with it. Ends the attempt.
    void lose_port() noexcept;

    /// The request of the endpoint failed, or a probe: the peer does not listen yet, or the message was lost.
    void on_refusal(bool nobody) noexcept;

private:
    enum class Role : std::uint8_t { Passive, Active };

    PeerConnector(Nic& nic, Endpoint& endpoint, const ConnectParameters& parameters);
    void on_event(CmEvent& event) noexcept override;
    void on_deadline(Link&) noexcept override;
    bool on_one_host() const noexcept;
    template <class Step>
    void go_on(Step step) noexcept;
    Status choose_role();
    Status start();
    Status request_peer();
    Status renew_link(const Deadline& deadline);
    void stop_listening() noexcept;

    Nic& nic_;
    Endpoint& endpoint_;
    const ConnectParameters parameters_;
    const std::uint16_t port_;
    Retry retry_;
    Role role_ = Role::Passive;
    bool listening_ = false;
    bool requesting_ = false;
    bool probed_ = false;         // since the last request
    std::shared_ptr<Link> link_;  // for the next request or probe, and the deadline; during a request the endpoint's
};

}  // namespace viaduct::verbs
