// SPDX-License-Identifier: BSD-3-Clause
// The send queue of an endpoint: the producer of a connection's outgoing slots, and the initiator of RDMA.
#pragma once

#include <array>

#include "backends/loopback/completion_queue.hpp"
#include "backends/loopback/connection.hpp"
#include "backends/loopback/mapped_memory.hpp"
#include "backends/loopback/sge_list.hpp"

namespace viaduct::loopback {

class Endpoint;

/// Everything is called with the lock of the completion queue held.
///
/// A request is executed right in the post if none waits before it; else it waits in `entries_`, and progress() goes on
/// with it. Requests are executed in order and completed in order: what the peer is to confirm, and what was executed
/// behind that, waits in `executed_` in between.
class SendQueue final : public WorkQueue {
public:
    SendQueue(Endpoint& endpoint, CompletionQueue& completions, std::uint32_t depth)
        : WorkQueue(depth), endpoint_(endpoint), completions_(completions) {}

    CompletionQueue& completions() noexcept { return completions_; }
    Status post(const SendRequest& request);
    void expect_ring() noexcept override;
    [[gnu::noinline]] void progress() noexcept override;

    void attach(Connection& connection) noexcept;

    /// Executes what waits now and nothing after it; the endpoint is told when that is done.
    void drain() noexcept;
    bool has_drained() const noexcept { return draining_ && left_ == 0; }

    /// Completes what is left: `in_flight` for what the peer may or may not have received, Flushed for the rest.
    void detach(CompletionCode in_flight) noexcept;

private:
    /// A request that is being executed, or waits for that.
    struct Operation {
        const SendRequest* request = nullptr;  // the caller's during the post, the entry's later
        std::uint64_t total = 0;
        std::uint64_t moved = 0;
        std::uint64_t cut_at = 0;                       // not 0: the source is mapped up to here only
        std::uint64_t value = 0;                        // AtomicWrite: the 8 bytes
        std::uint64_t last_slot = 0;                    // position behind the last slot, once handed over or awaited
        std::uint32_t area_offset = 0;                  // of the AgentRead fragment that is awaited
        CompletionCode code = CompletionCode::Success;  // of a finished operation; before that, a fault found early
        bool started = false;                           // checked, and credit taken
        bool awaiting = false;                          // last_slot is to be consumed before the operation goes on
        bool by_agent = false;                          // the peer's agent has part of the data: it gets the rest, too

        std::uint64_t end() const noexcept { return cut_at != 0 ? cut_at : total; }
    };

    /// A request that is executed. Its completion waits for its turn, or for the peer's confirmation.
    struct Executed {
        std::uint64_t context = 0;
        std::uint64_t last_slot = 0;
        std::uint32_t bytes = 0;
        CompletedOperation operation = CompletedOperation::Send;
        CompletionCode code = CompletionCode::Success;
        bool confirmed = false;  // by nobody but the peer: done once last_slot is consumed
        bool signaled = true;
        bool with_immediate = false;
    };

    struct Entry {
        Operation operation;
        SendRequest request;
        SgeList sges;

        /// Entries move when the ring grows: what points into them is set before each use.
        Operation& ready() noexcept {
            request.sges = sges.span();
            operation.request = &request;
            return operation;
        }
    };
    static bool is_atomic(Opcode opcode) noexcept {
        return opcode == Opcode::AtomicWrite || is_fetching_atomic(opcode);
    }

    /// Whether data come back from the peer.
    static bool fetches(Opcode opcode) noexcept { return opcode == Opcode::RdmaRead || is_fetching_atomic(opcode); }

    enum class Outcome { Finished, Blocked, InFlight };
    enum class Credit { Taken, Missing, Awaited };

    // Out of line is what small messages seldom need: see Endpoint::post_send().
    Outcome execute(Operation& operation) noexcept;
    Outcome send(Operation& operation) noexcept;
    [[gnu::noinline]] Outcome send_and_invalidate(Operation& operation) noexcept;
    Outcome rdma(Operation& operation) noexcept;
    Outcome transfer(Operation& operation, const RegionView& region) noexcept;
    void transfer_directly(Operation& operation, std::byte* target) noexcept;
    [[gnu::noinline]] Outcome transfer_by_kernel(Operation& operation) noexcept;
    [[gnu::noinline]] Outcome transfer_by_agent(Operation& operation) noexcept;
    bool place_order(Operation& operation, std::uint32_t length) noexcept;
    [[gnu::noinline]] Outcome await_agent(Operation& operation) noexcept;
    [[gnu::noinline]] Outcome flush(Operation& operation) noexcept;
    Outcome await_answer(Operation& operation) noexcept;
    [[gnu::noinline]] Outcome bind(Operation& operation) noexcept;
    [[gnu::noinline]] Outcome notify_write(Operation& operation) noexcept;
    Outcome hand_over(Operation& operation, std::uint8_t confirmation) noexcept;
    [[gnu::noinline]] Outcome refuse(Operation& operation) noexcept;
    [[gnu::noinline]] bool find_source_end(Operation& operation, Probe probe) noexcept;
    [[gnu::noinline]] Outcome abort(Operation& operation) noexcept;
    [[gnu::noinline]] Outcome finish_without_receive(Operation& operation) noexcept;
    [[gnu::noinline]] Outcome fail(Operation& operation, CompletionCode code) noexcept;

    bool may_fail() noexcept;
    CompletionCode check_pieces(const Operation& operation) const noexcept;
    Credit take_credit() noexcept;
    bool have_slot() noexcept;
    wire::Slot& next_slot() noexcept;
    void publish(wire::Slot& slot, wire::SlotKind kind, std::uint8_t flags, std::uint32_t length,
                 std::uint32_t immediate) noexcept;
    [[gnu::noinline]] bool place_in_area(std::uint32_t length, std::uint32_t& offset) noexcept;
    [[gnu::noinline]] bool is_room_coming() noexcept;
    [[gnu::noinline]] void say_waiting() noexcept;
    bool is_consumed(std::uint64_t position) const noexcept { return consumed_ >= position; }
    [[gnu::noinline]] void read_consumed() noexcept;
    static Executed executed(const Operation& operation, Outcome outcome) noexcept;
    void complete(const Executed& executed) noexcept;
    [[gnu::noinline]] void give_up(Executed executed, CompletionCode code) noexcept;
    [[gnu::noinline]] void abandon(const Operation& operation, CompletionCode code) noexcept;
    std::uint8_t way_of_confirmation() const noexcept;
    [[gnu::noinline]] bool make_room() noexcept;
    [[gnu::noinline]] void enqueue(const Operation& operation);
    [[gnu::noinline]] void retire() noexcept;
    Reliability reliability() const noexcept;
    bool learns_of_refusals() const noexcept;
    std::uint8_t confirmation(const SendRequest& request) const noexcept;
    bool may_access(const RegionView& region, const Operation& operation) const noexcept;

    Endpoint& endpoint_;
    CompletionQueue& completions_;
    Connection* connection_ = nullptr;
    std::uint8_t confirmed_by_ = 0;         // how messages are, on this connection: a flag of slots, or 0
    support::Fifo<Executed> executed_{16};  // has room for the entries, too
    support::Fifo<Entry> entries_{16};      // not executed yet; behind those that are
    bool draining_ = false;
    std::size_t left_ = 0;  // requests to be completed, while draining

    // The producer's end of the connection.
    std::uint64_t next_ = 0;      // slots written, in total
    std::uint64_t consumed_ = 0;  // slots known to be consumed, in total
    std::uint32_t sent_ = 0;      // messages sent that take a receive, in total
    std::uint32_t credit_ = 0;    // receives known to be posted by the peer, in total
    std::uint32_t area_head_ = 0;
    std::uint32_t area_tail_ = 0;
    std::uint32_t area_used_ = 0;                             // ranges that are not freed yet
    std::array<std::uint32_t, wire::slot_count> area_end_{};  // behind the range of each slot; 0: the slot has none
    std::uint64_t rung_at_ = 0;                               // next_ at the last ring for want of room
    bool waiting_ = false;  // the peer rings when it has consumed slots or posted receives
    bool awaiting_credit_ = false;
};

}  // namespace viaduct::loopback
