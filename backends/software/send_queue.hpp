// SPDX-License-Identifier: BSD-3-Clause
// The send queue of an endpoint: turns requests into frames, in order, and completes them in order. Guarded by the lock
// of the node.
#pragma once

#include "backends/software/completion_queue.hpp"
#include "backends/software/connection.hpp"
#include "backends/support/send_order.hpp"
#include "backends/support/traffic.hpp"

namespace viaduct::software {

class Endpoint;

struct SendProgress {
    bool started = false;  // checked
};

/// A request is executed when its frames have been sent.
class SendQueue : private support::SendOrder<SendQueue, SendProgress> {
public:
    SendQueue(Endpoint& endpoint, CompletionQueue& completions, std::uint32_t depth)
        : endpoint_(endpoint), completions_(completions), count_(std::make_shared<WorkCount>(depth)) {}

    std::uint32_t outstanding() const noexcept { return count_->outstanding(); }

    using SendOrder::enqueue;
    using SendOrder::has_drained;

    /// Continues what had to wait, and completes what has been answered.
    void progress() noexcept;

    void attach(Connection& connection) noexcept {
        connection_ = &connection;
        completed_ = 0;
        end_drain();
    }

    /// Executes the requests that are queued now, but no later ones, and notifies the endpoint when that is done.
    void drain() noexcept { (void)begin_drain(); }

    /// Handles a fragment of what a request has fetched. Returns false if nothing was to be fetched.
    bool take_data(const Frame& frame) noexcept;

    /// Finds the memory for bytes of such a fragment that have not arrived yet; see Connection.
    std::size_t find_destination(const FrameHeader& header, std::span<iovec> pieces) noexcept;
    void has_placed(const FrameHeader& header) noexcept { oldest_fetch()->moved += header.bytes; }

    /// Adds the counters. Needs no lock.
    void add_to(EndpointCounters& counters) const noexcept {
        traffic_.add_to(counters);
        counters.refusals += refusals_.value();
    }

    /// Handles the refusal of a request of an unreliable connection.
    void take_refusal(std::uint32_t request, CompletionCode code) noexcept;

    /// Completes the remaining requests: with `in_flight` if the peer may have received them, otherwise with Flushed.
    /// `refused`: why the peer has refused a request, or Success.
    void detach(CompletionCode in_flight, CompletionCode refused) noexcept;

private:
    friend class support::SendOrder<SendQueue, SendProgress>;

    /// Memory for what a request fetches.
    struct Fetch {
        support::SgeList sges;
        std::uint64_t total = 0;
        std::uint64_t moved = 0;
        CompletionCode code = CompletionCode::Success;
        CountedOperation operation = CountedOperation::RdmaRead;
        bool done = false;
    };

    /// What completes an executed request, besides an error.
    enum class Answer : std::uint8_t {
        Sent,      // the system has its last frame
        Executed,  // the peer has executed that
        Data,      // the peer has returned what it asks for
    };
    static constexpr unsigned frame_bits = 32;
    static constexpr std::uint64_t awaited(Answer answer, std::uint32_t frame) noexcept {
        return static_cast<std::uint64_t>(answer) << frame_bits | frame;
    }
    static Answer answer_of(const support::ExecutedSend& executed) noexcept {
        return static_cast<Answer>(executed.awaited >> frame_bits);
    }

    // For SendOrder.
    Endpoint& endpoint() noexcept { return endpoint_; }
    bool is_attached() const noexcept { return connection_ != nullptr; }
    bool is_full() const noexcept { return count_->is_full(); }
    void count_posted() noexcept { count_->add(); }
    void count_polled() noexcept { count_->remove(); }
    void push(const Completion& completion) noexcept { completions_.push(completion, count_); }
    bool make_room() noexcept;
    bool reserve(std::size_t requests) noexcept { return fetches_.reserve(requests); }
    Outcome execute(Operation& operation) noexcept;
    std::uint64_t awaited(const Operation& operation, Outcome outcome) noexcept;
    bool is_answered(const support::ExecutedSend& executed) noexcept;
    void take_answer(support::ExecutedSend& executed) noexcept;
    static void await_answers() noexcept {}  // frames come unasked
    static bool has_begun(const Operation& operation) noexcept { return operation.moved != 0; }

    Outcome stream(Operation& operation) noexcept;
    Outcome abort(Operation& operation, FrameHeader header) noexcept;
    Outcome ask(Operation& operation) noexcept;
    CompletionCode check(const Operation& operation) noexcept;
    bool is_confirmed(const SendRequest& request) const noexcept;
    Fetch* oldest_fetch() noexcept {
        for (std::size_t i = 0; i < fetches_.size(); ++i)
            if (!fetches_[i].done) return &fetches_[i];
        return nullptr;
    }
    bool has_memory(const Fetch& fetch) const noexcept;

    Endpoint& endpoint_;
    CompletionQueue& completions_;
    const std::shared_ptr<WorkCount> count_;
    Connection* connection_ = nullptr;
    support::OutgoingTraffic<Way::Frame, Way::Frame> traffic_;
    Fifo<Fetch> fetches_;          // of the executed requests that fetch
    std::uint32_t completed_ = 0;  // number of the last frame of the last request that has completed
    bool executing_ = false;
};

}  // namespace viaduct::software
