// SPDX-License-Identifier: BSD-3-Clause
// Receives for the messages of several connections. Guarded by the lock of the node.
#pragma once

#include "backends/software/node.hpp"
#include "backends/support/shared_receives.hpp"

namespace viaduct::software {

class Device;

using support::Receive;

class SharedReceiveQueue final : public support::SharedReceiveQueueBase<SharedReceiveQueue> {
public:
    SharedReceiveQueue(Device& device, std::uint32_t depth, std::uint64_t context);

    /// Swaps the oldest receive with `to`. Returns false if there is none. The lock must be held.
    bool take(Receive& to) noexcept { return take_oldest(to); }

private:
    friend class support::SharedReceiveQueueBase<SharedReceiveQueue>;
    void raise(const AsyncEvent& event) noexcept;
    using Guard = Node::Guard;
    Node& mutex() const noexcept { return node_; }
    void was_posted() noexcept { node_.resume_waiting(); }

    Device& device_;
    Node& node_;
};

}  // namespace viaduct::software
