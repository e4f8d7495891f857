// SPDX-License-Identifier: BSD-3-Clause
#include "backends/software/shared_receive_queue.hpp"

#include "backends/software/device.hpp"

namespace viaduct::software {

SharedReceiveQueue::SharedReceiveQueue(Device& device, std::uint32_t depth, std::uint64_t context)
    : SharedReceiveQueueBase(depth, device.attributes().max_sges, context), device_(device), node_(device.node()) {}

void SharedReceiveQueue::raise(const AsyncEvent& event) noexcept { device_.raise(event); }

}  // namespace viaduct::software
