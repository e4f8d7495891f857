// SPDX-License-Identifier: BSD-3-Clause
// The table of endpoint states. They are those of DAT 2.0, which distinguishes the most; the states of VIPL and the
// events of librpma are derived from them. docs/state-machine.md is generated from this table.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/export.hpp"

namespace viaduct {

enum class EndpointState : std::uint8_t {
    Unconnected,
    Reserved,          ///< reserved for a service point
    TentativePending,  ///< a request arrived for a reserved endpoint
    PassivePending,    ///< accepted here, not yet established
    ActivePending,     ///< requested here, not yet accepted
    Connected,
    DisconnectPending,  ///< disconnects gracefully
    Disconnected,       ///< the connection ended, or the endpoint failed; needs a reset
};
inline constexpr std::size_t endpoint_state_count = 8;

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

VIADUCT_EXPORT const char* to_string(EndpointState state) noexcept;
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

/// The state of an endpoint, changed according to the table. Thread-safe.
class VIADUCT_EXPORT StateMachine {
public:
    explicit StateMachine(EndpointState initial = EndpointState::Unconnected) noexcept : state_(initial) {}

    EndpointState state() const noexcept { return state_.load(std::memory_order_acquire); }

    /// Changes the state; false if the trigger is not valid in the current state.
    bool apply(EndpointTrigger trigger) noexcept;

private:
    std::atomic<EndpointState> state_;
};

}  // namespace viaduct
