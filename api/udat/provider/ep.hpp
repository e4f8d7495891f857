// SPDX-License-Identifier: BSD-3-Clause
// Endpoints.
#pragma once

#include <array>
#include <atomic>
#include <memory>

#include "api/udat/provider/evd.hpp"
#include "api/udat/provider/object.hpp"
#include "api/udat/provider/pz.hpp"
#include "api/udat/provider/request_cookies.hpp"
#include "api/udat/provider/srq.hpp"
#include "api/udat/provider/translate.hpp"
#include "core/state_machine.hpp"
#include "viaduct/detail/mutex.hpp"
#include "viaduct/endpoint.hpp"

namespace viaduct::dat {

class Cr;
class Segments;

/// The parts of an endpoint, which can be changed while it is not connected.
struct EpParts {
    Pz* pz = nullptr;
    Evd* recv_evd = nullptr;
    Evd* request_evd = nullptr;
    Evd* connect_evd = nullptr;
    Srq* srq = nullptr;
    DAT_COMM comm{};
    DAT_EP_ATTR attr{};
};

class Ep final : public Object, private EndpointObserver {
public:
    static constexpr DAT_HANDLE_TYPE handle_type = DAT_HANDLE_TYPE_EP;

    /// DAT_INVALID_PARAMETER (argument `attr_argument`): the IA does not support an attribute.
    static DAT_RETURN create(Ia& ia, const EpParts& parts, DAT_RETURN_SUBTYPE attr_argument, DAT_EP_HANDLE& ep);

    ~Ep() override;

    /// Creates an endpoint for a request to a service point. The consumer has yet to configure it.
    static std::unique_ptr<Ep> create_for_request(Ia& ia);

    /// Returns the attributes that dat_ep_create(3DAT) uses if the consumer passes none.
    static DAT_EP_ATTR default_attributes(const DeviceAttributes& device) noexcept;
    /// Those of all endpoints. DAT names no reliability level; what it promises holds at both.
    static EndpointAttributes core_attributes(const DeviceAttributes& device) noexcept;

    /// What the provider counts, and what was counted by the core before the counters were reset, as negative numbers.
    Counters<DCNT_EP_ALL_COUNTERS> counters;

    /// What the core has counted.
    using CoreCounters = std::array<DAT_UINT64, DCNT_EP_ALL_COUNTERS>;
    CoreCounters core_counters() const noexcept;

    EndpointState state() const noexcept {
        const EndpointState state = endpoint_ == nullptr ? EndpointState::Unconnected : endpoint_->state();
        return state == EndpointState::Unconnected ? reservation_.state() : state;
    }
    EpState dat_state() const noexcept;
    [[gnu::cold, gnu::noinline]] DAT_RETURN wrong_state() const noexcept;

    void query(DAT_EP_PARAM_MASK mask, DAT_EP_PARAM& param) noexcept;
    DAT_RETURN modify(const EpParts& parts);
    EpParts parts() const noexcept;
    /// The binds that complete in the request EVD, or that no EVD reports.
    Binds& binds() noexcept { return request_evd_ ? request_evd_->binds : own_binds_; }
    /// Called before a window of DAT_RMR_SCOPE_EP is bound. Throws std::bad_alloc.
    void add_window(const std::shared_ptr<WindowBindings>& window) {
        const LockGuard lock(parts_lock_);
        windows_.add(window);
    }
    /// The peer has ended the binding.
    void end_binding(DAT_RMR_CONTEXT context) noexcept {
        const LockGuard lock(parts_lock_);
        windows_.end(context);
    }
    Pz* pz() const noexcept { return pz_.get(); }
    DAT_RETURN reset() noexcept;
    DAT_COUNT outstanding(QueueKind queue) const noexcept;
    /// The number of receives that have not completed, or DAT_VALUE_UNKNOWN: those of a shared queue are not counted
    /// per endpoint.
    DAT_COUNT incomplete_receives() noexcept;
    bool idle(QueueKind queue) const noexcept { return outstanding(queue) == 0; }

    /// Reports whether a dispatcher may still have completions of this endpoint. Receives of a shared queue are not
    /// counted per endpoint.
    bool awaited_on(const Evd& evd) const noexcept {
        const LockGuard lock(parts_lock_);
        return (recv_evd_.get() == &evd && (srq_ || !idle(QueueKind::Receive))) ||
               (request_evd_.get() == &evd && !idle(QueueKind::Send));
    }

    /// Called when a shared queue may have become longer, also before dat_srq_resize(3DAT) could find this endpoint or
    /// its new parts: more receives may complete on the dispatcher.
    void follow_depth() noexcept;

    // Connections: see api/udat/provider/connection.cpp.

    struct Request {
        HostAddress host;
        std::uint16_t port = 0;
        DAT_CONN_QUAL qual = 0;
        DAT_TIMEOUT timeout = 0;
        PrivateData private_data;
    };
    DAT_RETURN connect(const Request& request);
    /// Called when the endpoint was reserved for the request: dat_ep_query(3DAT) tells who asks.
    void set_peer(Cr& cr) noexcept;
    /// The endpoint is that of the request, or unconnected if the request has none.
    DAT_RETURN accept(Cr& cr, const PrivateData& private_data);
    /// Reserves the endpoint for a service point, which then changes its state with follow().
    DAT_RETURN reserve() noexcept;
    DAT_RETURN disconnect(DAT_CLOSE_FLAGS flags) noexcept;

    /// Returns the peer of the connection. Valid in the state Connected.
    Request remote() const noexcept {
        const LockGuard lock(events_lock_);
        return remote_;
    }

    /// Changes the state of an endpoint that a service point has reserved. Returns false if the state does not allow
    /// it.
    bool follow(EndpointTrigger trigger) noexcept { return reservation_.apply(trigger); }

    /// Called when the consumer has seen that a connection attempt failed: flushes the posted requests.
    [[gnu::cold, gnu::noinline]] void settle() noexcept;
    void settle_if_failed() noexcept {
        if (state() == EndpointState::Disconnected) settle();
    }
    /// Returns the state. If it tells of a failure, that has been settled.
    DAT_EP_STATE settled_state() noexcept {
        const DAT_EP_STATE seen = dat_state().value;
        settle_if_failed();
        return seen;
    }

    // Data transfers: see api/udat/provider/transfer.cpp. Simple requests are posted directly. post_any() and
    // post_any_receive() post all requests and report all errors.

    DAT_RETURN post_send(DAT_DTO_COOKIE cookie, DAT_COUNT segments, const DAT_LMR_TRIPLET* iov,
                         DAT_COMPLETION_FLAGS flags) noexcept;
    DAT_RETURN post_rdma(Opcode opcode, DAT_DTO_COOKIE cookie, DAT_COUNT segments, const DAT_LMR_TRIPLET* iov,
                         const DAT_RMR_TRIPLET* remote, DAT_COMPLETION_FLAGS flags) noexcept;
    DAT_RETURN post_receive(DAT_DTO_COOKIE cookie, DAT_COUNT segments, const DAT_LMR_TRIPLET* iov,
                            DAT_COMPLETION_FLAGS flags) noexcept;

    [[gnu::noinline]] DAT_RETURN post_any(SendRequest&& request, DAT_COUNT segments, const DAT_LMR_TRIPLET* iov,
                                          DAT_COMPLETION_FLAGS flags) noexcept;
    [[gnu::noinline]] DAT_RETURN post_any_rdma(SendRequest&& request, DAT_COUNT segments, const DAT_LMR_TRIPLET* iov,
                                               const DAT_RMR_TRIPLET* remote, DAT_COMPLETION_FLAGS flags,
                                               DAT_RETURN_SUBTYPE flags_argument = DAT_INVALID_ARG6) noexcept;
    [[gnu::noinline]] DAT_RETURN post_any_receive(DAT_DTO_COOKIE cookie, DAT_COUNT segments, const DAT_LMR_TRIPLET* iov,
                                                  DAT_COMPLETION_FLAGS flags) noexcept;
    DAT_RETURN bind(MemoryWindow& window, BindRequest request, DAT_COMPLETION_FLAGS flags) noexcept;

    /// Takes the completions of requests that no EVD reports.
    void discard_requests() const noexcept {
        if (own_request_queue_ != nullptr) discard(*own_request_queue_, &own_binds_);
    }

    /// As discard_requests(), while other threads may change the parts.
    void settle_binds() const noexcept {
        const LockGuard lock(parts_lock_);
        discard_requests();
    }

    /// Takes the completions of all requests that no event reports. Not while parts of an endpoint are locked.
    void collect_unreported() const noexcept {
        discard_requests();
        if (request_evd_) (void)request_evd_->collect_suppressed();
    }

    /// Restores the cookie of the request in a completion. Returns true if the completion wakes no waiter.
    bool restore_cookie(Completion& completion) noexcept;

    /// Counts a completed receive of a message with immediate data, which the core counts like others.
    void count_immediate(std::uint32_t bytes) noexcept {
        immediate_messages_.add();
        immediate_bytes_.add(bytes);
    }

    bool provider_made() const noexcept { return provider_made_; }

private:
    /// What the consumer knows of a connection.
    enum class Progress : std::uint8_t {
        None,          ///< there is none, or its end was reported
        Connecting,    ///< the consumer has requested or accepted it
        Cancelled,     ///< and has requested to end it
        Connected,     ///< reported by an event
        Disconnecting  ///< and the consumer has requested to end it
    };

    explicit Ep(Ia& ia, EndpointState initial = EndpointState::Unconnected);

    /// Recreates the endpoint of the core, or removes it if a required part is missing.
    DAT_RETURN rebuild(const EpParts& parts);
    DAT_RETURN check_flags(DAT_COMPLETION_FLAGS flags, DAT_RETURN_SUBTYPE argument) const noexcept;
    DAT_RETURN check_posting() noexcept;
    [[gnu::cold, gnu::noinline]] DAT_RETURN refuse_post(Status status, QueueKind queue) const noexcept;
    [[gnu::cold, gnu::noinline]] bool makes_room(Status status) const noexcept;
    Status post_request(auto post) const noexcept;
    [[gnu::cold, gnu::noinline]] DAT_RETURN post_again(Status status, const SendRequest& request) const noexcept;
    DAT_RETURN hand_over(SendRequest& request, const Segments& pieces, DAT_COMPLETION_FLAGS flags) noexcept;
    void choose_direct_endpoints() noexcept;
    std::shared_ptr<CompletionQueue> queue_of(Evd* evd, Srq* srq, DAT_COUNT depth,
                                              std::shared_ptr<CompletionQueue>& own);
    void on_connection_event(const ConnectionEvent& event) noexcept override;
    RequestTerms terms_of(const FailedRequest& request) const noexcept override;
    void set_peer(std::uint16_t local_port, const Request& remote, const sockaddr_storage& address) noexcept;
    void begin() noexcept;
    Status ask(const Request& request);
    const char* lacks() const noexcept;
    void follow_redirection(const Bytes<Address::max_service>& service) noexcept VIADUCT_REQUIRES(events_lock_);
    void tell(DAT_EVENT_NUMBER number, const char* why) noexcept VIADUCT_REQUIRES(events_lock_);
    void end(DAT_EVENT_NUMBER number, const char* why) noexcept VIADUCT_REQUIRES(events_lock_);

    /// Held while parts change, and by threads that take events from any dispatcher.
    mutable Mutex parts_lock_;

    Use<Pz> pz_;
    Use<Evd> recv_evd_;
    Use<Evd> request_evd_;
    EvdLink connect_evd_;
    Use<Srq> srq_;
    CompletionStream recv_stream_;
    CompletionStream request_stream_;
    DAT_COMM comm_{};
    DAT_EP_ATTR attr_{};
    std::atomic<bool> provider_made_{false};  ///< for a request, and not reserved by the consumer since

    /// The state of an unconnected endpoint that belongs to a service point. The core may have no endpoint for it yet,
    /// because the consumer may configure it after the request has arrived.
    StateMachine reservation_;

    sockaddr_storage remote_address_{};
    std::atomic<std::uint16_t> local_port_{0};
    std::array<std::uint8_t, PrivateData::capacity> private_data_{};  // the private data of the peer's answer; the
                                                                      // consumer gets a pointer to it
    std::atomic<DAT_COUNT> private_data_size_{0};

    /// Held while a connection begins. The consumer may free the endpoint as soon as it sees the connection event; the
    /// destructor waits for this lock.
    Mutex connecting_;
    mutable Mutex events_lock_;
    Request remote_ VIADUCT_GUARDED_BY(events_lock_);
    Progress progress_ VIADUCT_GUARDED_BY(events_lock_) = Progress::None;

    std::unique_ptr<RequestCookies> recv_cookies_;  // if completions may be unsignalled
    std::unique_ptr<RequestCookies> request_cookies_;

    // The endpoint, if its requests with one segment can be posted directly: they need no cookie, leave no unwanted
    // completions, and receives are not those of a shared queue. Otherwise null.
    Endpoint* direct_requests_ = nullptr;
    Endpoint* direct_receives_ = nullptr;

    Counter immediate_messages_;
    Counter immediate_bytes_;
    EndpointCounters earlier_ VIADUCT_GUARDED_BY(parts_lock_);  // of the endpoints of the core that were replaced

    std::shared_ptr<CompletionQueue> own_recv_queue_;  // used if the consumer wants no completions
    std::shared_ptr<CompletionQueue> own_request_queue_;
    mutable Binds own_binds_;
    EndpointWindows windows_ VIADUCT_GUARDED_BY(parts_lock_){*this};
    std::unique_ptr<Endpoint> endpoint_;  // last, because its observer and queues must outlive it
};

}  // namespace viaduct::dat
