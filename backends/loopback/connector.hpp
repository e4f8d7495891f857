// SPDX-License-Identifier: BSD-3-Clause
// The active side of connection setup: sends a request to a listener, or meets a peer, until there is an answer or the
// deadline passes.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "backends/loopback/connection.hpp"
#include "backends/loopback/listener.hpp"
#include "core/backend.hpp"
#include "core/base/retry.hpp"

namespace viaduct::loopback {

/// Runs on the agent's thread once started, always with the mutex of the EndpointRef held. Owned by the endpoint until
/// the attempt ends, and by the agent during each of its calls.
class Connector final : public AgentClient, public std::enable_shared_from_this<Connector> {
public:
    /// NoListener: there is no listener (client/server model).
    static Result<std::shared_ptr<Connector>> start(Endpoint& endpoint, const ConnectParameters& parameters);
    ~Connector() override;

    /// Reports whether the attempt has ended; start() may already have reported the event.
    bool has_ended() const noexcept { return stopped_; }

    /// Called when the endpoint gives up. No event follows.
    void abandon() noexcept;

private:
    Connector(Endpoint& endpoint, const ConnectParameters& parameters) noexcept;

    void on_readable(int fd) noexcept override;
    void on_deadline() noexcept override;

    Status attempt();
    void ask_again();
    Status ask_listener();
    Status connect_peer();
    Status make_offer();
    Status send_request(UniqueFd socket);
    bool is_answered_soon() noexcept;
    template <class Step>
    void run_step(Step step) noexcept;  ///< a failure to allocate memory ends the attempt
    void check_time();
    bool read_answer();
    void answered(Handshake& answer);
    void answer_hung_up();
    void server_lacks_resources();
    bool may_still_answer() noexcept;
    void take_peer_requests();
    void established_with(Handshake& handshake);
    void fail(const Status& status) noexcept;
    const char* describe_time_out(bool untaken) const noexcept;
    void finish(const ConnectionEvent& event) noexcept;
    void stop() noexcept;
    bool peer_to_peer() const noexcept { return parameters_.model == ConnectParameters::Model::PeerToPeer; }
    Endpoint* endpoint() const noexcept { return stopped_ ? nullptr : owner_->endpoint; }

    Device& device_;
    const std::shared_ptr<EndpointRef> owner_;
    const ConnectParameters parameters_;
    Retry retry_;
    bool was_dropped_ = false;  // a server has dropped the request
    bool asks_again_ = false;   // the next deadline starts another attempt
    bool stopped_ = false;
    bool has_spun_ = false;

    // Client/server model: the offered connection and the socket for the answer.
    std::shared_ptr<Connection> offered_;
    UniqueFd socket_;
    pid_t peer_process_ = 0;
    Deadline answer_by_ = Deadline::never();  // deadline for an answer that was given but has not arrived

    // Peer-to-peer model, if this side was first: connecting peers, and requests that belong to another pair.
    std::optional<PendingConnections> pending_;
    std::vector<std::unique_ptr<ConnectionRequest>> deferred_;
};

}  // namespace viaduct::loopback
