// SPDX-License-Identifier: BSD-3-Clause
// An endpoint: two work queues, a state, and at times a connection.
#pragma once

#include <atomic>
#include <memory>
#include <span>

#include "core/completion_queue.hpp"
#include "core/device.hpp"
#include "core/shared_receive_queue.hpp"
#include "core/state_machine.hpp"

namespace viaduct {

using backend::BindRequest;
using backend::ConnectParameters;

/// As deep as the device suggests.
inline constexpr std::uint32_t default_depth = ~std::uint32_t{0};

/// How long requests are repeated while nobody listens, for APIs whose programs connect a moment before their servers
/// listen: VIADUCT_GRACE_MS.
VIADUCT_EXPORT std::chrono::milliseconds listener_grace() noexcept;

struct EndpointConfig {
    EndpointAttributes attributes;
    std::shared_ptr<ProtectionDomain> domain;
    std::shared_ptr<CompletionQueue> send_queue;
    std::shared_ptr<CompletionQueue> receive_queue;         ///< may be the same as send_queue
    std::shared_ptr<SharedReceiveQueue> shared_receives{};  ///< where receives are taken from; null: the endpoint's own
    std::uint32_t send_depth = default_depth;               ///< requests outstanding at once; 0: takes none
    std::uint32_t receive_depth = default_depth;
    std::uint32_t max_sges = 0;            ///< pieces that one request may have; 0: as many as the device takes
    std::uint64_t context = 0;             ///< comes back in completions and events
    EndpointObserver* observer = nullptr;  ///< outlives the endpoint; called after the state has changed

    /// The state that follows an attempt to connect that came to nothing: Unconnected, from which the endpoint may try
    /// again with the receives that it has; or Disconnected, until it is reset. A reliable endpoint whose peer turned
    /// out to be unreachable is always Disconnected.
    EndpointState after_refusal = EndpointState::Unconnected;
};

class VIADUCT_EXPORT Endpoint final : private EndpointObserver {
public:
    static Result<std::unique_ptr<Endpoint>> create(const EndpointConfig& config);

    /// Ends a connection that is left; the peer sees it Disconnected.
    ~Endpoint();
    Endpoint(const Endpoint&) = delete;
    Endpoint& operator=(const Endpoint&) = delete;

    EndpointState state() const noexcept { return state_.state(); }

    /// See backend::Endpoint for the meaning and the errors of the calls that follow.
    Status post_send(std::span<const SendRequest> requests, std::size_t& posted) noexcept {
        return endpoint_->post_send(requests, posted);
    }
    Status post_send(const SendRequest& request) noexcept {
        std::size_t posted = 0;
        return endpoint_->post_send({&request, 1}, posted);
    }
    Status bind(MemoryWindow& window, const BindRequest& request) noexcept {
        return endpoint_->bind(window.backend(), request);
    }
    Status post_receive(std::span<const ReceiveRequest> requests, std::size_t& posted) noexcept {
        return endpoint_->post_receive(requests, posted);
    }
    Status post_receive(const ReceiveRequest& request) noexcept {
        std::size_t posted = 0;
        return endpoint_->post_receive({&request, 1}, posted);
    }
    std::uint32_t outstanding(QueueKind queue) const noexcept { return endpoint_->outstanding(queue); }

    Status modify(const EndpointAttributes& attributes, std::shared_ptr<ProtectionDomain> domain) noexcept;

    /// Begins to connect. Ok: exactly one event tells how the attempt ends, perhaps before the call returns; what the
    /// backend finds out at once (NoListener, Unreachable) comes as the same event as what it learns later.
    Status connect(const ConnectParameters& parameters) noexcept;
    Status accept(backend::ConnectionRequest& request, const PrivateData& private_data) noexcept;
    void disconnect() noexcept;
    void fail() noexcept;

    /// Ends a connection, or the attempt to make one, in any state, and leaves the endpoint Disconnected: the peer sees
    /// its connection Disconnected, and what was posted and is posted until disconnect() completes as Flushed. No event
    /// follows.
    void terminate() noexcept;

    /// Disconnects once everything that was posted to the send queue is completed; does not wait for it. The observer
    /// gets Disconnected, or Lost where the connection breaks before. InvalidState: not connected.
    Status drain_and_disconnect() noexcept;

    const EndpointAttributes& attributes() const noexcept { return attributes_; }
    const std::shared_ptr<ProtectionDomain>& domain() const noexcept { return domain_; }

private:
    explicit Endpoint(const EndpointConfig& config) noexcept;
    void on_connection_event(const ConnectionEvent& event) noexcept override;

    bool apply(EndpointTrigger trigger) noexcept { return state_.apply(trigger); }
    EndpointTrigger trigger_of(const ConnectionEvent& event) const noexcept;

    StateMachine state_;
    const DeviceAttributes& device_;
    const EndpointState after_refusal_;
    EndpointAttributes attributes_;
    std::shared_ptr<ProtectionDomain> domain_;
    std::shared_ptr<CompletionQueue> send_queue_;
    std::shared_ptr<CompletionQueue> receive_queue_;
    std::shared_ptr<SharedReceiveQueue> shared_receives_;
    EndpointObserver* observer_;
    std::unique_ptr<backend::Endpoint> endpoint_;
};

}  // namespace viaduct
