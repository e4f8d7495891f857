// SPDX-License-Identifier: BSD-3-Clause
// How two endpoints that ask for each other find out who waits and who calls.
//
// Both know the same port, made of the two hosts and the service. On one host, whoever gets the port waits there, and
// the other one calls. Of two hosts the one with the lower address waits. Each listens on the port first; then the one
// that waits sends a probe to the other's, and the one that calls does so at once, and again after each probe.
// Whichever comes later finds the first one listening, so that nobody has to try again and again.
#pragma once

#include <memory>

#include "backends/verbs/agent.hpp"
#include "backends/verbs/listener.hpp"
#include "core/backend.hpp"

namespace viaduct::verbs {

class Endpoint;
class Nic;

/// One endpoint's search for its partner, owned by the endpoint. Everything with the control lock held.
class PeerConnector final : private LinkOwner {
public:
    /// Busy: the port belongs to another process of this host. Throws std::bad_alloc.
    static Result<std::unique_ptr<PeerConnector>> begin(Nic& nic, Endpoint& endpoint,
                                                        const backend::ConnectParameters& parameters);
    ~PeerConnector();
    PeerConnector(const PeerConnector&) = delete;
    PeerConnector& operator=(const PeerConnector&) = delete;

    const backend::ConnectParameters& parameters() const noexcept { return parameters_; }

    /// Whether a request or a probe that comes from `host` is meant for this one.
    bool expects(const HostAddress& host, const Handshake& handshake) const noexcept;

    /// The partner has called. Ends this connector.
    void on_partner(ManagerEvent& event, const Handshake& handshake) noexcept;
    void on_probe() noexcept;

    /// The device is gone, and the port with it. Ends this connector.
    void lose_port() noexcept;

    /// The endpoint's call came to nothing: nobody was there, or it was lost on its way.
    void on_refusal(bool nobody) noexcept;

private:
    enum class Role : std::uint8_t { Waits, Calls };

    PeerConnector(Nic& nic, Endpoint& endpoint, const backend::ConnectParameters& parameters);
    void on_event(ManagerEvent& event) noexcept override;
    void on_deadline() noexcept override;
    void on_error() noexcept override {}
    bool on_one_host() const noexcept;
    Status take_role();
    void start();
    void call();
    void on_refusal_of_probe() noexcept;
    void hang_up(const Deadline& deadline);
    void leave() noexcept;

    Nic& nic_;
    Endpoint& endpoint_;
    const backend::ConnectParameters parameters_;
    const std::uint16_t port_;
    Role role_ = Role::Waits;
    bool listening_ = false;
    bool calling_ = false;
    bool probed_ = false;         // while calling
    std::unique_ptr<Link> link_;  // for the next call or probe, with the deadline; the endpoint's while it calls
};

}  // namespace viaduct::verbs
