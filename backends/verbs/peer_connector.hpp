// SPDX-License-Identifier: BSD-3-Clause
// How two endpoints that ask for each other find out which is passive and which is active.
//
// Both know the same port, made of the two hosts and the service. On one host, whoever gets the port is passive, and
// the other one is active. Of two hosts the one with the lower address is passive. Each listens on the port first; then
// the passive one sends a probe to the other's, and the active one a request at once, and again after each probe.
// Whichever comes later finds the first one listening, so that nobody has to try again and again.
#pragma once

#include <memory>

#include "backends/verbs/agent.hpp"
#include "backends/verbs/listener.hpp"
#include "core/backend.hpp"

namespace viaduct::verbs {

class Endpoint;
class Nic;

/// One endpoint's search for its peer, owned by the endpoint. Everything with the control lock held.
class PeerConnector final : private LinkOwner {
public:
    /// Busy: the port belongs to another process of this host. Throws std::bad_alloc.
    static Result<std::unique_ptr<PeerConnector>> begin(Nic& nic, Endpoint& endpoint,
                                                        const ConnectParameters& parameters);
    ~PeerConnector();
    PeerConnector(const PeerConnector&) = delete;
    PeerConnector& operator=(const PeerConnector&) = delete;

    const ConnectParameters& parameters() const noexcept { return parameters_; }

    /// Whether a request or a probe that comes from `host` is meant for this one.
    bool expects(const HostAddress& host, const Handshake& handshake) const noexcept;

    /// The peer has asked. Ends this connector.
    void on_peer_request(CmEvent& event, const Handshake& handshake) noexcept;
    void on_probe() noexcept;

    /// The device is gone, and the port with it. Ends this connector.
    void lose_port() noexcept;

    /// The endpoint's request came to nothing: nobody was there, or it was lost on its way.
    void on_refusal(bool nobody) noexcept;

private:
    enum class Role : std::uint8_t { Passive, Active };

    PeerConnector(Nic& nic, Endpoint& endpoint, const ConnectParameters& parameters);
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
    const ConnectParameters parameters_;
    const std::uint16_t port_;
    Role role_ = Role::Passive;
    bool listening_ = false;
    bool requesting_ = false;
    bool probed_ = false;  // while calling
    std::unique_ptr<Link>
        link_;  // for the next request_peer or probe, with the deadline; the endpoint's while it calls
};

}  // namespace viaduct::verbs
