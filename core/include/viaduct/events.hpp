// SPDX-License-Identifier: BSD-3-Clause
// Events of endpoints and devices, and their observers.
#pragma once

#include <cstdint>

#include "viaduct/address.hpp"
#include "viaduct/attributes.hpp"
#include "viaduct/detail/export.hpp"
#include "viaduct/failed_request.hpp"
#include "viaduct/reason.hpp"
#include "viaduct/work.hpp"

namespace viaduct {

struct RequestTerms;

enum class ConnectionEventKind : std::uint8_t {
    Established,
    Rejected,      ///< the peer refused, or the service has no listener; see `reason`
    TimedOut,      ///< no answer before the deadline
    Conflict,      ///< the attributes of the peer do not match; see `reason`
    Unreachable,   ///< there is no route to the peer
    Disconnected,  ///< the peer ended the connection
    Lost,          ///< the connection broke: an error, or the peer's process ended
};

/// Data that a program sends with a connection request or with its reply.
using PrivateData = Bytes<256>;

struct ConnectionEvent {
    ConnectionEventKind kind = ConnectionEventKind::Established;
    /// Conflict: InvalidReliability, InvalidTransferSize or InvalidQos. Rejected: Ok or NoListener.
    /// Unreachable: NoResources if this side lacked resources. Lost: Unreachable if the peer caused the loss, for
    /// example because its process ended or it called Endpoint::fail().
    Code reason = Code::Ok;
    EndpointAttributes remote{};  ///< Established at the side that connected; Conflict
    Address remote_address{};     ///< Established, as above
    PrivateData private_data{};   ///< Established, as above, and Rejected; with the framing Bare, zeros may follow
    Reason why{};                 ///< in words; empty if Established

    /// Throws std::runtime_error with the reason unless the connection is established.
    VIADUCT_EXPORT void or_throw() const;
};

enum class AsyncEventKind : std::uint8_t {
    ReceiveQueueEmpty,        ///< a message arrived and no receive was posted
    RemoteWriteProtection,    ///< a peer's RDMA write was refused
    RemoteWriteAborted,       ///< a peer's RDMA write ended early because its source became inaccessible
    RemoteReadProtection,     ///< a peer's RDMA read was refused
    CompletionQueueOverrun,   ///< a completion was lost because its queue was full
    SharedReceiveQueueLimit,  ///< fewer receives wait than SharedReceiveQueue::arm_limit() asked for
};

struct AsyncEvent {
    AsyncEventKind kind = AsyncEventKind::ReceiveQueueEmpty;
    std::uint64_t endpoint_context = 0;          ///< 0: no endpoint
    std::uint64_t completion_queue_context = 0;  ///< 0: no completion queue
    CompletedOperation operation = CompletedOperation::Receive;
    std::uint64_t shared_receive_queue_context = 0;  ///< 0: no shared receive queue
};

/// Gets the connection events of an endpoint at once, instead of Endpoint::next_event(). Exactly one event reports the
/// outcome of an attempt to connect, and exactly one (Disconnected or Lost) the end of an established connection. There
/// is no such event if this side ends the attempt or the connection with disconnect() or terminate(). Called from any
/// thread while locks are held: an observer must not call the library or block.
class VIADUCT_EXPORT EndpointObserver {
public:
    virtual void on_connection_event(const ConnectionEvent& event) noexcept = 0;

    /// A request failed, or this end refused one of the peer. For people only: the program learns of it from
    /// completions and events. Logs it with the terms below.
    virtual void on_failed_request(const FailedRequest& failed) noexcept;

    /// How a request is named in words, for the library. By default in the terms of the core.
    virtual RequestTerms terms_of(const FailedRequest& request) const noexcept;

protected:
    ~EndpointObserver() = default;
};

/// Gets the asynchronous events of a device, instead of Device::next_event(), under the same rules.
class DeviceObserver {
public:
    virtual void on_async_event(const AsyncEvent& event) noexcept = 0;

protected:
    ~DeviceObserver() = default;
};

}  // namespace viaduct
