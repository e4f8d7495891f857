// SPDX-License-Identifier: BSD-3-Clause
// Between the words of DAT and those of the core.
#pragma once

#include "api/udat/provider/binds.hpp"
#include "core/address.hpp"
#include "core/base/socket_address.hpp"
#include "core/deadline.hpp"
#include "core/events.hpp"
#include "core/state_machine.hpp"
#include "core/work.hpp"

namespace viaduct::dat {

/// Fills an event with a finished request. False where it is not to be reported. `quiet` is set where it is a bind that
/// is to wake nobody.
bool write_event(const Completion& completion, Binds& binds, DAT_EVENT& event, bool& quiet) noexcept;

Deadline deadline_after(DAT_TIMEOUT timeout) noexcept;

/// As much of a number as a count can hold.
DAT_COUNT to_count(std::uint64_t value) noexcept;

DAT_EVENT_NUMBER to_event_number(const ConnectionEvent& event) noexcept;

/// `provider_made`: whether the provider made the endpoint for a service point.
DAT_EP_STATE to_ep_state(EndpointState state, bool provider_made) noexcept;

/// Why a call is not valid in that state: a subtype of DAT_INVALID_STATE.
DAT_RETURN_SUBTYPE state_subtype(EndpointState state, bool provider_made) noexcept;

/// The privileges that there are, those of the InfiniBand extension among them.
inline constexpr int all_privileges = DAT_MEM_PRIV_ALL_FLAG | int{DAT_IB_MEM_PRIV_REMOTE_ATOMIC};
Access to_access(int privileges) noexcept;

/// Whether a communicator is one of byte streams over IP, which is what connections are.
bool is_supported(const DAT_COMM& comm) noexcept;

/// The service that a connection qualifier stands for: a port, as the connection manager of RDMA devices has them.
/// Qualifiers beyond 16 bits share the ports above those that are assigned.
std::uint16_t port_of(DAT_CONN_QUAL qual) noexcept;
using viaduct::port_of;  // of services and socket addresses

}  // namespace viaduct::dat
