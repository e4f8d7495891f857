// SPDX-License-Identifier: BSD-3-Clause
// Why a work request failed or was refused, for people. None of this runs while requests succeed.
#pragma once

#include <cstdint>

#include "viaduct/reason.hpp"
#include "viaduct/work.hpp"

namespace viaduct {

/// A request that did not do what its program wanted, as the end that found out sees it. Requests that are flushed are
/// not among them, nor are those under way when a connection breaks.
struct FailedRequest {
    CompletedOperation operation = CompletedOperation::Send;
    /// With what the request completes. Success: its program is not told (see RefusedWrite and Reliability), or the
    /// request is the peer's.
    CompletionCode code = CompletionCode::Success;
    CompletionCode told = CompletionCode::Success;  ///< what the peer is told; Success: nothing
    bool is_of_peer = false;                        ///< the peer's request, which this end refused
    int piece = -1;                                 ///< the piece at fault, from 0; -1: none
    std::uint64_t context = 0;                      ///< of the request; 0 if it is the peer's
    Reason why{};                                   ///< with the values at fault and the limits
};

}  // namespace viaduct
