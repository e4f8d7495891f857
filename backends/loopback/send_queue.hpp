// SPDX-License-Identifier: BSD-3-Clause
// The send queue of an endpoint: the order of its requests, their execution and their completion.
#pragma once

#include "backends/loopback/completion_queue.hpp"
#include "backends/loopback/connection.hpp"
#include "backends/loopback/region_cache.hpp"
#include "backends/loopback/ring_producer.hpp"
#include "backends/support/send_order.hpp"
#include "backends/support/traffic.hpp"

namespace viaduct::loopback {

class Endpoint;

/// How far the execution of a request has come.
struct SendProgress {
    /// Later stages are not followed by earlier ones, except that an awaited answer of the peer's agent continues the
    /// request by the agent.
    enum class Stage : std::uint8_t {
        Unchecked,
        AwaitingCredit,  // the peer rings when it posts a receive
        Started,         // checks are done and credit is taken
        ByAgent,         // the peer's agent has executed a part, so it executes the rest, too
        Awaiting,        // continue when last_slot is consumed
    };
    std::uint64_t first_slot = 0;   // position of the first slot, from Started on
    std::uint64_t last_slot = 0;    // position after the last slot, when InFlight or Awaiting
    std::uint32_t area_offset = 0;  // range of the AgentRead fragment in progress
    Stage stage = Stage::Unchecked;
    Way way = Way::Mapped;  // an empty RDMA operation counts as Mapped
    bool refused = false;   // even if the code is Success
    bool fetched = false;   // the word of the peer has been changed; SendOperation::value is what it contained
};

/// Call all functions with the lock of the completion queue held, unless they say otherwise.
///
/// A request of the common case is executed and completed by the post itself, if it is its turn; SendOrder has all
/// others.
class SendQueue final : public WorkQueue, private support::SendOrder<SendQueue, SendProgress> {
public:
    SendQueue(Endpoint& endpoint, std::uint64_t endpoint_context, CompletionQueue& completions, std::uint32_t depth)
        : WorkQueue(depth), endpoint_(endpoint), completions_(completions), endpoint_context_(endpoint_context) {
        set_room(executed_.capacity());
    }

    CompletionQueue& completions() noexcept { return completions_; }
    BiasedLock& lock() const noexcept VIADUCT_RETURNS_LOCK(completions_.lock()) { return completions_.lock(); }

    /// Post requests; see backend::Endpoint. They take the lock.
    const Status* post(const SendRequest& request) noexcept;
    const Status* send_one(std::uint64_t context, void* address, std::uint32_t length, std::uint32_t key) noexcept;
    const Status* write_one(std::uint64_t context, void* address, std::uint32_t length, std::uint32_t key,
                            std::uint64_t remote_address, std::uint32_t remote_key) noexcept;
    const Status* read_one(std::uint64_t context, void* address, std::uint32_t length, std::uint32_t key,
                           std::uint64_t remote_address, std::uint32_t remote_key) noexcept;
    Status post(std::span<const SendRequest> requests, std::size_t& posted) noexcept;

    void expect_ring() noexcept override;
    bool awaits_confirmation() const noexcept override { return !executed_.empty(); }
    void progress() noexcept override;
    /// Executes what has waited for the peer, as far as possible now. Returns whether something still waits.
    [[gnu::noinline]] bool advance() noexcept VIADUCT_REQUIRES(lock());
    bool poll_one_as_owner(Completion& out) noexcept override VIADUCT_RELEASE(lock());

    void become_busy() noexcept VIADUCT_REQUIRES(lock()) { completions_.add_busy(*this); }

    /// `incoming`: the other direction of the connection.
    void attach(Connection& connection, const RingConsumer& incoming) noexcept VIADUCT_REQUIRES(lock());

    /// Executes no more requests directly, because the connection breaks. May be called by any thread.
    void suspend() noexcept { direct_below_.clear(); }

    /// Executes the requests that are queued now, but no later ones, and notifies the endpoint when that is done.
    void drain() noexcept VIADUCT_REQUIRES(lock());
    using SendOrder::has_drained;

    /// The code of the request because of which the peer broke the connection; Success: none.
    CompletionCode refusal() const noexcept;

    /// Adds the counters. Needs no lock.
    void add_to(EndpointCounters& counters) const noexcept;

    /// Completes the remaining requests: with `in_flight` if the peer may have received them, otherwise with Flushed.
    void detach(CompletionCode in_flight) noexcept VIADUCT_REQUIRES(lock());

private:
    friend class support::SendOrder<SendQueue, SendProgress>;
    using Stage = SendProgress::Stage;
    using Report = support::Report;

    /// Returns the slot flags that all messages and notices of a request have, except `invalidate`.
    static std::uint8_t marks_of(const SendRequest& request) noexcept {
        return static_cast<std::uint8_t>((request.with_immediate ? wire::slot_flags::immediate : 0) |
                                         (request.solicited ? wire::slot_flags::solicited : 0));
    }

    enum class Credit { Taken, Missing, Awaited };

    // The common case of a post.
    template <Kind kind, Opcode opcode>
    [[gnu::always_inline]] Posted post_directly(const SendRequest& request) noexcept VIADUCT_REQUIRES(lock());
    template <Kind kind, RemoteUse use>
    [[gnu::always_inline]] Posted access_directly(const SendRequest& request, std::uint32_t length) noexcept
        VIADUCT_REQUIRES(lock());
    template <Kind kind>
    [[gnu::always_inline]] Posted send_directly(const SendRequest& request, std::uint32_t length) noexcept
        VIADUCT_REQUIRES(lock());
    template <Kind kind>
    [[gnu::always_inline]] bool may_access(const RemoteAddress& remote, std::uint32_t length, unsigned uses) noexcept
        VIADUCT_REQUIRES(lock());
    [[gnu::always_inline]] void finish_in_turn(const SendRequest& request, CompletedOperation operation,
                                               std::uint32_t bytes, std::uint64_t last_slot) noexcept
        VIADUCT_REQUIRES(lock());
    [[gnu::always_inline]] void finish_now(const SendRequest& request, CompletedOperation operation,
                                           std::uint32_t bytes) noexcept VIADUCT_REQUIRES(lock());
    [[gnu::always_inline]] Posted post_any_directly(const SendRequest& request) noexcept VIADUCT_REQUIRES(lock());
    template <Opcode opcode>
    [[gnu::noinline]] const Status* post_as(const SendRequest& request) noexcept;
    template <Opcode opcode>
    [[gnu::noinline]] const Status* post_as_owner(const SendRequest& request) noexcept VIADUCT_RELEASE(lock());
    [[gnu::noinline]] const Status* ring_as_owner() noexcept VIADUCT_RELEASE(lock());
    // Remote: the address and the key of an RDMA operation; empty for a send.
    template <Opcode opcode, class... Remote>
    const Status* post_single(std::uint64_t context, void* address, std::uint32_t length, std::uint32_t key,
                              Remote... remote) noexcept;
    template <Opcode opcode, class... Remote>
    [[gnu::noinline]] const Status* post_single_as_owner(std::uint64_t context, void* address, std::uint32_t length,
                                                         std::uint32_t key, Remote... remote) noexcept
        VIADUCT_RELEASE(lock());

    // For SendOrder, which is called with the lock held.
    Endpoint& endpoint() noexcept { return endpoint_; }
    bool is_attached() const noexcept { return connection_ != nullptr; }
    void push(const Completion& completion) noexcept {
        lock().assume_held();
        completions_.push(completion, *this);
    }
    [[gnu::noinline]] bool make_room() noexcept;
    bool reserve(std::size_t requests) noexcept {
        set_room(requests);
        return true;
    }
    [[gnu::noinline]] Outcome execute(Operation& operation) noexcept;
    std::uint64_t awaited(const Operation& operation, Outcome outcome) noexcept;
    bool is_answered(const support::ExecutedSend& executed) const noexcept {
        return ring_.is_consumed(executed.awaited);
    }
    static void take_answer(const support::ExecutedSend&) noexcept {}
    void await_answers() noexcept {
        if (!ring_.is_waiting()) expect_ring();
    }
    static bool has_begun(const Operation& operation) noexcept {
        return operation.stage == Stage::Awaiting || operation.moved != 0 || operation.fetched;
    }

    void start(Operation& operation) noexcept VIADUCT_REQUIRES(lock()) {
        operation.stage = Stage::Started;
        operation.first_slot = ring_.end();
    }
    Outcome send(Operation& operation) noexcept VIADUCT_REQUIRES(lock());
    [[gnu::noinline]] Outcome send_and_invalidate(Operation& operation) noexcept VIADUCT_REQUIRES(lock());
    Outcome rdma(Operation& operation) noexcept VIADUCT_REQUIRES(lock());
    Outcome transfer(Operation& operation, const RegionView& region) noexcept VIADUCT_REQUIRES(lock());
    Outcome transfer_directly(Operation& operation, std::byte* target) noexcept VIADUCT_REQUIRES(lock());
    Outcome fetch_word(Operation& operation, std::byte* target) noexcept VIADUCT_REQUIRES(lock());
    Outcome store_fetched(Operation& operation) noexcept VIADUCT_REQUIRES(lock());
    [[gnu::noinline]] Outcome lose(Operation& operation) noexcept VIADUCT_REQUIRES(lock());
    [[gnu::noinline]] Outcome transfer_by_kernel(Operation& operation) noexcept VIADUCT_REQUIRES(lock());
    [[gnu::noinline]] Outcome transfer_by_agent(Operation& operation) noexcept VIADUCT_REQUIRES(lock());
    void place_order(Operation& operation, std::uint32_t length, std::uint32_t offset) noexcept
        VIADUCT_REQUIRES(lock());
    [[gnu::noinline]] Outcome await_agent(Operation& operation) noexcept VIADUCT_REQUIRES(lock());
    [[gnu::noinline]] Outcome flush(Operation& operation) noexcept VIADUCT_REQUIRES(lock());
    Outcome await_answer(Operation& operation) noexcept VIADUCT_REQUIRES(lock());
    [[gnu::noinline]] Outcome notify_write(Operation& operation) noexcept VIADUCT_REQUIRES(lock());
    Outcome hand_over(Operation& operation, std::uint8_t confirmation) noexcept VIADUCT_REQUIRES(lock());
    [[gnu::noinline]] Outcome refuse(Operation& operation) noexcept VIADUCT_REQUIRES(lock());
    Outcome finish_refused(Operation& operation, CompletionCode code) noexcept VIADUCT_REQUIRES(lock());
    [[gnu::noinline]] static std::uint64_t usable_bytes(const Operation& operation) noexcept;
    [[gnu::noinline]] Outcome abort(Operation& operation) noexcept VIADUCT_REQUIRES(lock());
    [[gnu::noinline]] Outcome finish_without_receive(Operation& operation) noexcept VIADUCT_REQUIRES(lock());

    CompletionCode check_pieces(const Operation& operation) noexcept VIADUCT_REQUIRES(lock());
    Credit take_credit(Operation& operation) noexcept VIADUCT_REQUIRES(lock());
    bool have_slot() noexcept VIADUCT_REQUIRES(lock());
    bool place_in_area(std::uint32_t length, std::uint32_t& offset) noexcept VIADUCT_REQUIRES(lock());
    bool copy_to_area(const Operation& operation, std::uint32_t length, std::uint32_t offset) noexcept
        VIADUCT_REQUIRES(lock());
    void read_consumed() noexcept VIADUCT_REQUIRES(lock());
    void break_if_corrupt() noexcept VIADUCT_REQUIRES(lock());
    bool is_refused_one_complete() noexcept VIADUCT_REQUIRES(lock());
    std::uint8_t confirmation_flag() const noexcept VIADUCT_REQUIRES(lock());
    [[gnu::always_inline]] bool retire_directly(Completion& out) noexcept VIADUCT_REQUIRES(lock());

    /// Returns the slot flag that makes the peer confirm the last slot of a message, or 0 for no confirmation. A
    /// confirmation is urgent only if this side's consumer does not poll.
    [[gnu::always_inline]] std::uint8_t confirmation(const SendRequest& request) noexcept VIADUCT_REQUIRES(lock()) {
        if (request.opcode == Opcode::SendInvalidate) return wire::slot_flags::acknowledge;
        const bool urgent =
            confirmation_flag_ == wire::slot_flags::confirm && !completions_.will_find_confirmation(*this);
        return urgent ? wire::slot_flags::acknowledge : confirmation_flag_;
    }

    bool may_access(const RegionView& region, const Operation& operation) const noexcept VIADUCT_REQUIRES(lock());
    unsigned direct_uses(const RegionView& region) const noexcept;

    Endpoint& endpoint_;
    CompletionQueue& completions_;
    const std::uint64_t endpoint_context_;
    Connection* connection_ = nullptr;
    /// How long short requests may be: what a slot holds, or what is copied without a call.
    static constexpr std::uint32_t most_short(Opcode opcode) noexcept {
        return opcode == Opcode::Send ? wire::inline_bytes : most_copied_short;
    }

    /// Requests of fewer bytes may be executed directly. 0: none, for instance as the endpoint is not connected, drains
    /// or breaks.
    class DirectBelow {
    public:
        std::uint32_t of(Kind kind, Opcode opcode) const noexcept {
            return below_[index(opcode)][kind == Kind::Short].load(std::memory_order_relaxed);
        }
        void set(Opcode opcode, std::uint32_t max_bytes) noexcept {
            below_[index(opcode)][1].store(std::min(most_short(opcode), max_bytes) + 1, std::memory_order_relaxed);
            below_[index(opcode)][0].store(max_bytes + 1, std::memory_order_relaxed);
        }
        void clear() noexcept {
            for (auto& kinds : below_)
                for (auto& below : kinds) below.store(0, std::memory_order_relaxed);
        }

    private:
        static constexpr std::size_t index(Opcode opcode) noexcept { return opcode == Opcode::Send ? 0 : 1; }

        std::array<std::array<std::atomic<std::uint32_t>, 2>, 2> below_{};  // for sends and RDMA, of any and Short
    };
    DirectBelow direct_below_;
    std::uint8_t confirmation_flag_ = 0;  // the slot flag for the confirmation of messages on this connection, or 0
    support::OutgoingTraffic<Way::Slot, Way::Agent> traffic_;

    RingProducer ring_;
    RegionCache local_;   // of this process, for the SGEs of requests
    RegionCache remote_;  // of the peer, for RDMA

    Counter credit_waits_;
};

}  // namespace viaduct::loopback
