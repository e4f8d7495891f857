// SPDX-License-Identifier: BSD-3-Clause
// An endpoint of the loopback backend: its two work queues, and setup and teardown of its connection.
#pragma once

#include "backends/loopback/connection.hpp"
#include "backends/loopback/receive_queue.hpp"
#include "backends/loopback/region_table.hpp"
#include "backends/loopback/send_queue.hpp"
#include "backends/support/direct_posts.hpp"
#include "backends/support/endpoint_base.hpp"
#include "core/backend.hpp"

namespace viaduct::loopback {

class Endpoint final : public support::EndpointBase<Endpoint, Device, support::DirectPosts<Endpoint>> {
public:
    Endpoint(Device& device, const backend::EndpointInit& init);
    ~Endpoint() override;

    Status bind(backend::MemoryWindow& window, const backend::BindRequest& request) noexcept override;
    pid_t peer_process() const noexcept override { return peer_process_.load(std::memory_order_relaxed); }
    Status modify(const EndpointAttributes& attributes, const backend::ProtectionDomain& domain) noexcept override;
    Status connect(const ConnectParameters& parameters) noexcept override;
    void disconnect() noexcept override { leave(false); }
    void drain() noexcept override;
    void fail() noexcept override { leave(true); }

    // For the work queues, with the lock of a completion queue held.
    std::uint32_t connection_number() const noexcept { return connection_->number(); }
    /// Checks access to the first `bytes` bytes of an SGE. `cache`: of the caller. Without `looks_up`, returns false if
    /// they are not in the region that was used last.
    template <bool looks_up = true>
    [[gnu::always_inline]] bool may_use(RegionCache& cache, const Sge& sge, std::uint64_t bytes,
                                        bool written) const noexcept {
        const auto address = reinterpret_cast<std::uint64_t>(sge.address);
        const unsigned use = written ? local_write : local_read;
        if constexpr (!looks_up) return cache.allows(sge.key, address, bytes, use);
        return bytes == 0 || cache.allows(sge.key, address, bytes, use,
                                          [this](const RegionView& region) { return local_uses(region); });
    }
    /// Called when requests of the send queue wait for the peer, with its lock held. If this thread usually polls the
    /// receive queue, too, its polls go on with them; otherwise only those of the send queue, and the agent.
    void sends_wait() noexcept VIADUCT_UNCHECKED {
        if (&send_.lock() == &receive_.lock() || !receive_.lock().try_lock_as_owner()) return;
        receive_.help_sends();
        receive_.lock().unlock_as_owner();
    }
    /// Called by polls of the receive queue then, with its lock held. Returns whether requests may still wait.
    bool go_on_sending() noexcept VIADUCT_UNCHECKED {
        if (!send_.lock().try_lock_as_owner()) return send_.outstanding() != 0;  // the agent, for example
        const bool wait = send_.advance();
        send_.lock().unlock_as_owner();
        return wait;
    }
    /// Called after an error that ends the connection. The queues stop until the agent has flushed them.
    void request_break() noexcept;
    /// Called when the send queue has completed what must precede the end of the connection.
    void request_end() noexcept;
    bool is_breaking() const noexcept { return breaking_.load(std::memory_order_acquire); }

    // For connections, with the mutex of the reference held.
    std::shared_ptr<EndpointRef> ref() const noexcept { return ref_; }
    bool is_idle() const noexcept { return connection_ == nullptr && attempt_ == nullptr && !broken_; }
    bool serve(Connection& connection) noexcept;
    bool is_still_polled(const Connection& connection) noexcept;

    /// Called by a consumer that polls the completion queue of the receive queue, with its lock held, when the doorbell
    /// of the connection rang. Does what does not need the other locks. Returns false if serve() must be called, too.
    bool serve_directly() noexcept;
    void peer_hung_up(Connection& connection) noexcept;

    /// Announces the number of posted receives to the future peer.
    void advertise(Connection& connection) noexcept {
        const BiasedLock::SlowPathGuard lock(receive_.lock());
        receive_.advertise(connection);
    }
    void withdraw_credits() noexcept {
        const BiasedLock::SlowPathGuard lock(receive_.lock());
        receive_.withdraw_credits();
    }

    /// Starts to use an open connection, and reports the event to the observer before anybody can take completions.
    void establish(std::shared_ptr<Connection> connection, const ConnectionEvent& event) noexcept;

    /// A connection attempt has ended in vain: reports the event to the observer.
    void attempt_failed(const ConnectionEvent& event) noexcept {
        attempt_.reset();
        observer_.on_connection_event(event);
    }

private:
    friend EndpointBase;
    friend support::DirectPosts<Endpoint>;
    enum LocalUse : unsigned { local_read = 1, local_write = 2 };
    unsigned local_uses(const RegionView& region) const noexcept;
    template <class Change>
    void with_queues_locked(Change change) noexcept VIADUCT_UNCHECKED;
    void lost() noexcept;  ///< this side cannot continue the connection
    [[nodiscard]] std::shared_ptr<Connection> end_connection(bool on_purpose, bool reject_receives,
                                                             CompletionCode in_flight) noexcept;
    void leave(bool fails) noexcept;
    void broke(const ConnectionEvent& event, CompletionCode in_flight, bool on_purpose = false) noexcept {
        (void)end_connection(on_purpose, true, in_flight);
        broken_ = true;
        observer_.on_connection_event(event);
    }

    SendQueue send_;
    ReceiveQueue receive_;
    std::atomic<bool> breaking_{false};
    std::atomic<bool> ending_{false};   // serve() must end the connection
    std::shared_ptr<EndpointRef> ref_;  // its mutex guards the members below; connection_ is changed with both queues
                                        // locked, too
    std::uint32_t polls_seen_ = 0;      // used by serve()
    std::uint32_t receive_polls_served_ = 0;  // used by serve()
    std::uint32_t receive_polls_seen_ = 0;    // used by is_still_polled()
    bool watched_ = false;                    // the agent calls is_still_polled() periodically
    std::shared_ptr<Connection> attempt_;     // the connection until it is established
    std::shared_ptr<Connection> connection_;
    bool broken_ = false;
    std::atomic<pid_t> peer_process_{0};
};

}  // namespace viaduct::loopback
