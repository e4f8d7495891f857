// SPDX-License-Identifier: BSD-3-Clause
// The send queue of an endpoint: turns requests into frames, in order, and completes them in order. Guarded by the lock
// of the node.
#pragma once

#include "backends/support/fifo.hpp"
#include "backends/support/send_request.hpp"
#include "backends/support/traffic.hpp"
#include "backends/tcp/completion_queue.hpp"
#include "backends/tcp/connection.hpp"

namespace viaduct::tcp {

class Endpoint;

/// A request is executed during the post if no other request waits. Otherwise it waits in `entries_` and progress()
/// executes it later. Executed requests wait in `executed_` for the answer of the peer and for their turn.
class SendQueue {
public:
    SendQueue(Endpoint& endpoint, CompletionQueue& completions, std::uint32_t depth)
        : endpoint_(endpoint), completions_(completions), count_(std::make_shared<WorkCount>(depth)) {}

    std::uint32_t outstanding() const noexcept { return count_->outstanding(); }

    /// Posts a request; see backend::Endpoint.
    Status post(const SendRequest& request);

    /// Continues what had to wait, and completes what has been answered.
    void progress() noexcept;

    void attach(Connection& connection) noexcept;

    /// Executes the requests that are queued now, but no later ones, and notifies the endpoint when that is done.
    void drain() noexcept;
    bool has_drained() const noexcept { return draining_ && left_ == 0; }

    /// Handles a fragment of what a request has fetched. Returns false if nothing was to be fetched.
    bool take_data(const Frame& frame) noexcept;

    /// Finds the memory for bytes of such a fragment that have not arrived yet; see Connection.
    std::size_t find_destination(const FrameHeader& header, std::span<iovec> pieces) noexcept;
    void has_placed(const FrameHeader& header) noexcept;

    /// Adds the counters. Needs no lock.
    void add_to(EndpointCounters& counters) const noexcept {
        traffic_.add_to(counters);
        counters.refusals += refusals_.value();
    }

    /// Handles the refusal of a request of an unreliable connection.
    void take_refusal(std::uint32_t request, CompletionCode code) noexcept;

    /// Completes the remaining requests: with `in_flight` if the peer may have received them, otherwise with Flushed.
    /// `refused`: how the oldest request without an answer completes, unless it is Success.
    void detach(CompletionCode in_flight, CompletionCode refused) noexcept;

private:
    /// A request whose frames have not all been sent.
    struct Operation {
        SendRequest request;
        support::SgeList sges;
        std::uint64_t total = 0;
        std::uint64_t moved = 0;
        std::uint64_t value = 0;                        // AtomicWrite: the 8 bytes
        CompletionCode code = CompletionCode::Success;  // the result or, before execution, an error found early
        bool started = false;                           // checked
    };

    /// A request whose frames have been sent.
    struct Executed {
        std::uint64_t context = 0;
        std::uint32_t bytes = 0;
        std::uint32_t last_frame = 0;
        CompletedOperation operation = CompletedOperation::Send;
        CompletionCode code = CompletionCode::Success;
        bool confirmed = false;  // complete when the peer has executed the last frame
        bool fetches = false;    // complete when the data have arrived
        bool signaled = true;
        bool with_immediate = false;
    };

    /// Memory for what a request fetches.
    struct Fetch {
        support::SgeList sges;
        std::uint64_t total = 0;
        std::uint64_t moved = 0;
        CompletionCode code = CompletionCode::Success;
        CountedOperation operation = CountedOperation::RdmaRead;
        bool done = false;
    };

    enum class Outcome : std::uint8_t { Finished, Blocked, InFlight, Fetching };

    Outcome execute(Operation& operation) noexcept;
    Outcome stream(Operation& operation) noexcept;
    Outcome abort(Operation& operation, FrameHeader header) noexcept;
    Outcome ask(Operation& operation) noexcept;
    Outcome bind(Operation& operation) noexcept;
    Outcome fail(Operation& operation, CompletionCode code) noexcept;
    CompletionCode check(const Operation& operation) noexcept;
    bool may_fail() noexcept;
    bool is_confirmed(const SendRequest& request) const noexcept;
    Reliability reliability() const noexcept;
    Executed executed(const Operation& operation, Outcome outcome) const noexcept;
    void execute_entries() noexcept;
    void retire() noexcept;
    bool is_answered(const Executed& executed) noexcept;
    void take_outcome(Executed& executed) noexcept;
    Fetch* oldest_fetch() noexcept;
    bool has_memory(const Fetch& fetch) const noexcept;
    void complete(const Executed& executed) noexcept;
    void give_up(Executed executed, CompletionCode code) noexcept;

    Endpoint& endpoint_;
    CompletionQueue& completions_;
    const std::shared_ptr<WorkCount> count_;
    Connection* connection_ = nullptr;
    support::OutgoingTraffic<Way::Frame, Way::Frame> traffic_;
    Counter refusals_;
    support::Fifo<Operation> entries_{16};
    support::Fifo<Executed> executed_{16};
    support::Fifo<Fetch> fetches_{16};  // of the executed requests that fetch
    bool executing_ = false;
    bool draining_ = false;
    std::size_t left_ = 0;  // number of requests to complete while draining
};

}  // namespace viaduct::tcp
