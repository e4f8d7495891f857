// SPDX-License-Identifier: BSD-3-Clause
// The receive queue of an endpoint: receives the messages of its connection, and executes what its peer cannot.
#pragma once

#include "backends/loopback/completion_queue.hpp"
#include "backends/loopback/connection.hpp"
#include "backends/loopback/region_cache.hpp"
#include "backends/loopback/ring_consumer.hpp"
#include "backends/loopback/shared_receive_queue.hpp"
#include "backends/support/flusher.hpp"
#include "backends/support/receive_order.hpp"
#include "backends/support/traffic.hpp"

namespace viaduct::loopback {

class Endpoint;

/// Call all functions with the lock of the completion queue held, unless they say otherwise, except needs_wakeup() and
/// the functions of ring() that are for the send queue.
class ReceiveQueue final : public WorkQueue, private support::ReceiveOrder<ReceiveQueue> {
public:
    /// `shared`: the queue to take receives from, or null.
    ReceiveQueue(Endpoint& endpoint, std::uint64_t endpoint_context, CompletionQueue& completions, std::uint32_t depth,
                 SharedReceiveQueue* shared);
    ~ReceiveQueue();

    CompletionQueue& completions() noexcept { return completions_; }
    BiasedLock& lock() const noexcept VIADUCT_RETURNS_LOCK(completions_.lock()) { return completions_.lock(); }
    bool is_shared() const noexcept { return shared_ != nullptr; }
    const RingConsumer& ring() const noexcept { return ring_; }

    /// Post requests; see backend::Endpoint. They take the lock.
    const Status* post(const ReceiveRequest& request) noexcept;
    const Status* receive_one(std::uint64_t context, void* address, std::uint32_t length, std::uint32_t key) noexcept;
    Status post(std::span<const ReceiveRequest> requests, std::size_t& posted) noexcept;
    void progress() noexcept override;
    bool poll_one_as_owner(Completion& out) noexcept override VIADUCT_RELEASE(lock());

    // See CompletionQueue.
    bool is_polled() const noexcept VIADUCT_REQUIRES(lock()) { return completions_.is_polled(*this); }
    bool rings_often() noexcept VIADUCT_REQUIRES(lock()) { return completions_.rings_often(*this); }
    void become_busy() noexcept VIADUCT_REQUIRES(lock()) { completions_.add_busy(*this); }

    /// Lets polls go on with the sends of the endpoint, until none waits.
    void help_sends() noexcept VIADUCT_REQUIRES(lock()) { set(sends_wait, true); }

    /// Confirms consumed slots to the peer immediately.
    void confirm_promptly() noexcept VIADUCT_REQUIRES(lock());

    /// Confirms consumed slots. The peer may see that later, unless it waits.
    void confirm_lazily() noexcept VIADUCT_REQUIRES(lock()) {
        if (connection_ != nullptr) confirm(0);
    }

    /// Sets the need-wakeup flag, which asks the peer to ring the doorbell for every message, unless the consumer
    /// polls.
    void update_wakeup(bool polled) noexcept VIADUCT_REQUIRES(lock());
    bool needs_wakeup() const noexcept { return needs_wakeup_.load(std::memory_order_relaxed); }
    void expect_ring() noexcept override {
        lock().assume_held();
        update_wakeup(false);
    }

    /// Starts to announce the number of posted receives to the peer.
    void advertise(Connection& connection) noexcept VIADUCT_REQUIRES(lock());

    /// Starts to consume slots.
    void attach(Connection& connection) noexcept VIADUCT_REQUIRES(lock());

    /// Receives the messages that have arrived, stops consuming slots and completes the remaining receives as Flushed.
    /// `reject`: receives posted later are flushed, too.
    void detach(bool reject) noexcept VIADUCT_REQUIRES(lock());

    /// Reverts advertise() when the connection was not established. Posted receives are kept.
    void withdraw_credits() noexcept VIADUCT_REQUIRES(lock()) { ring_.withdraw(); }

    /// Whether the peer has caused the end of the connection: its request was refused, or violates the protocol.
    bool peer_failed() const noexcept VIADUCT_REQUIRES(lock()) { return is(by_peer); }

    /// Adds the counters. Needs no lock.
    void add_to(EndpointCounters& counters) const noexcept;

private:
    friend class support::ReceiveOrder<ReceiveQueue>;

    /// A copy of the fields of a slot, taken once because the peer may change them at any time.
    struct Arrival : support::Arrival {
        wire::SlotKind kind{};
        std::uint8_t flags = 0;
        std::uint32_t length = 0;            // of this fragment
        const std::byte* payload = nullptr;  // inline or in the area; null if the slot is invalid
    };

    /// What the common case of a message does not handle.
    enum Special : unsigned {
        stopped = 1,          // not connected, or the next slot cannot be consumed and ends the connection
        in_message = 2,       // the next slot continues a message
        short_transfers = 4,  // the maximum transfer size is less than what a slot holds
        by_peer = 8,          // stopped because of the peer
        sends_wait = 16,      // polls go on with the sends of the endpoint
    };
    bool is(Special special) const noexcept { return (special_ & special) != 0; }
    void set(Special special, bool on) noexcept { special_ = on ? special_ | special : special_ & ~special; }

    // The common case of a post and of a message.
    [[gnu::always_inline]] Posted post_directly(const ReceiveRequest& request) noexcept VIADUCT_REQUIRES(lock());
    [[gnu::noinline]] const Status* ring_as_owner() noexcept VIADUCT_RELEASE(lock());
    template <Kind kind>
    [[gnu::always_inline]] bool deliver(const wire::Slot& slot, std::uint8_t flags, const Receive& receive,
                                        Completion& out) noexcept VIADUCT_REQUIRES(lock());
    [[gnu::always_inline]] bool consume_delivered(std::uint32_t count, std::uint64_t bytes, Way way,
                                                  const wire::Slot& last) noexcept VIADUCT_REQUIRES(lock());
    bool receive_delivered(std::uint8_t& seen) noexcept VIADUCT_REQUIRES(lock());
    [[gnu::noinline]] bool receive_one_as_owner(const wire::Slot& slot, std::uint8_t flags, Completion& out) noexcept
        VIADUCT_RELEASE(lock());
    [[gnu::noinline]] bool confirm_as_owner() noexcept VIADUCT_RELEASE(lock());

    // For ReceiveOrder, which is called with the lock held.
    Endpoint& endpoint() noexcept { return endpoint_; }
    void reserve(std::size_t requests) noexcept { set_room(requests); }
    void was_posted() noexcept;
    bool may_use(const Sge& sge, std::uint64_t bytes) noexcept;
    void push(const Completion& completion, bool solicited) noexcept {
        lock().assume_held();
        if (shared_ != nullptr) completions_.give_back_place();
        completions_.push(completion, *this, solicited);
    }
    void count(CountedOperation operation, Way way, std::uint64_t bytes) noexcept {
        traffic_.add(operation, way, bytes);
    }
    [[gnu::noinline]] void refuse(CompletionCode code) noexcept;

    Arrival read(const wire::Slot& slot) const noexcept VIADUCT_REQUIRES(lock());
    [[gnu::noinline]] bool receive(const wire::Slot& slot) noexcept VIADUCT_REQUIRES(lock());
    /// Reports whether the slot may be consumed now. If not, it stays in the ring, and the doorbell of the connection
    /// is rung when it may be consumed.
    bool is_due(const Arrival& arrival, const wire::Slot& slot) noexcept VIADUCT_REQUIRES(lock());
    [[gnu::noinline]] bool have_receive() noexcept VIADUCT_REQUIRES(lock());
    [[gnu::noinline]] bool is_flushed(const wire::Slot& slot) noexcept VIADUCT_REQUIRES(lock());
    [[gnu::noinline]] void consume(const Arrival& arrival, const wire::Slot& slot) noexcept VIADUCT_REQUIRES(lock());
    void receive_fragment(const Arrival& arrival) noexcept VIADUCT_REQUIRES(lock());
    [[gnu::noinline]] void consume_notice(const Arrival& arrival) noexcept VIADUCT_REQUIRES(lock());
    [[gnu::noinline]] void serve_agent_order(const Arrival& arrival, const wire::Slot& slot) noexcept
        VIADUCT_REQUIRES(lock());
    [[gnu::noinline]] void finish_flush(const wire::Slot& slot) noexcept VIADUCT_REQUIRES(lock());
    [[gnu::noinline]] void was_refused(AsyncEventKind kind, CompletedOperation operation) noexcept
        VIADUCT_REQUIRES(lock());
    [[gnu::noinline]] void refuse_order(RemoteUse use, CompletedOperation operation, const wire::AgentTransfer& order,
                                        std::uint64_t bytes) noexcept VIADUCT_REQUIRES(lock());
    [[gnu::noinline]] void fail_connection(wire::Fault fault, bool caused_by_peer) noexcept VIADUCT_REQUIRES(lock());
    /// The connection cannot continue; unless another cause is given, because the peer violates the protocol.
    void stop(bool caused_by_peer = true) noexcept VIADUCT_REQUIRES(lock());
    void confirm_if_due(std::uint8_t seen) noexcept VIADUCT_REQUIRES(lock());
    [[gnu::noinline]] void confirm(std::uint8_t seen) noexcept VIADUCT_REQUIRES(lock());

    Endpoint& endpoint_;
    CompletionQueue& completions_;
    const std::uint64_t endpoint_context_;
    Connection* connection_ = nullptr;  // while slots are consumed from it
    SharedReceiveQueue* const shared_;
    SharedReceiveQueue::Member member_;
    support::IncomingTraffic<Way::Slot, Way::Agent> traffic_;
    RingConsumer ring_;
    RegionCache local_;                         // for the SGEs of receives
    std::shared_ptr<support::FlushJob> flush_;  // requested by the next slot

    unsigned special_ = stopped;
    std::atomic<bool> needs_wakeup_{false};  // whether the peer was asked to ring
    bool acknowledgment_due_ = false;        // a sender waits for a confirmation, but it is not urgent
    bool rejecting_ = false;                 // broken: posted receives complete as Flushed
};

}  // namespace viaduct::loopback
