// SPDX-License-Identifier: BSD-3-Clause
// An endpoint of the verbs backend: its two work queues, and the coming and going of its connection.
#pragma once

#include <condition_variable>
#include <optional>

#include "backends/verbs/agent.hpp"
#include "backends/verbs/peer_connector.hpp"
#include "backends/verbs/queue_pair.hpp"
#include "backends/verbs/receive_queue.hpp"
#include "backends/verbs/send_queue.hpp"
#include "core/backend.hpp"

namespace viaduct::verbs {

class Device;
class Nic;
class SharedReceiveQueue;

/// Thread-safe. Work is posted under the mutexes of the queues; all else happens under the control lock of the card,
/// which comes first. Each connection has a queue pair of its own, made ahead of time: what is left of an old one can
/// never disturb the next.
class Endpoint final : public backend::Endpoint, private LinkOwner {
public:
    static Result<std::unique_ptr<Endpoint>> create(Device& device, const backend::EndpointInit& init);
    ~Endpoint() override;

    Status post_send(std::span<const SendRequest> requests, std::size_t& posted) noexcept override;
    Status bind(backend::MemoryWindow& window, const backend::BindRequest& request) noexcept override;
    Status post_receive(std::span<const ReceiveRequest> requests, std::size_t& posted) noexcept override;
    std::uint32_t outstanding(QueueKind queue) const noexcept override;
    Status modify(const EndpointAttributes& attributes, const backend::ProtectionDomain& domain) noexcept override;
    Status connect(const ConnectParameters& parameters) noexcept override;
    void disconnect() noexcept override;
    void drain() noexcept override;
    void fail() noexcept override;

    /// Answers a request with this endpoint, and waits a moment for the peer to confirm. `link` is moved from only
    /// where the endpoint is idle. Takes the control lock through `lock`.
    Status accept(std::unique_lock<std::mutex>& lock, std::unique_ptr<Link>& link, const CmEvent& request,
                  const Handshake& handshake, const PrivateData& private_data);

    // With the control lock held.
    void on_hardware_event(ibv_event_type type) noexcept;

    /// For a peer-to-peer connection. The endpoint takes over the link, which is resolved, to call the peer; or
    /// probes with it.
    void request_peer(std::unique_ptr<Link>& link) noexcept;
    void probe(Link& link) noexcept;
    /// The peer has come; ends the connector, and an event will tell what comes of it.
    void accept_peer(CmEvent& request, const Handshake& handshake) noexcept;

    /// The endpoint is idle again, with its receives.
    void end_attempt(const ConnectionEvent& event) noexcept;

private:
    enum class State : std::uint8_t { Idle, Resolving, PeerToPeer, Connecting, Accepting, Connected, Broken };

    /// The connection ends once the send queue is done.
    struct Drain {
        std::optional<std::uint32_t> end;  ///< where it is; nothing while the queue is still open
        Deadline::Clock::duration pause{};
    };

    /// A request that may be repeated while nobody listens.
    struct Repetition {
        ConnectParameters parameters;
        Deadline grace;
        std::chrono::milliseconds pause{1};
        bool pausing = false;  ///< until the deadline of the link
    };

    Endpoint(Device& device, const backend::EndpointInit& init);
    Nic& nic() const noexcept;
    /// What the peer has been told of; an accepted connection is one before the peer confirms.
    bool is_established() const noexcept { return state_ == State::Connected || state_ == State::Accepting; }
    bool reliable() const noexcept { return attributes_.reliability != Reliability::Unreliable; }
    Status renew_queue_pair();
    void drop_queue_pair() noexcept;
    Result<IdOwner> resolve(const ConnectParameters& parameters) const noexcept;
    Status request(const ConnectParameters& parameters, IdOwner id);
    Status ask(const ConnectParameters& parameters) noexcept;
    bool pause_request() noexcept;
    void repeat_request() noexcept;
    Status start_peer_to_peer(const ConnectParameters& parameters);
    Status answer(std::unique_ptr<Link>& link, const rdma_conn_param& request, const Handshake& handshake);
    Status activate(const rdma_conn_param& peer, std::uint8_t reads_requested);
    rdma_conn_param parameters_for(const EncodedHandshake& handshake) const noexcept;
    rdma_conn_param answer_to(const rdma_conn_param& request, const EncodedHandshake& handshake) const noexcept;

    void on_event(CmEvent& event) noexcept override;
    void on_deadline() noexcept override;
    void on_error() noexcept override;
    void on_response(const CmEvent& event) noexcept;
    void on_refusal(const CmEvent& event) noexcept;
    void on_repetition(const CmEvent& event) noexcept;
    void resume_peer_to_peer(bool nobody) noexcept;
    void confirm() noexcept;
    void check_drain() noexcept;
    void schedule_drain_check() noexcept;
    void end_attempt_of_passive() noexcept;
    void lose(ConnectionEventKind kind, Code reason = Code::Ok) noexcept;
    void end_connection(State next) noexcept;
    void notify_observer(const ConnectionEvent& event) noexcept;

    Device& device_;
    const std::uint64_t context_;
    EndpointObserver* const observer_;
    SharedReceiveQueue* const shared_receives_;
    SendQueue send_;
    ReceiveQueue receive_;
    EndpointAttributes attributes_;  // guarded by the control lock, as what follows
    const ProtectionDomain* domain_;
    std::optional<QueuePair> queue_pair_;
    std::unique_ptr<Link> link_;
    std::shared_ptr<PeerConnector> peer_connector_;    // during a peer-to-peer attempt
    std::optional<Repetition> repetition_;             // while a listener is asked
    std::optional<ConnectionEvent> peer_established_;  // to be told when a peer that has called confirms
    State state_ = State::Idle;
    std::optional<Drain> drain_;
    std::uint64_t epoch_ = 0;                       // grows when an attempt or a connection ends
    std::optional<std::uint64_t> confirmed_epoch_;  // that of the last accepted connection which stood
    Address asked_for_;
    bool framed_ = false;  // the request was
    std::condition_variable confirmed_;
};

}  // namespace viaduct::verbs
