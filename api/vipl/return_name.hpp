// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "api/vipl/include/vipl.h"

namespace viaduct::vipl {

/// The name of a return code, as programs write it; never null.
inline const char* name_of(VIP_RETURN result) noexcept {
    switch (result) {
        case VIP_SUCCESS: return "VIP_SUCCESS";
        case VIP_NOT_DONE: return "VIP_NOT_DONE";
        case VIP_INVALID_PARAMETER: return "VIP_INVALID_PARAMETER";
        case VIP_ERROR_RESOURCE: return "VIP_ERROR_RESOURCE";
        case VIP_TIMEOUT: return "VIP_TIMEOUT";
        case VIP_REJECT: return "VIP_REJECT";
        case VIP_INVALID_RELIABILITY_LEVEL: return "VIP_INVALID_RELIABILITY_LEVEL";
        case VIP_INVALID_MTU: return "VIP_INVALID_MTU";
        case VIP_INVALID_QOS: return "VIP_INVALID_QOS";
        case VIP_INVALID_PTAG: return "VIP_INVALID_PTAG";
        case VIP_INVALID_RDMAREAD: return "VIP_INVALID_RDMAREAD";
        case VIP_DESCRIPTOR_ERROR: return "VIP_DESCRIPTOR_ERROR";
        case VIP_INVALID_STATE: return "VIP_INVALID_STATE";
        case VIP_ERROR_NAMESERVICE: return "VIP_ERROR_NAMESERVICE";
        case VIP_NO_MATCH: return "VIP_NO_MATCH";
        case VIP_NOT_REACHABLE: return "VIP_NOT_REACHABLE";
        case VIP_ERROR_NOT_SUPPORTED: return "VIP_ERROR_NOT_SUPPORTED";
        case VIP_INVALID_ADDRESS: return "VIP_INVALID_ADDRESS";
    }
    return "an unknown code";
}

}  // namespace viaduct::vipl
