// SPDX-License-Identifier: BSD-3-Clause
// The receive queue of an endpoint: the consumer of a connection's incoming slots.
#pragma once

#include "backends/loopback/completion_queue.hpp"
#include "backends/loopback/connection.hpp"
#include "backends/loopback/flusher.hpp"
#include "backends/loopback/shared_receive_queue.hpp"

namespace viaduct::loopback {

class Endpoint;

/// Call all functions with the lock of the completion queue held, except posted_total(), consumed_total() and
/// needs_wakeup().
class ReceiveQueue final : public WorkQueue {
public:
    /// `shared`: the queue to take receives from, or null.
    ReceiveQueue(Endpoint& endpoint, CompletionQueue& completions, std::uint32_t depth, SharedReceiveQueue* shared);
    ~ReceiveQueue();

    CompletionQueue& completions() noexcept { return completions_; }
    bool is_shared() const noexcept { return shared_ != nullptr; }
    Status post(const ReceiveRequest& request);
    void progress() noexcept override;

    /// Confirms consumed slots to the peer immediately.
    void confirm_promptly() noexcept;

    /// Confirms consumed slots. The peer may see that later, unless it waits.
    void confirm_lazily() noexcept {
        if (connection_ != nullptr) confirm(true);
    }

    /// Sets the need-wakeup flag, which asks the peer to ring the doorbell for every message, unless the consumer
    /// polls.
    void update_wakeup(bool polled) noexcept;
    bool needs_wakeup() const noexcept { return needs_wakeup_.load(std::memory_order_relaxed); }
    void expect_ring() noexcept override { update_wakeup(false); }

    /// Starts to announce the number of posted receives to the peer.
    void advertise(Connection& connection) noexcept;

    /// Starts to consume slots.
    void attach(Connection& connection) noexcept;

    /// Receives the messages that have arrived, stops consuming slots and completes the remaining receives as Flushed.
    /// `reject`: receives posted later are flushed, too, until reset().
    void detach(bool reject) noexcept;

    /// Reverts advertise() when the connection was not established. Posted receives are kept.
    void withdraw_credits() noexcept;
    void reset() noexcept { rejecting_ = false; }

    /// Returns the number of receives posted since advertise(), to be sent in messages of the send queue.
    std::uint32_t posted_total() const noexcept { return posted_.load(std::memory_order_relaxed); }

    /// Returns how many slots the peer has consumed, according to the next slot or, if it has not arrived, to the last
    /// one. The send queue uses this because the program may poll for sends only.
    std::uint64_t consumed_by_next_slot(Connection& connection) const noexcept;

    /// Returns the number of slots consumed on this connection, modulo 2^16, to be sent in slots of the send queue.
    std::uint16_t consumed_total() const noexcept {
        return static_cast<std::uint16_t>(next_.load(std::memory_order_acquire));
    }

private:
    /// A copy of the fields of a slot, taken once because the peer may change them at any time.
    struct Arrival {
        wire::SlotKind kind;
        std::uint8_t flags;
        std::uint32_t length;
        std::uint32_t immediate;
        std::uint32_t total;       // length of the message
        const std::byte* payload;  // inline or in the area; null if the slot is invalid
    };
    Arrival read(const wire::Slot& slot) const noexcept;
    bool is_whole(const Arrival& arrival) noexcept;
    void receive_whole(const Arrival& arrival) noexcept;

    // Functions that small messages rarely need are not inlined; see Endpoint::post_send().
    /// Reports whether the slot may be consumed now. If not, it stays in the ring, and the doorbell of the connection
    /// is rung when it may be consumed.
    bool is_due(const Arrival& arrival, const wire::Slot& slot) noexcept;
    [[gnu::noinline]] bool have_receive() noexcept;
    [[gnu::noinline]] bool is_flushed(const wire::Slot& slot) noexcept;
    [[gnu::noinline]] void consume(const Arrival& arrival, const wire::Slot& slot) noexcept;
    void receive_fragment(const Arrival& arrival) noexcept;
    [[gnu::noinline]] void abort_message(const Arrival& arrival) noexcept;
    CompletionCode check(const Receive& entry, const Arrival& arrival) const noexcept;
    void finish_front(const Arrival& arrival, std::uint32_t bytes) noexcept;
    void complete_front(const Arrival& arrival, CompletionCode code, std::uint32_t bytes) noexcept;
    [[gnu::noinline]] void fail_front(const Arrival& arrival, CompletionCode code) noexcept;
    [[gnu::noinline]] void serve_agent_order(const Arrival& arrival, const wire::Slot& slot) noexcept;
    [[gnu::noinline]] void finish_flush(const wire::Slot& slot) noexcept;
    [[gnu::noinline]] void refuse_order(RemoteUse use) noexcept;
    [[gnu::noinline]] void fail_connection(wire::Fault fault) noexcept;
    void stop() noexcept;
    [[gnu::noinline]] void publish_consumed() noexcept;
    [[gnu::noinline]] void confirm(bool idle) noexcept;

    Endpoint& endpoint_;
    CompletionQueue& completions_;
    Connection* connection_ = nullptr;     // slots are consumed from it
    Connection* advertised_to_ = nullptr;  // receives are announced to it
    SharedReceiveQueue* const shared_;
    SharedReceiveQueue::Member member_;
    support::Fifo<Receive> entries_{16};  // with a shared queue: the receive of the message that is being received
    std::atomic<std::uint32_t> posted_{0};
    std::shared_ptr<FlushJob> flush_;  // requested by the next slot

    std::atomic<std::uint32_t> next_{0};     // total number of consumed slots; also read by the send queue
    std::uint32_t published_ = 0;            // the number that the producer knows
    std::uint64_t received_ = 0;             // received bytes of the current message
    std::atomic<bool> needs_wakeup_{false};  // whether the peer was asked to ring
    bool acknowledgment_due_ = false;        // a sender waits for a confirmation, but it is not urgent
    bool in_message_ = false;
    bool skipping_ = false;   // the receive has failed, so the remaining fragments of the message are dropped
    bool stopped_ = false;    // the next slot cannot be consumed and ends the connection
    bool rejecting_ = false;  // broken: posted receives complete as Flushed
};

}  // namespace viaduct::loopback
