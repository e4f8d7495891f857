// SPDX-License-Identifier: BSD-3-Clause
// How two endpoints that ask for each other find out who waits and who calls.
//
// Both know the same port, made of the two hosts and the service. On one host, whoever gets the port waits there, and
// the other one calls. Of two hosts the one with the lower address waits. Each listens on the port first; then the one
// that waits knocks at the other's, and the one that calls does so at once, and again after each knock. Whichever comes
// later finds the first one listening, so that nobody has to try again and again.
#pragma once

#include <memory>

#include "backends/verbs/agent.hpp"
#include "backends/verbs/listener.hpp"
#include "core/backend.hpp"

namespace viaduct::verbs {

class Endpoint;
class Nic;

/// One endpoint's search for its partner, owned by the endpoint. Everything with the control lock held.
class Rendezvous final : private LinkOwner {
public:
    /// Busy: the port belongs to another process of this host. Throws std::bad_alloc.
    static Result<std::unique_ptr<Rendezvous>> begin(Nic& nic, Endpoint& endpoint,
                                                     const backend::ConnectParameters& parameters);
    ~Rendezvous();
    Rendezvous(const Rendezvous&) = delete;
    Rendezvous& operator=(const Rendezvous&) = delete;

    const backend::ConnectParameters& parameters() const noexcept { return parameters_; }

    /// Whether a request or a knock that comes from `host` is meant for this one.
    bool expects(const HostAddress& host, const Greeting& greeting) const noexcept;

    /// The partner has called. Ends this rendezvous.
    void on_partner(ManagerEvent& event, const Greeting& greeting) noexcept;
    void on_knock() noexcept;

    /// The device is gone, and the port with it. Ends this rendezvous.
    void lose_port() noexcept;

    /// The endpoint's call came to nothing: nobody was there, or it was lost on its way.
    void on_refusal(bool nobody) noexcept;

private:
    enum class Role : std::uint8_t { Waits, Calls };

    Rendezvous(Nic& nic, Endpoint& endpoint, const backend::ConnectParameters& parameters);
    void on_event(ManagerEvent& event) noexcept override;
    void on_deadline() noexcept override;
    void on_error() noexcept override {}
    bool on_one_host() const noexcept;
    Status take_role();
    void start();
    void call();
    void on_refusal_of_knock() noexcept;
    void hang_up(const Deadline& deadline);
    void leave() noexcept;

    Nic& nic_;
    Endpoint& endpoint_;
    const backend::ConnectParameters parameters_;
    const std::uint16_t port_;
    Role role_ = Role::Waits;
    bool listening_ = false;
    bool calling_ = false;
    bool knocked_ = false;        // while calling
    std::unique_ptr<Link> link_;  // for the next call or knock, with the deadline; the endpoint's while it calls
};

}  // namespace viaduct::verbs
