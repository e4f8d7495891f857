// SPDX-License-Identifier: BSD-3-Clause
// The receive queue of an endpoint: the consumer of a connection's incoming slots.
#pragma once

#include "backends/loopback/completion_queue.hpp"
#include "backends/loopback/connection.hpp"
#include "backends/loopback/flusher.hpp"
#include "backends/loopback/shared_receive_queue.hpp"

namespace viaduct::loopback {

class Endpoint;

/// Everything is called with the lock of the completion queue held, but for posted_total(), consumed_total() and
/// wants_attention().
class ReceiveQueue final : public WorkQueue {
public:
    /// `shared`: where receives are taken from, or null.
    ReceiveQueue(Endpoint& endpoint, CompletionQueue& completions, std::uint32_t depth, SharedReceiveQueue* shared);
    ~ReceiveQueue();

    CompletionQueue& completions() noexcept { return completions_; }
    bool is_shared() const noexcept { return shared_ != nullptr; }
    Status post(const ReceiveRequest& request);
    void progress() noexcept override;

    /// Tells the peer at once what is consumed.
    void confirm_promptly() noexcept;

    /// Asks the peer to ring for every message unless the consumer polls.
    void attend(bool polled) noexcept;
    bool wants_attention() const noexcept { return attention_.load(std::memory_order_relaxed); }
    void expect_ring() noexcept override { attend(false); }

    /// Tells the peer how many receives are posted, from now on.
    void advertise(Connection& connection) noexcept;

    /// Begins to consume.
    void attach(Connection& connection) noexcept;

    /// Receives what has arrived, ends consumption and completes the remaining receives as Flushed. `reject`: what is
    /// posted later as well, until reset().
    void detach(bool reject) noexcept;

    /// Takes back advertise(): the connection did not come about. What is posted stays.
    void withdraw_credits() noexcept;
    void reset() noexcept { rejecting_ = false; }

    /// Receives posted since advertise(), for the messages of the send queue.
    std::uint32_t posted_total() const noexcept { return posted_.load(std::memory_order_relaxed); }

    /// How many slots the peer has consumed, as the next message says, or the last one did. For the send
    /// queue, whose consumer may not look for messages now.
    std::uint64_t consumed_by_next_slot(Connection& connection) const noexcept;

    /// Slots consumed on this connection, modulo 2^16, likewise.
    std::uint16_t consumed_total() const noexcept {
        return static_cast<std::uint16_t>(next_.load(std::memory_order_acquire));
    }

private:
    /// The fields of a slot, copied once: the peer may change them at any time.
    struct Arrival {
        wire::SlotKind kind;
        std::uint8_t flags;
        std::uint32_t length;
        std::uint32_t immediate;
        std::uint32_t total;       // of the message
        const std::byte* payload;  // inline, or in the area; null where the slot is not sound
    };
    Arrival read(const wire::Slot& slot) const noexcept;

    // Out of line is what small messages seldom need: see Endpoint::post_send().
    /// Whether the slot may be consumed now; else it stays, and the connection is rung when it may.
    bool is_due(const Arrival& arrival, const wire::Slot& slot) noexcept;
    [[gnu::noinline]] bool have_receive() noexcept;
    [[gnu::noinline]] bool is_flushed(const wire::Slot& slot) noexcept;
    void consume(const Arrival& arrival, const wire::Slot& slot) noexcept;
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
    Connection* connection_ = nullptr;     // consumed from
    Connection* advertised_to_ = nullptr;  // told of receives
    SharedReceiveQueue* const shared_;
    SharedReceiveQueue::Member member_;
    support::Fifo<Receive> entries_{16};  // with a shared queue: the receive of the message that is coming in
    std::atomic<std::uint32_t> posted_{0};
    std::shared_ptr<FlushJob> flush_;  // ordered by the slot that is next

    std::atomic<std::uint32_t> next_{0};  // slots consumed, in total; read by the send queue, too
    std::uint32_t published_ = 0;         // of those, told to the producer
    std::uint64_t received_ = 0;          // bytes of the message that is coming in fragments
    std::atomic<bool> attention_{false};  // what the peer was asked for
    bool acknowledgment_due_ = false;     // a sender waits for a confirmation, without haste
    bool in_message_ = false;
    bool skipping_ = false;   // its fragments are dropped: the receive has failed
    bool stopped_ = false;    // the next slot cannot be consumed: it ends the connection, and nothing follows it
    bool rejecting_ = false;  // broken: posted receives complete as Flushed
};

}  // namespace viaduct::loopback
