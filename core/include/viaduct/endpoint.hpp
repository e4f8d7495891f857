// SPDX-License-Identifier: BSD-3-Clause
// An endpoint: a send queue, a receive queue, a state and, while it is connected, a connection.
#pragma once

#include <atomic>
#include <memory>
#include <span>

#include "viaduct/completion_queue.hpp"
#include "viaduct/detail/mutex.hpp"
#include "viaduct/detail/state_machine.hpp"
#include "viaduct/device.hpp"
#include "viaduct/shared_receive_queue.hpp"

namespace viaduct {

template <class Event>
class EventChannel;

struct EndpointConfig {
    EndpointAttributes attributes;
    std::shared_ptr<ProtectionDomain> domain;
    std::shared_ptr<CompletionQueue> send_queue;
    std::shared_ptr<CompletionQueue> receive_queue;         ///< may be the same as send_queue
    std::shared_ptr<SharedReceiveQueue> shared_receives{};  ///< where receives are taken from; null: the endpoint's own
    std::uint32_t send_depth = default_depth;               ///< maximum number of outstanding requests; may be 0
    std::uint32_t receive_depth = default_depth;
    std::uint32_t max_sges = 0;  ///< maximum number of pieces of a request; 0: the maximum of the device
    std::uint64_t context = 0;   ///< returned in completions and events
    /// Called after the state has changed; must outlive the endpoint. Null: the endpoint keeps its events for
    /// next_event().
    EndpointObserver* observer = nullptr;

    /// The state after a failed attempt to connect: Unconnected, in which the endpoint can try again and keeps its
    /// posted receives, or Disconnected, until disconnect() is called. A reliable endpoint whose peer was unreachable
    /// is always Disconnected.
    EndpointState after_refusal = EndpointState::Unconnected;
};

/// The memory that a window gives access to. Of the access rights of the region, only `local_write` matters: a window
/// that peers may write to needs it.
struct BindRequest {
    std::uint64_t context = 0;             ///< returned in the completion
    const MemoryRegion* region = nullptr;  ///< of the domain of the window and of the endpoint
    void* address = nullptr;
    std::uint64_t length = 0;  ///< 0: unbind the window; region, address and access are ignored
    Access access{};           ///< what peers may do
    bool fence = false;        ///< as in SendRequest
    bool signaled = true;      ///< as in SendRequest
};

/// A send queue, a receive queue, a state and, while it is connected, a connection.
class VIADUCT_EXPORT Endpoint final : private EndpointObserver {
public:
    /// InvalidReliability, InvalidTransferSize, InvalidQos, InvalidRdmaRead: the device does not support the attribute.
    /// InvalidParameter: a depth or the number of pieces is above the maximum of the device.
    static Result<std::unique_ptr<Endpoint>> create(const EndpointConfig& config);

    /// Ends the connection, if there is one; the peer gets Disconnected.
    ~Endpoint();

    EndpointState state() const noexcept { return state_.state(); }
    const EndpointAttributes& attributes() const noexcept { return attributes_; }
    const std::shared_ptr<ProtectionDomain>& domain() const noexcept { return domain_; }
    const Device& device() const noexcept { return owner_; }

    /// Values since the endpoint was created. Takes no lock.
    EndpointCounters counters() const noexcept;

    /// The process at the other end of the connection; 0 if there is none or it is not known.
    pid_t peer_process() const noexcept;

    /// Changes attributes and domain. InvalidState: not Unconnected. Attributes: as create().
    Status modify(const EndpointAttributes& attributes, std::shared_ptr<ProtectionDomain> domain) noexcept;

    // ---- Work requests ----

    /// Posts requests in order and stops at the first one that cannot be posted; `posted` is the number of those before
    /// it. If the endpoint is not connected, they complete as Flushed. QueueFull: the queue has no room.
    /// InvalidParameter: more pieces than the endpoint or the device supports.
    Status post_send(std::span<const SendRequest> requests, std::size_t& posted) noexcept {
        return endpoint_->post_send(requests, posted);
    }
    [[gnu::always_inline]] Status post_send(const SendRequest& request) noexcept {
        return result_of(endpoint_->post_send(request));
    }

    /// Posts requests to the receive queue; errors as post_send(). Receives can be posted before the endpoint is
    /// connected. After a connection has broken, they complete as Flushed until disconnect() is called. InvalidState:
    /// the endpoint takes its receives from a shared queue.
    Status post_receive(std::span<const ReceiveRequest> requests, std::size_t& posted) noexcept {
        return endpoint_->post_receive(requests, posted);
    }
    [[gnu::always_inline]] Status post_receive(const ReceiveRequest& request) noexcept {
        return result_of(endpoint_->post_receive(request));
    }

    /// Posts a request to bind the window; it then gives access to this memory only. The request is processed in the
    /// order of the send queue, so requests posted after it may already refer to the new key. If the region or a domain
    /// does not match, it completes with LocalProtection, which breaks a reliable connection. After a failure, the
    /// window gives access to nothing, or to the same memory as before. A window must not be bound by two threads at
    /// the same time. QueueFull: the send queue has no room.
    Status bind(MemoryWindow& window, const BindRequest& request) noexcept;

    /// The number of posted requests whose completions have not been polled.
    std::uint32_t outstanding(QueueKind queue) const noexcept { return endpoint_->outstanding(queue); }

    /// The maximum of that number.
    std::uint32_t depth(QueueKind queue) const noexcept {
        return queue == QueueKind::Send ? send_depth_ : receive_depth_;
    }

    // ---- Connections ----

    /// For poll(2) and epoll(7): readable while there are connection events. Owned by the endpoint. -1: the descriptor
    /// could not be created, or the endpoint has an observer.
    int fd() noexcept;

    /// Takes the oldest connection event; EndpointObserver tells which there are. Those of a connection are discarded
    /// when this side ends it or begins another one. WouldBlock: there is none. InvalidState: the endpoint has an
    /// observer, which gets them.
    Result<ConnectionEvent> next_event() noexcept;

    /// Waits for it. TimedOut: the deadline has passed.
    Result<ConnectionEvent> next_event(const Deadline& deadline);

    /// Starts to connect. If it returns Ok, exactly one event reports the outcome, possibly before the call returns:
    /// Established, Rejected (reason NoListener if the service has no listener), TimedOut, Conflict or Unreachable.
    /// InvalidState: not Unconnected, or inside another call. InvalidParameter: the local host is not that of the
    /// device, or address and private data together are too long for the request. Busy: with the framing Bare, the
    /// local service is a port of the host, and it is in use.
    Status connect(const ConnectParameters& parameters) noexcept;

    /// Accepts a request. The event Established is there before the call returns. InvalidState: not Unconnected; the
    /// request can still be accepted. TimedOut: the peer has given up. NoResources: the call can be repeated, and then
    /// returns TimedOut if the device had begun to answer the peer.
    Status accept(ConnectionRequest& request, const PrivateData& private_data = {}) noexcept;

    /// Ends the connection or the attempt to connect, completes all posted requests as Flushed, and leaves the endpoint
    /// Unconnected. The peer gets Disconnected. No event of the old connection follows. If another thread is inside
    /// connect() or accept(), what that call has begun ends when it returns.
    void disconnect() noexcept;

    /// As disconnect(), but leaves the endpoint Disconnected: requests that are posted complete as Flushed until
    /// disconnect() is called.
    void terminate() noexcept;

    /// Ends the connection when the requests in the send queue have completed; does not wait for them. Both
    /// ends then get Disconnected, this one possibly during the call. If the connection breaks first, both get Lost.
    /// Requests that are posted in the meantime complete as Flushed, after the others. InvalidState: not connected.
    Status drain_and_disconnect() noexcept;

private:
    friend struct Internals;
    friend class Registry;
    struct Addresses {
        Address local;
        Address remote;
    };

    explicit Endpoint(const EndpointConfig& config);
    void on_connection_event(const ConnectionEvent& event) noexcept override;
    void on_failed_request(const FailedRequest& failed) noexcept override;
    RequestTerms terms_of(const FailedRequest& request) const noexcept override;

    [[gnu::always_inline]] static Status result_of(const Status* failure) noexcept {
        return failure == nullptr ? Status() : *failure;
    }
    bool apply(EndpointTrigger trigger) noexcept { return state_.apply(trigger); }
    bool apply_outcome(const ConnectionEvent& event) noexcept;
    backend::Endpoint& backend() const noexcept;
    void fail() noexcept;
    void flush() noexcept;
    void break_off() noexcept VIADUCT_REQUIRES(connecting_);
    Status begin_attempt(EndpointTrigger trigger) noexcept VIADUCT_REQUIRES(connecting_);
    bool end_attempt() noexcept VIADUCT_REQUIRES(connecting_);
    void set_addresses(const Address& local, const Address& remote) noexcept;
    void count(const ConnectionEvent& event) noexcept;
    void forget_attempt() noexcept;
    EndpointTrigger trigger_of(const ConnectionEvent& event) const noexcept;

    detail::StateMachine state_;
    const DeviceAttributes& device_;
    const EndpointState after_refusal_;
    std::atomic<bool> unflushed_ = false;  // a failed attempt has left it Disconnected
    EndpointAttributes attributes_;
    std::shared_ptr<ProtectionDomain> domain_;
    std::shared_ptr<CompletionQueue> send_queue_;
    std::shared_ptr<CompletionQueue> receive_queue_;
    std::shared_ptr<SharedReceiveQueue> shared_receives_;
    EndpointObserver* observer_;
    std::unique_ptr<EventChannel<ConnectionEvent>> events_;  // null: there is an observer
    Owned<detail::PostInterface> endpoint_;
    Device& owner_;
    std::uint32_t send_depth_ = 0;
    std::uint32_t receive_depth_ = 0;
    Addresses addresses_;  // of the connection or the last attempt; guarded by the lock of the registry
    Mutex connecting_;     // held while state and backend change together, but not while the backend connects
    bool calling_ VIADUCT_GUARDED_BY(connecting_) = false;    // a thread is connecting or accepting
    bool abandoned_ VIADUCT_GUARDED_BY(connecting_) = false;  // another one has ended what it has begun
};

}  // namespace viaduct
