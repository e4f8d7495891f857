// SPDX-License-Identifier: BSD-3-Clause
// Connections, from the creation of their request.
#pragma once

#include <atomic>
#include <memory>

#include "api/rpma/cfg.hpp"
#include "api/rpma/cq.hpp"
#include "api/rpma/handles.hpp"
#include "api/rpma/log.hpp"
#include "api/rpma/srq.hpp"
#include "core/base/event_channel.hpp"
#include "viaduct/endpoint.hpp"

namespace viaduct::rpma {

class Conn final : public WithHandle<Conn, rpma_conn, 9>, private EndpointObserver {
public:
    static constexpr const char* invalid_handle = no_conn;

    /// Of all connections. librpma names no reliability level. What it promises holds at both.
    static constexpr EndpointAttributes attributes{.any_reliable = true,
                                                   .access = {.remote_write = true, .remote_read = true}};

    /// Fails for the same reasons as rpma_conn_req_new(3).
    static int create(const std::shared_ptr<ProtectionDomain>& domain, const ConnSettings& settings,
                      std::unique_ptr<Conn>& conn);

    ~Conn();

    std::uint32_t qp_number() const noexcept { return qp_number_; }
    const Device& device() const noexcept { return *domain_->device(); }
    const Cq& cq() const noexcept { return *cq_; }
    const Cq* rcq() const noexcept { return rcq_.get(); }

    /// Returns null if the two queues have separate channels.
    CompletionChannel* shared_channel() const noexcept { return cq_->shares_channel() ? &cq_->channel() : nullptr; }

    /// Starts to connect. The outcome is an event, unless the call itself fails.
    int connect(const Address& remote, const PrivateData& private_data) noexcept;
    int accept(ConnectionRequest& request, const PrivateData& private_data) noexcept;
    int disconnect() noexcept;

    int next_event(rpma_conn_event& event);
    int event_fd() noexcept { return events_.fd(); }

    /// Null before the connection is established.
    Endpoint* established() const noexcept { return established_.load(std::memory_order_acquire); }
    Endpoint& endpoint() const noexcept { return *endpoint_; }

    [[gnu::always_inline]] int post(const SendRequest& request, const Call& call) noexcept {
        Endpoint* endpoint = established();
        return endpoint == nullptr ? not_connected(call) : result_of_post(endpoint->post_send(request), handle(), call);
    }
    [[gnu::always_inline]] int post(const ReceiveRequest& request, const Call& call) noexcept {
        return result_of_post(endpoint_->post_receive(request), handle(), call);
    }

    /// The data of the peer's request, or of its answer once the program has taken RPMA_CONN_ESTABLISHED.
    void set_private_data(const PrivateData& data) noexcept;
    rpma_conn_private_data private_data() const noexcept;

    /// From the peer's configuration (rpma_conn_apply_remote_peer_cfg(3)).
    std::atomic<bool> direct_write_to_pmem{false};

private:
    Conn(std::shared_ptr<ProtectionDomain> domain, const ConnSettings& settings);
    Status create_queues(const ConnSettings& settings, const Srq* srq);
    Status create_endpoint(const ConnSettings& settings, const Srq* srq);
    void on_connection_event(const ConnectionEvent& event) noexcept override;
    RequestTerms terms_of(const FailedRequest& request) const noexcept override;
    /// What rpma_conn_next_event(3) returns, and why.
    struct Event {
        rpma_conn_event kind;
        Reason why;
    };
    void process_event(const Event& event) noexcept;
    [[gnu::cold, gnu::noinline]] int not_connected(const Call& call) const noexcept;

    const std::shared_ptr<ProtectionDomain> domain_;
    const int timeout_ms_;
    std::atomic<Endpoint*> established_{nullptr};  // null before the connection is established
    std::atomic<bool> ended_{false};               // the last event was reported: rejected, unreachable or closed
    std::atomic<bool> end_reported_{false};  // by an event, or because this side disconnected; the queues refer to it,
                                             // so it is declared before them
    PrivateData private_data_;               // the peer's; written before private_data_known_
    std::atomic<bool> private_data_known_{false};
    EventChannel<Event> events_{3};  // at most established, lost and closed
    const std::uint32_t qp_number_;  // 24 bits, never 0, unique among existing connections, and not reused soon
    std::unique_ptr<Cq> cq_;
    std::unique_ptr<Cq> rcq_;
    std::unique_ptr<Endpoint> endpoint_;  // last, because its observer and queues must outlive it
};

}  // namespace viaduct::rpma
