// SPDX-License-Identifier: BSD-3-Clause
// The public header with exported calls, and the frames of entry points.
#pragma once

#pragma GCC visibility push(default)
#include "api/vipl/include/vipl.h"
#pragma GCC visibility pop

#include "api/support/entry.hpp"

namespace viaduct::vipl {

// The reasons for a handle that is not valid.
inline constexpr const char* no_nic = "NicHandle is not an open NIC";
inline constexpr const char* no_vi = "ViHandle is not a VI";
inline constexpr const char* no_cq = "CQHandle is not a completion queue";
inline constexpr const char* no_request = "ConnHandle is not a pending connection request";

using failure::failed;

/// For EntryPoint. Failure to allocate memory or start a thread becomes VIP_ERROR_RESOURCE. Waits that time out and
/// empty queues are not failures. A program may end a blocked VipConnectWait by cancelling its thread (guide,
/// section 7.8).
struct Api {
    using Result = VIP_RETURN;
    static constexpr Result success = VIP_SUCCESS;
    static constexpr Result invalid_argument = VIP_INVALID_PARAMETER;
    static constexpr Result out_of_memory = VIP_ERROR_RESOURCE;
    static constexpr Result internal_error = VIP_ERROR_RESOURCE;
    static constexpr OnSignal on_signal = OnSignal::Continue;
    static constexpr bool found(Result result) noexcept {
        return result == VIP_SUCCESS || result == VIP_DESCRIPTOR_ERROR;
    }
    [[gnu::cold]] static void report(const Call& call, const void* handle, Result result) noexcept;
};
using Entry = EntryPoint<Api>;

}  // namespace viaduct::vipl
