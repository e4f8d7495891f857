// SPDX-License-Identifier: BSD-3-Clause
// Converts values between DAT and the core.
#pragma once

#include "api/udat/provider/binds.hpp"
#include "core/base/socket_address.hpp"
#include "core/request_terms.hpp"
#include "core/state_machine.hpp"
#include "viaduct/address.hpp"
#include "viaduct/deadline.hpp"
#include "viaduct/events.hpp"
#include "viaduct/work.hpp"

namespace viaduct::dat {

/// Whether write_usual_event() can convert a completion.
[[gnu::always_inline]] inline bool is_usual(const Completion& completion) noexcept {
    static_assert(static_cast<int>(CompletionCode::Success) == 0);
    const int unusual = static_cast<int>(completion.code) | completion.with_immediate | completion.invalidated;
    return unusual == 0 && (completion.operation == CompletedOperation::Receive ||
                            completion.operation <= CompletedOperation::RdmaRead);
}

/// Converts a completion to an event. Writes every field once, in place, except the dispatcher.
[[gnu::always_inline]] inline void write_usual_event(const Completion& completion, DAT_EVENT& event) noexcept {
    static_assert(static_cast<DAT_DTOS>(CompletedOperation::Send) == DAT_DTO_SEND);
    static_assert(static_cast<DAT_DTOS>(CompletedOperation::RdmaWrite) == DAT_DTO_RDMA_WRITE);
    static_assert(static_cast<DAT_DTOS>(CompletedOperation::RdmaRead) == DAT_DTO_RDMA_READ);
    const bool received = completion.operation == CompletedOperation::Receive;
    auto& data = event.event_data.dto_completion_event_data;
    event.event_number = DAT_DTO_COMPLETION_EVENT;
    data.ep_handle = reinterpret_cast<DAT_EP_HANDLE>(completion.endpoint_context);
    data.user_cookie.as_64 = completion.context;
    data.status = DAT_DTO_SUCCESS;
    data.transfered_length = completion.bytes;
    data.operation = received ? DAT_DTO_RECEIVE : static_cast<DAT_DTOS>(completion.operation);
    data.rmr_context = 0;
}

/// Converts a completion to an event. Returns false if it is not to be reported. `quiet` is set for a bind that wakes
/// no waiter.
bool write_event(const Completion& completion, Binds& binds, DAT_EVENT& event, bool& quiet) noexcept;

Deadline deadline_after(DAT_TIMEOUT timeout) noexcept;

/// Converts a number, limited to the maximum of DAT_COUNT.
DAT_COUNT to_count(std::uint64_t value) noexcept;

DAT_EVENT_NUMBER to_event_number(const ConnectionEvent& event) noexcept;

/// What the state of an endpoint is in DAT, and the subtype of DAT_INVALID_STATE for calls that are not valid in it.
struct EpState {
    DAT_EP_STATE value;
    const char* name;
    DAT_RETURN_SUBTYPE subtype;
};
/// `provider_made`: whether the provider created the endpoint for a service point.
EpState to_ep_state(EndpointState state, bool provider_made) noexcept;

/// The name of the enumerator; never null.
const char* name_of(DAT_EVENT_NUMBER number) noexcept;

/// All supported privileges, including those of the InfiniBand extension.
inline constexpr int all_privileges = DAT_MEM_PRIV_ALL_FLAG | int{DAT_IB_MEM_PRIV_REMOTE_ATOMIC};
Access to_access(int privileges) noexcept;

Named<DAT_DTO_COMPLETION_STATUS> to_status(CompletionCode code) noexcept;

/// Reads private data in the arguments of a call. `size_argument` is the number of the size argument. The next argument
/// is the data.
DAT_RETURN read_private_data(const Ia& ia, DAT_COUNT size, const void* data, DAT_RETURN_SUBTYPE size_argument,
                             PrivateData& out) noexcept;

/// Checks that a communicator describes byte streams over IP, the only kind of connection.
bool is_supported(const DAT_COMM& comm) noexcept;

/// Returns the port for a connection qualifier, as the connection manager of RDMA devices uses it. Qualifiers of more
/// than 16 bits are mapped to the ports above the assigned ones.
std::uint16_t port_of(DAT_CONN_QUAL qual) noexcept;
using viaduct::port_of;  // for services and socket addresses

}  // namespace viaduct::dat
