// SPDX-License-Identifier: BSD-3-Clause
// The active side of connection setup: sends a request to a listener, or meets a peer, until there is an answer or the
// deadline passes.
#pragma once

#include "backends/software/listener.hpp"
#include "core/base/retry.hpp"

namespace viaduct::software {

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
    void on_peer(const std::shared_ptr<Link>& link, const Connect& request) noexcept;

    // ---- For the link and the connection ----
    /// The link is usable, or has failed.
    void on_link(Link& link, const Status& status) noexcept;
    void established(const Accepted& accepted) noexcept;
    /// An answer other than Accepted.
    Status on_answer(FrameKind kind, std::span<const std::byte> body) noexcept;
    /// The link was lost before there was an answer.
    void hung_up() noexcept;

private:
    void on_deadline() noexcept override;

    Status attempt();
    Status wait_for_peer();
    void ask(const std::shared_ptr<Link>& link) noexcept;
    void retry(bool no_listener) noexcept;
    bool ask_over_new_link() noexcept;
    void dropped() noexcept;
    void no_listener_found() noexcept;
    void timed_out() noexcept;
    void fail(const Status& status) noexcept;
    void finish(const ConnectionEvent& event) noexcept;
    void stop() noexcept;
    void withdraw() noexcept;
    bool peer_to_peer() const noexcept { return parameters_.model == ConnectParameters::Model::PeerToPeer; }
    bool on_one_host() const noexcept { return parameters_.remote.host == node_.host(); }
    std::uint16_t port() const noexcept;

    Node& node_;
    Endpoint* endpoint_;  // null: the attempt has ended
    const ConnectParameters parameters_;
    Retry retry_;
    std::shared_ptr<Connection> offered_;  // whose request has not been answered
    std::weak_ptr<Link> awaited_;          // which is not usable yet
    bool link_is_new_ = false;             // the request would be the first one over it
    bool needs_new_link_ = false;          // another process may have the port of the old one
    bool pausing_ = false;                 // the next deadline starts another attempt
    std::shared_ptr<Port> port_;           // on which it waits for the peer
};

}  // namespace viaduct::software
