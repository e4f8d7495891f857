// SPDX-License-Identifier: BSD-3-Clause
// What happens to endpoints and devices without being asked for.
#pragma once

#include <cstdint>

#include "core/address.hpp"
#include "core/attributes.hpp"
#include "core/work.hpp"

namespace viaduct {

enum class ConnectionEventKind : std::uint8_t {
    Established,
    Rejected,      ///< the peer refused; or, with reason NoListener, stopped listening before it took the request
    TimedOut,      ///< no answer before the deadline
    Conflict,      ///< a peer-to-peer partner was found whose attributes differ; see `reason`
    Unreachable,   ///< the way to the peer was lost while connecting
    Disconnected,  ///< the peer ended the connection
    Lost,          ///< the connection broke: an error, or the death of the peer
};

/// Data that a consumer sends along with a request or an answer.
using PrivateData = Bytes<256>;

struct ConnectionEvent {
    ConnectionEventKind kind = ConnectionEventKind::Established;
    /// Conflict: InvalidReliability, InvalidTransferSize or InvalidQos. Rejected: Ok or NoListener.
    /// Unreachable: NoResources where the way to the peer failed on this side for a lack of something.
    /// Lost: Unreachable where the peer went first, because it died or because of an error of its own.
    Code reason = Code::Ok;
    EndpointAttributes remote{};  ///< Established, unless it was accepted here; Conflict
    Address remote_address{};     ///< Established, likewise
    PrivateData private_data{};   ///< Established, likewise, and Rejected; a bare one may have zeros behind it
};

enum class AsyncEventKind : std::uint8_t {
    ReceiveQueueEmpty,        ///< a message came and no receive was posted
    RemoteWriteProtection,    ///< a peer's RDMA write was refused
    RemoteWriteAborted,       ///< a peer's RDMA write ended in the middle: its source was gone
    RemoteReadProtection,     ///< a peer's RDMA read was refused
    CompletionQueueOverrun,   ///< a completion found no room
    SharedReceiveQueueLimit,  ///< fewer receives wait than SharedReceiveQueue::arm_limit() asked for
};

struct AsyncEvent {
    AsyncEventKind kind = AsyncEventKind::ReceiveQueueEmpty;
    std::uint64_t endpoint_context = 0;          ///< 0 where no endpoint is concerned
    std::uint64_t completion_queue_context = 0;  ///< 0 where no completion queue is concerned
    CompletedOperation operation = CompletedOperation::Receive;
    std::uint64_t shared_receive_queue_context = 0;  ///< 0 where no shared receive queue is concerned
};

/// Takes the connection events of one endpoint. Exactly one event ends a pending connection, and exactly one
/// (Disconnected or Lost) ends an established one, unless this side ended it. Called from any thread, with locks held:
/// implementations take note and return.
class EndpointObserver {
public:
    virtual void on_connection_event(const ConnectionEvent& event) noexcept = 0;

protected:
    ~EndpointObserver() = default;
};

/// Takes the asynchronous events of a device, under the same rule.
class DeviceObserver {
public:
    virtual void on_async_event(const AsyncEvent& event) noexcept = 0;

protected:
    ~DeviceObserver() = default;
};

}  // namespace viaduct
