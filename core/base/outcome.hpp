// SPDX-License-Identifier: BSD-3-Clause
// The events of attempts to connect that failed.
#pragma once

#include "viaduct/events.hpp"

namespace viaduct {

/// Rejected if the service has no listener, otherwise Unreachable.
inline ConnectionEvent failed_attempt(const Status& why) noexcept {
    if (why.code() == Code::NoListener)
        return {.kind = ConnectionEventKind::Rejected, .reason = Code::NoListener, .why = why};
    const bool lacking = why.code() == Code::NoResources;
    return {.kind = ConnectionEventKind::Unreachable, .reason = lacking ? Code::NoResources : Code::Ok, .why = why};
}

/// The event for a peer that sees a conflict. `agreement` is what compatible() says of its attributes: if they agree,
/// the peer has rejected the request.
inline ConnectionEvent conflict(const Status& agreement, const EndpointAttributes& remote) noexcept {
    if (agreement.ok())
        return {.kind = ConnectionEventKind::Rejected, .remote = remote, .why = "the peer rejected the request"};
    return {.kind = ConnectionEventKind::Conflict, .reason = agreement.code(), .remote = remote, .why = agreement};
}

}  // namespace viaduct
