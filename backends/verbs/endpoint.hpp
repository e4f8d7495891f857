// SPDX-License-Identifier: BSD-3-Clause
// An endpoint of the verbs backend: its two work queues, and setup and teardown of its connection.
#pragma once

#include <chrono>
#include <optional>

#include "backends/support/direct_posts.hpp"
#include "backends/verbs/agent.hpp"
#include "backends/verbs/peer_connector.hpp"
#include "backends/verbs/queue_pair.hpp"
#include "backends/verbs/receive_queue.hpp"
#include "backends/verbs/send_queue.hpp"
#include "core/backend.hpp"
#include "core/base/retry.hpp"
#include "viaduct/detail/mutex.hpp"

namespace viaduct::verbs {

class Device;
class Nic;
class SharedReceiveQueue;

/// Thread-safe. Requests are posted with the mutexes of the queues held; everything else happens with the control lock
/// of the card held, which is acquired first. Each connection has a new queue pair, created in advance, so that remains
/// of an old connection cannot disturb a new one.
class Endpoint final : public support::DirectPosts<Endpoint>, private LinkOwner {
public:
    static Result<std::unique_ptr<Endpoint>> create(Device& device, const backend::EndpointInit& init);
    ~Endpoint() override;

    Status bind(backend::MemoryWindow& window, const backend::BindRequest& request) noexcept override;
    std::uint32_t outstanding(QueueKind queue) const noexcept override;
    std::uint32_t last_outstanding(QueueKind queue) const noexcept override {
        return queue == QueueKind::Send ? send_.outstanding() : receive_.outstanding();
    }
    EndpointCounters counters() const noexcept override;
    Status modify(const EndpointAttributes& attributes, const backend::ProtectionDomain& domain) noexcept override;
    Status connect(const ConnectParameters& parameters) noexcept override;
    void disconnect() noexcept override { leave(State::Idle); }
    void drain() noexcept override;
    void fail() noexcept override { leave(State::Broken); }

    /// Accepts a request with this endpoint and waits briefly for the peer's confirmation. `link` is not null
    /// afterwards if the request can still be accepted. The control lock must be held; it is released while waiting.
    Status accept(std::shared_ptr<Link>& link, const CmEvent& request, const Handshake& handshake,
                  const PrivateData& private_data);

    // The control lock must be held for the functions below.
    void on_hardware_event(ibv_event_type type) noexcept;
    /// Whether it uses the completion queue or shared receive queue at this address.
    bool uses(const void* queue) const noexcept {
        return queue == &send_.completions() || queue == &receive_.completions() || queue == shared_receives_;
    }

    /// For peer-to-peer connections. request_peer() takes over the link, whose route is resolved, and sends a request;
    /// probe() sends a probe, or returns false.
    void request_peer(std::shared_ptr<Link>& link) noexcept;
    bool probe(Link& link) noexcept;
    /// Called when the peer's request has arrived. Destroys the connector; an event reports the outcome.
    void accept_peer(CmEvent& request, const Handshake& handshake) noexcept;

    /// Makes the endpoint idle again and keeps its receives.
    void end_attempt(const ConnectionEvent& event) noexcept;

private:
    friend support::DirectPosts<Endpoint>;
    enum class State : std::uint8_t { Idle, Resolving, PeerToPeer, Connecting, Accepting, Connected, Broken };

    /// The connection ends when the send queue is empty.
    struct Drain {
        std::optional<std::uint32_t> end;  ///< the position of its end; none while the queue is open
        Deadline::Clock::duration pause{};
    };

    /// A request that may be repeated: while there is no listener, and if the number of the queue pair is refused.
    struct Repetition {
        ConnectParameters parameters;
        Retry retry;
        bool pausing = false;         ///< until the deadline of the link
        unsigned spare_numbers = 16;  ///< how many other numbers may be tried
    };

    /// How long a queue pair that has stopped may take to return the receive that it has taken from a shared queue.
    /// Devices usually tell within microseconds that it has; Soft-RoCE does so only since Linux 6.5.
    static constexpr std::chrono::milliseconds return_time{20};

    Endpoint(Device& device, const backend::EndpointInit& init);
    Nic& nic() const noexcept;
    /// The consumer's view. A connection is established when the request is accepted, even if the peer has not
    /// confirmed.
    bool is_established() const noexcept { return state_ == State::Connected || state_ == State::Accepting; }
    bool is_reliable() const noexcept { return attributes_.reliability != Reliability::Unreliable; }
    Status renew_queue_pair() noexcept;
    Status have_queue_pair() noexcept { return queue_pair_ ? Status() : renew_queue_pair(); }
    void drop_queue_pair() noexcept;
    Result<IdOwner> resolve(const ConnectParameters& parameters) const noexcept;
    Status request(const ConnectParameters& parameters, IdOwner id);
    Status ask(const ConnectParameters& parameters) noexcept;
    Status resolve_again();
    void pause_request() noexcept;
    void repeat_request() noexcept;
    void replace_stale_queue_pair() noexcept;
    Status start_peer_to_peer(const ConnectParameters& parameters);
    Status answer(std::shared_ptr<Link>& link, const rdma_conn_param& request, const Handshake& handshake);
    Status activate(const rdma_conn_param& peer, std::uint8_t reads_requested);
    rdma_conn_param parameters_for(const EncodedHandshake& handshake) const noexcept;
    rdma_conn_param answer_to(const rdma_conn_param& request, const EncodedHandshake& handshake) const noexcept;

    void on_event(CmEvent& event) noexcept override;
    void on_deadline(Link&) noexcept override;
    void on_error() noexcept override { lose_stopped(); }
    void on_response(const CmEvent& event) noexcept;
    void on_refusal(const CmEvent& event) noexcept;
    void on_repetition(const CmEvent& event) noexcept;
    void resume_peer_to_peer(bool nobody) noexcept {
        link_.reset();
        state_ = State::PeerToPeer;
        peer_connector_->on_refusal(nobody);
    }
    void confirm() noexcept;
    void check_drain() noexcept;
    void schedule_drain_check() noexcept;
    void end_attempt_of_passive() noexcept;
    void lose(ConnectionEventKind kind, const Reason& why, Code reason = Code::Ok) noexcept;
    void lose_stopped() noexcept;
    bool holds_shared_receive() const noexcept {
        return is_established() && shared_receives_ != nullptr && !has_returned_receive_;
    }
    void leave(State next) noexcept;
    bool stop_before_loss() noexcept;
    void report_loss() noexcept {
        const ConnectionEvent event = *loss_;
        end_connection(State::Broken);
        observer_.on_connection_event(event);
    }
    /// The queue pair has stopped and has returned what it had taken.
    void on_last_receive() noexcept {
        has_returned_receive_ = true;
        changed_.notify_all();
        if (loss_) report_loss();
    }
    /// Returns how a request of this connection failed, or Success.
    CompletionCode failure() noexcept {
        const CompletionCode of_send = send_.failure();
        return of_send != CompletionCode::Success ? of_send : receive_.failure();
    }
    void on_disconnect() noexcept;
    void end_connection(State next) noexcept;

    Device& device_;
    const std::uint64_t context_;
    EndpointObserver& observer_;
    SharedReceiveQueue* const shared_receives_;
    SendQueue send_;
    ReceiveQueue receive_;
    EndpointAttributes attributes_;  // guarded by the control lock, like all members below
    const ProtectionDomain* domain_;
    std::optional<QueuePair> queue_pair_;
    std::shared_ptr<Link> link_;
    std::shared_ptr<PeerConnector> peer_connector_;    // during peer-to-peer setup
    std::optional<Repetition> repetition_;             // while a listener is contacted
    std::optional<ConnectionEvent> peer_established_;  // to be reported when the requesting peer confirms
    State state_ = State::Idle;
    std::optional<Drain> drain_;
    std::optional<ConnectionEvent> loss_;           // to be reported when the queue pair holds no shared receive
    bool closing_ = false;                          // a call ends the connection when the queue pair holds none
    bool has_returned_receive_ = false;             // the queue pair has stopped and holds none
    std::uint64_t epoch_ = 0;                       // incremented when an attempt or a connection ends
    std::optional<std::uint64_t> confirmed_epoch_;  // of the last accepted connection that was established
    Address asked_for_;
    Counter retries_;
    bool framed_ = false;  // whether the request was framed
    ConditionVariable changed_;
};

}  // namespace viaduct::verbs
