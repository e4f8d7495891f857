// SPDX-License-Identifier: BSD-3-Clause
// The public header with exported calls, and the wrapper for the bodies of entry points.
#pragma once

#pragma GCC visibility push(default)
#include "api/vipl/include/vipl.h"
#pragma GCC visibility pop

#include <exception>

#include "api/support/failure.hpp"
#include "core/base/waiting.hpp"

namespace viaduct::vipl {

// The reasons for a handle that is not valid.
inline constexpr const char* no_nic = "NicHandle is not an open NIC";
inline constexpr const char* no_vi = "ViHandle is not a VI";
inline constexpr const char* no_cq = "CQHandle is not a completion queue";
inline constexpr const char* no_request = "ConnHandle is not a pending connection request";

/// Returns the code, and leaves the reason for the entry point.
[[gnu::cold]] VIP_RETURN failed(VIP_RETURN result, const char* why) noexcept;

/// Reports the failure of a call on a handle. Waits that time out and empty queues are not failures.
[[gnu::cold]] void report(const char* call, const void* handle, VIP_RETURN result) noexcept;

/// Reports a call that fails before it does anything. For entry points that are too short for guarded().
[[gnu::cold, gnu::noinline]] VIP_RETURN refused(const void* handle, const char* why,
                                                const char* call = __builtin_FUNCTION()) noexcept;

/// Runs the body of an entry point that was called with a handle, and reports its failure. Failure to allocate memory
/// or start a thread becomes VIP_ERROR_RESOURCE. Not noexcept: a program may end a blocked VipConnectWait by cancelling
/// its thread (guide, section 7.8), which unwinds through this function.
template <class Body>
VIP_RETURN guarded(const void* handle, Body&& body, const char* call = __builtin_FUNCTION()) {
    const CancellationHold hold;
    failure::clear();
    VIP_RETURN result = VIP_ERROR_RESOURCE;
    try {
        result = body();
    } catch (const std::exception& error) {
        failure::because(error.what());
    }
    if (result != VIP_SUCCESS) report(call, handle, result);
    return result;
}

}  // namespace viaduct::vipl
