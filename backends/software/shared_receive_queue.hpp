// SPDX-License-Identifier: BSD-3-Clause
// Receives for the messages of several connections. Guarded by the lock of the node.
#pragma once

#include "backends/software/device.hpp"
#include "backends/support/shared_receive_queue_base.hpp"

namespace viaduct::software {

using support::Receive;

class SharedReceiveQueue final : public support::SharedReceiveQueueBase<SharedReceiveQueue> {
public:
    SharedReceiveQueue(Device& device, const support::SharedReceiveQueueInit& init)
        : SharedReceiveQueueBase(init), node_(device.node()) {}

    /// Swaps the oldest receive with `to`. Returns false if there is none. The lock must be held.
    bool take(Receive& to) noexcept { return take_oldest(to); }

private:
    friend class support::SharedReceiveQueueBase<SharedReceiveQueue>;
    using Guard = Node::Guard;
    Node& mutex() const noexcept { return node_; }
    void was_posted() noexcept { node_.resume_waiting(); }

    Node& node_;
};

}  // namespace viaduct::software
