// SPDX-License-Identifier: BSD-3-Clause
// Endpoints.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>

#include "api/udat/provider/evd.hpp"
#include "api/udat/provider/object.hpp"
#include "api/udat/provider/pz.hpp"
#include "api/udat/provider/request_cookies.hpp"
#include "api/udat/provider/srq.hpp"
#include "core/endpoint.hpp"

namespace viaduct::dat {

class Cr;
class Segments;

/// What an endpoint is made of and can be changed while it is not connected.
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

    /// DAT_INVALID_PARAMETER (argument `attr_argument`): an attribute is beyond what the IA can do.
    static DAT_RETURN create(Ia& ia, const EpParts& parts, DAT_RETURN_SUBTYPE attr_argument, std::unique_ptr<Ep>& ep);

    ~Ep() override;

    /// Made for a request to a service point; the consumer has yet to configure it.
    static std::unique_ptr<Ep> create_for_request(Ia& ia);

    /// What dat_ep_create(3DAT) gives where the consumer names no attributes.
    static DAT_EP_ATTR default_attributes(const DeviceAttributes& device) noexcept;

    Counters<DCNT_EP_ALL_COUNTERS> counters;

    EndpointState state() const noexcept {
        const EndpointState state = endpoint_ == nullptr ? EndpointState::Unconnected : endpoint_->state();
        return state == EndpointState::Unconnected ? reservation_.state() : state;
    }
    DAT_EP_STATE dat_state() const noexcept;
    [[gnu::cold, gnu::noinline]] DAT_RETURN wrong_state() const noexcept;

    DAT_RETURN query(DAT_EP_PARAM_MASK mask, DAT_EP_PARAM& param) noexcept;
    DAT_RETURN modify(const EpParts& parts);
    EpParts parts() const noexcept;
    const DAT_EP_ATTR& attr() const noexcept { return attr_; }
    Evd* request_evd() const noexcept { return request_evd_.get(); }
    Pz* pz() const noexcept { return pz_.get(); }
    Srq* srq() const noexcept { return srq_.get(); }
    DAT_RETURN reset() noexcept;
    DAT_COUNT outstanding(QueueKind queue) const noexcept;
    bool idle(QueueKind queue) const noexcept { return outstanding(queue) == 0; }

    /// Whether a dispatcher may still have completions of this endpoint. Receives of a shared queue are not told apart.
    bool awaited_on(const Evd& evd) const noexcept {
        const std::lock_guard lock(parts_lock_);
        return (recv_evd_.get() == &evd && (srq_ || !idle(QueueKind::Receive))) ||
               (request_evd_.get() == &evd && !idle(QueueKind::Send));
    }

    // Connections: api/udat/provider/connection.cpp

    struct Request {
        HostAddress host;
        std::uint16_t port = 0;
        DAT_CONN_QUAL qual = 0;
        DAT_TIMEOUT timeout = 0;
        PrivateData private_data;
    };
    DAT_RETURN connect(const Request& request);
    DAT_RETURN accept(Cr& cr, const PrivateData& private_data);
    DAT_RETURN disconnect(DAT_CLOSE_FLAGS flags) noexcept;

    /// To whom the endpoint is connected. Meaningful in the state Connected.
    Request remote() const noexcept {
        const std::lock_guard lock(events_lock_);
        return remote_;
    }

    /// The reserved endpoint of a service point, on its way to a request and back. False in the wrong state.
    bool follow(EndpointTrigger trigger) noexcept { return reservation_.apply(trigger); }

    /// The consumer has been told that a connection was not made: what was posted is flushed.
    [[gnu::cold, gnu::noinline]] void settle() noexcept;

    // Data transfers: api/udat/provider/transfer.cpp

    DAT_RETURN post(SendRequest&& request, DAT_COUNT segments, const DAT_LMR_TRIPLET* iov,
                    DAT_COMPLETION_FLAGS flags) noexcept;
    DAT_RETURN post_rdma(SendRequest&& request, DAT_COUNT segments, const DAT_LMR_TRIPLET* iov,
                         const DAT_RMR_TRIPLET* remote, DAT_COMPLETION_FLAGS flags,
                         DAT_RETURN_SUBTYPE flags_argument = DAT_INVALID_ARG6) noexcept;
    DAT_RETURN post_receive(DAT_DTO_COOKIE cookie, DAT_COUNT segments, const DAT_LMR_TRIPLET* iov,
                            DAT_COMPLETION_FLAGS flags) noexcept;
    DAT_RETURN bind(MemoryWindow& window, BindRequest request, DAT_COMPLETION_FLAGS flags) noexcept;

    /// Puts the cookie of its request into a completion. True: it is to wake nobody.
    bool restore_cookie(Completion& completion) noexcept;

    /// Counts a receive that is taken.
    void count_receive(const Completion& completion) noexcept;

    bool provider_made() const noexcept { return provider_made_; }

private:
    explicit Ep(Ia& ia, EndpointState initial = EndpointState::Unconnected);

    /// Makes the endpoint of the core anew, or none where parts are lacking that it needs.
    DAT_RETURN rebuild(const EpParts& parts);
    DAT_RETURN check_flags(DAT_COMPLETION_FLAGS flags, DAT_RETURN_SUBTYPE argument) const noexcept;
    DAT_RETURN check_posting() noexcept;
    DAT_RETURN hand_over(SendRequest& request, const Segments& pieces, DAT_COMPLETION_FLAGS flags) noexcept;
    std::shared_ptr<CompletionQueue> queue_of(Evd* evd, DAT_COUNT depth, std::shared_ptr<CompletionQueue>& own);
    void on_connection_event(const ConnectionEvent& event) noexcept override;
    void begin(std::uint16_t local_port, const Request& remote, const sockaddr_storage& address) noexcept;
    Status ask(const Request& request);
    void follow_redirection(const Bytes<Address::max_service>& service) noexcept;
    void tell(DAT_EVENT_NUMBER number) noexcept;
    void tell_end(DAT_EVENT_NUMBER number) noexcept;

    /// Held while parts change, and by threads that take events, whichever these are.
    mutable std::mutex parts_lock_;

    Use<Pz> pz_;
    Use<Evd> recv_evd_;
    Use<Evd> request_evd_;
    EvdLink connect_evd_;
    Use<Srq> srq_;
    CompletionStream recv_stream_;
    CompletionStream request_stream_;
    DAT_COMM comm_{};
    DAT_EP_ATTR attr_{};
    bool provider_made_ = false;

    /// The states of an unconnected endpoint that a service point has: the core may have none for it yet, since the
    /// consumer configures it after the request has come.
    StateMachine reservation_;
    std::atomic<bool> flush_due_{false};  // an attempt to connect has failed, and the consumer does not know yet

    sockaddr_storage remote_address_{};
    std::atomic<std::uint16_t> local_port_{0};
    std::array<std::uint8_t, PrivateData::capacity> private_data_{};  // of the peer's answer; the consumer sees it
    std::atomic<DAT_COUNT> private_data_size_{0};

    std::mutex accept_lock_;          // held while a request is accepted; before events_lock_
    mutable std::mutex events_lock_;  // guards what follows
    Request remote_;
    bool connected_ = false;      // and the consumer told so
    bool disconnecting_ = false;  // the consumer has asked for the end of the present connection
    bool told_end_ = true;        // of the present connection

    std::unique_ptr<RequestCookies> recv_cookies_;  // where completions may be such as wake nobody
    std::unique_ptr<RequestCookies> request_cookies_;

    std::shared_ptr<CompletionQueue> own_recv_queue_;  // where the consumer does not want completions
    std::shared_ptr<CompletionQueue> own_request_queue_;
    std::unique_ptr<Endpoint> endpoint_;  // last: its observer and queues outlive it
};

}  // namespace viaduct::dat
