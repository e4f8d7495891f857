// SPDX-License-Identifier: BSD-3-Clause
// The receive queue of an endpoint. Until the endpoint is connected, receives are buffered here, so that a refused
// connection request or a change of attributes does not affect them.
#pragma once

#include <deque>
#include <vector>

#include "backends/verbs/work_queue.hpp"

namespace viaduct::verbs {

class Device;

/// Thread-safe: see WorkQueue.
class ReceiveQueue final : public WorkQueue {
public:
    ReceiveQueue(Device& device, CompletionQueue& completions, const WorkQueueInit& init);

    Status post(std::span<const ReceiveRequest> requests, std::size_t& posted) noexcept;

    // mutex() must be held for the functions below.
    /// Posts the buffered receives to the hardware.
    Status post_buffered() noexcept;
    void flush_buffered() noexcept;

private:
    struct BufferedReceive {
        std::uint64_t context;
        CompletionCode fault;
        std::vector<Sge> sges;
    };

    Status post(const ReceiveRequest& request) noexcept;
    Status post_to_hardware(const ReceiveRequest& request) noexcept;
    Status buffer(const ReceiveRequest& request) noexcept;

    Device& device_;
    std::deque<BufferedReceive> buffered_;
};

}  // namespace viaduct::verbs
