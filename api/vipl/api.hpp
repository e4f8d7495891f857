// SPDX-License-Identifier: BSD-3-Clause
// The public header with exported calls, and the wrapper for the bodies of entry points.
#pragma once

#pragma GCC visibility push(default)
#include "api/vipl/include/vipl.h"
#pragma GCC visibility pop

#include <exception>

namespace viaduct::vipl {

/// Runs the body of an entry point. Failure to allocate memory or start a thread becomes VIP_ERROR_RESOURCE. Not
/// noexcept: a program may end a blocked VipConnectWait by cancelling its thread (guide, section 7.8), which unwinds
/// through this function.
template <class Body>
VIP_RETURN guarded(Body&& body) {
    try {
        return body();
    } catch (const std::exception&) {
        return VIP_ERROR_RESOURCE;
    }
}

}  // namespace viaduct::vipl
