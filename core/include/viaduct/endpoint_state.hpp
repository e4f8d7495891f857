// SPDX-License-Identifier: BSD-3-Clause
// The states of an endpoint. They are those of DAT 2.0, which distinguishes the most; programs of the core do not see
// Reserved and TentativePending. docs/state-machine.md has the table.
#pragma once

#include <cstddef>
#include <cstdint>

#include "viaduct/detail/export.hpp"

namespace viaduct {

enum class EndpointState : std::uint8_t {
    Unconnected,
    Reserved,          ///< reserved for a service point
    TentativePending,  ///< a request arrived for a reserved endpoint
    PassivePending,    ///< accepted here, not yet established
    ActivePending,     ///< requested here, not yet accepted
    Connected,
    DisconnectPending,  ///< drain_and_disconnect() waits for the send queue
    Disconnected,       ///< the connection ended, or the endpoint failed; disconnect() makes it usable
};
inline constexpr std::size_t endpoint_state_count = 8;

VIADUCT_EXPORT const char* to_string(EndpointState state) noexcept;

}  // namespace viaduct
