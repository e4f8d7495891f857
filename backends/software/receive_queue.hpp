// SPDX-License-Identifier: BSD-3-Clause
// The receive queue of an endpoint: receives messages, and executes the RDMA requests of the peer. With it, the
// receives that several endpoints share. Guarded by the lock of the node.
#pragma once

#include "backends/software/completion_queue.hpp"
#include "backends/software/connection.hpp"
#include "backends/software/device.hpp"
#include "backends/software/regions.hpp"
#include "backends/support/flusher.hpp"
#include "backends/support/receive_order.hpp"
#include "backends/support/shared_receive_queue_base.hpp"

namespace viaduct::software {

class Endpoint;

using support::Receive;

/// Receives for the messages of several connections.
class SharedReceiveQueue final : public support::SharedReceiveQueueBase<SharedReceiveQueue> {
public:
    SharedReceiveQueue(Device& device, const support::SharedReceiveQueueInit& init)
        : SharedReceiveQueueBase(init), node_(device.node()) {}

    using SharedReceiveQueueBase::take_oldest;

private:
    friend class support::SharedReceiveQueueBase<SharedReceiveQueue>;
    using Guard = Node::Guard;
    Node& mutex() const noexcept { return node_; }
    void was_posted() noexcept { node_.resume_waiting(); }

    Node& node_;
};

class ReceiveQueue : private support::ReceiveOrder<ReceiveQueue> {
public:
    /// `shared`: the queue to take receives from, or null.
    ReceiveQueue(Endpoint& endpoint, CompletionQueue& completions, std::uint32_t depth, SharedReceiveQueue* shared)
        : endpoint_(endpoint),
          completions_(completions),
          count_(std::make_shared<WorkCount>(shared == nullptr ? depth : 0)),
          shared_(shared) {}

    bool is_shared() const noexcept { return shared_ != nullptr; }
    std::uint32_t outstanding() const noexcept { return count_->outstanding(); }

    using ReceiveOrder::enqueue;

    void attach(Connection& connection) noexcept;

    /// Adds the counters. Needs no lock.
    void add_to(EndpointCounters& counters) const noexcept {
        traffic_.add_to(counters);
        counters.posted_receives += {posted_.value(), posted_bytes_.value()};
    }

    /// Executes a request of the peer. Returns false if it has to wait; Connection::resume() then repeats it.
    bool execute(const Frame& frame) noexcept;

    /// Finds the memory for bytes of a request in progress that have not arrived yet; see Connection.
    std::size_t find_destination(const FrameHeader& header, std::span<iovec> pieces) noexcept;
    void has_placed(const FrameHeader& header) noexcept { moved_ += header.bytes; }

    /// Completes the remaining receives as Flushed. `reject`: those posted later, too.
    void detach(bool reject) noexcept;

    /// Why the connection breaks: the number of the request and the code for the peer, or Success.
    CompletionCode refusal() const noexcept { return refusal_; }

    /// Whether the peer caused that: it had no right to access the memory, or may not wait for a receive.
    bool peer_failed() const noexcept { return refusal_ == CompletionCode::RemoteProtection || no_receive_; }

private:
    friend class support::ReceiveOrder<ReceiveQueue>;

    // For ReceiveOrder.
    Endpoint& endpoint() noexcept { return endpoint_; }
    bool is_full() const noexcept { return count_->is_full(); }
    void count_posted() noexcept { count_->add(); }
    static void reserve(std::size_t) noexcept {}
    void was_posted() noexcept;
    bool may_use(const Sge& sge, std::uint64_t bytes) noexcept;
    void push(const Completion& completion, bool solicited) noexcept {
        if (shared_ != nullptr) completions_.give_back_place();
        completions_.push(completion, count_, solicited);
    }
    void count(CountedOperation operation, Way way, std::uint64_t bytes) noexcept {
        traffic_.add(operation, way, bytes);
    }
    void refuse(CompletionCode code) noexcept;

    /// Whether a request can be executed.
    enum class Turn : std::uint8_t { Now, Later, Never };

    void begin(const FrameHeader& header) noexcept;
    bool receive(const Frame& frame) noexcept;
    bool write(const Frame& frame) noexcept;
    bool read(const Frame& frame) noexcept;
    bool change_word(const Frame& frame) noexcept;
    bool flush(const Frame& frame) noexcept;
    Turn find_receive(CompletedOperation operation) noexcept;
    bool refuse_request(const FrameHeader& header, CompletionCode code) noexcept;
    bool refuse_access(const FrameHeader& header, RemoteUse use, CompletedOperation operation,
                       std::uint64_t bytes) noexcept;
    /// Ends the connection and returns false.
    bool violate(const char* how) noexcept {
        connection_->lose(how);
        return false;
    }

    Endpoint& endpoint_;
    CompletionQueue& completions_;
    const std::shared_ptr<WorkCount> count_;
    SharedReceiveQueue* const shared_;
    Connection* connection_ = nullptr;
    support::IncomingTraffic<Way::Frame, Way::Frame> traffic_;
    std::shared_ptr<support::FlushJob> flush_;  // requested by the next frame
    static constexpr FrameKind nothing = FrameKind::Acknowledge;
    FrameKind in_progress_ = nothing;  // of the request of which a part has been executed; moved_ bytes of it have
    bool notice_ = false;              // it is an RDMA write that takes a receive
    std::uint32_t total_ = 0;          // its length
    std::uint64_t old_ = 0;            // what an atomic operation has found
    bool rejecting_ = false;           // broken: posted receives complete as Flushed
    CompletionCode refusal_ = CompletionCode::Success;
    bool no_receive_ = false;  ///< the refused request was a message without a receive
};

}  // namespace viaduct::software
