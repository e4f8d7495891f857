// SPDX-License-Identifier: BSD-3-Clause
// The public header with its calls marked for export, and the frame that every entry point shares.
#pragma once

#pragma GCC visibility push(default)
#include "api/vipl/include/vipl.h"
#pragma GCC visibility pop

#include <exception>

namespace viaduct::vipl {

/// Runs the body of an entry point; running out of memory or threads becomes VIP_ERROR_RESOURCE. Not noexcept: a
/// program ends a blocked VipConnectWait by cancelling its thread (guide, section 7.8), which unwinds through here.
template <class Body>
VIP_RETURN guarded(Body&& body) {
    try {
        return body();
    } catch (const std::exception&) {
        return VIP_ERROR_RESOURCE;
    }
}

}  // namespace viaduct::vipl
