// SPDX-License-Identifier: BSD-3-Clause
// The receive queue of an endpoint. Until the endpoint is connected, receives are buffered here, so that a refused
// connection request or a change of attributes does not affect them.
#pragma once

#include <deque>
#include <vector>

#include "backends/verbs/work_queue.hpp"

namespace viaduct::verbs {

class Device;
class RegionTable;

/// Thread-safe: see WorkQueue.
class ReceiveQueue final : public WorkQueue {
public:
    ReceiveQueue(Device& device, const backend::EndpointInit& init);

    // As backend::Endpoint.
    const Status* post(const ReceiveRequest& request) noexcept;
    const Status* receive_one(std::uint64_t context, void* address, std::uint32_t length, std::uint32_t key) noexcept;
    /// InvalidState: the endpoint uses a shared receive queue.
    Status post(std::span<const ReceiveRequest> requests, std::size_t& posted) noexcept;

    /// Adds the counters. Needs no lock.
    void add_to(EndpointCounters& counters) const noexcept {
        counters.posted_receives += {accepted_.value(), accepted_bytes_.value()};
        WorkQueue::add_to(counters);
    }

    /// Posts the buffered receives to the hardware.
    Status post_buffered() noexcept VIADUCT_REQUIRES(mutex());
    void flush_buffered() noexcept VIADUCT_REQUIRES(mutex()) {
        for (const BufferedReceive& kept : buffered_)
            complete_now(kept.context, CompletedOperation::Receive, CompletionCode::Flushed);
        buffered_.clear();
    }

private:
    struct BufferedReceive {
        std::uint64_t context;
        CompletionCode fault;
        std::vector<Sge> sges;
    };

    Status enqueue(const ReceiveRequest& request) noexcept VIADUCT_REQUIRES(mutex());
    Status post_to_hardware(const ReceiveRequest& request) noexcept VIADUCT_REQUIRES(mutex());
    const Status* post_directly(std::uint32_t place, std::uint64_t context, const Sge& piece) noexcept
        VIADUCT_RELEASE(mutex());
    [[gnu::cold, gnu::noinline]] const Status* post_again() noexcept VIADUCT_RELEASE(mutex());
    [[gnu::noinline]] const Status* find_room_and_post(std::uint64_t context, void* address, std::uint32_t length,
                                                       std::uint32_t key) noexcept VIADUCT_RELEASE(mutex());
    [[gnu::cold, gnu::noinline]] Status refuse(int error) noexcept VIADUCT_REQUIRES(mutex());
    Status buffer(const ReceiveRequest& request) noexcept VIADUCT_REQUIRES(mutex());
    void count_accepted(std::uint64_t bytes) noexcept {
        accepted_.add();
        accepted_bytes_.add(bytes);
    }

    const bool shared_;  // the endpoint uses a shared receive queue instead
    const RegionTable& regions_;
    std::deque<BufferedReceive> buffered_ VIADUCT_GUARDED_BY(mutex());
    Counter accepted_;  // requests, and their bytes
    Counter accepted_bytes_;
    ibv_sge piece_{};  // of the last direct request, like work_
    ibv_recv_wr* refused_ = nullptr;
    ibv_recv_wr work_{};  // of its fields, those that are the same for all direct requests are never changed
};

}  // namespace viaduct::verbs
