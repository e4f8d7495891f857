// SPDX-License-Identifier: BSD-3-Clause
// The table of endpoint states. They are those of DAT 2.0, which distinguishes the most; the states of VIPL and the
// events of librpma are derived from them. docs/state-machine.md is generated from this table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "viaduct/detail/export.hpp"
#include "viaduct/detail/state_machine.hpp"
#include "viaduct/endpoint_state.hpp"

namespace viaduct {

enum class EndpointTrigger : std::uint8_t {
    Reserve,
    Release,
    RequestArrived,
    Connect,  ///< the consumer requests a connection
    Accept,   ///< the consumer accepts a request
    Established,
    Refused,     ///< the attempt failed and can be repeated
    Failed,      ///< the attempt failed, and the endpoint needs a reset
    Disconnect,  ///< the consumer starts to disconnect gracefully
    PeerDisconnected,
    Broken,  ///< an error, or the end of the peer's process
    Reset,   ///< the consumer takes the endpoint back to Unconnected
};
inline constexpr std::size_t endpoint_trigger_count = 12;

VIADUCT_EXPORT const char* to_string(EndpointTrigger trigger) noexcept;

namespace detail {

struct Transition {
    EndpointState from;
    EndpointTrigger trigger;
    EndpointState to;
};

using enum EndpointState;
using T = EndpointTrigger;

inline constexpr Transition transitions[] = {
    {Unconnected, T::Reserve, Reserved},
    {Unconnected, T::Connect, ActivePending},
    {Unconnected, T::Accept, PassivePending},
    {Unconnected, T::Broken, Disconnected},
    {Unconnected, T::Reset, Unconnected},
    {Reserved, T::Release, Unconnected},
    {Reserved, T::RequestArrived, TentativePending},
    {TentativePending, T::Release, Unconnected},
    {PassivePending, T::Established, Connected},
    {PassivePending, T::Refused, Unconnected},
    {PassivePending, T::Failed, Disconnected},
    {PassivePending, T::Broken, Disconnected},
    {PassivePending, T::Reset, Unconnected},
    {ActivePending, T::Established, Connected},
    {ActivePending, T::Refused, Unconnected},
    {ActivePending, T::Failed, Disconnected},
    {ActivePending, T::Broken, Disconnected},
    {ActivePending, T::Reset, Unconnected},
    {Connected, T::Disconnect, DisconnectPending},
    {Connected, T::PeerDisconnected, Disconnected},
    {Connected, T::Broken, Disconnected},
    {Connected, T::Reset, Unconnected},
    {DisconnectPending, T::PeerDisconnected, Disconnected},
    {DisconnectPending, T::Broken, Disconnected},
    {DisconnectPending, T::Reset, Unconnected},
    {Disconnected, T::Broken, Disconnected},
    {Disconnected, T::Reset, Unconnected},
};

}  // namespace detail

/// The next state, or nothing if the trigger is not valid in this state.
constexpr std::optional<EndpointState> next_state(EndpointState from, EndpointTrigger trigger) noexcept {
    for (const auto& row : detail::transitions)
        if (row.from == from && row.trigger == trigger) return row.to;
    return std::nullopt;
}

using detail::StateMachine;

}  // namespace viaduct
