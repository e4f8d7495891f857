// SPDX-License-Identifier: BSD-3-Clause
// One direction of a connection as its two ends see it.
#pragma once

#include "backends/loopback/doorbell.hpp"
#include "backends/loopback/layout.hpp"

namespace viaduct::loopback {

/// Where a ring is in the segment, and how to wake the process at its other end. Valid as long as the connection.
struct Ring {
    wire::Direction* direction = nullptr;
    wire::Slot* slots = nullptr;
    std::uint32_t first = 0;  ///< the position of the first slot
    std::byte* area = nullptr;
    const RemoteDoorbell* doorbell = nullptr;
    std::uint32_t peer_number = 0;  ///< the connection's number on the doorbell
    bool asymmetric_fences = false;

    wire::Slot& slot(std::uint64_t position) const noexcept { return slots[position & wire::slot_mask]; }

    /// Makes the peer's agent act.
    void ring() const noexcept { doorbell->ring(peer_number); }
};

}  // namespace viaduct::loopback
