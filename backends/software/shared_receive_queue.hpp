// SPDX-License-Identifier: BSD-3-Clause
// Receives for the messages of several connections. Guarded by the lock of the node.
#pragma once

#include "backends/support/shared_receives.hpp"
#include "core/backend.hpp"

namespace viaduct::software {

class Device;

using support::Receive;

class SharedReceiveQueue final : public backend::SharedReceiveQueue {
public:
    SharedReceiveQueue(Device& device, std::uint32_t depth, std::uint64_t context);

    Status post_receive(std::span<const ReceiveRequest> requests, std::size_t& posted) noexcept override;
    Status arm_limit(std::uint32_t limit) noexcept override;
    Status resize(std::uint32_t depth) noexcept override;
    std::uint32_t outstanding() const noexcept override;

    /// Swaps the oldest receive with `to`. Returns false if there is none. The lock must be held.
    bool take(Receive& to) noexcept;

private:
    void check_limit() noexcept;

    Device& device_;
    const std::uint64_t context_;
    support::SharedReceives receives_;
};

}  // namespace viaduct::software
