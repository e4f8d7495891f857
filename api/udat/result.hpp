// SPDX-License-Identifier: BSD-3-Clause
// The results of DAT 2.0 entry points, for the registry and the provider, and the wrapper for entry points that
// allocate.
#pragma once

#include <dat2/dat_error.h>

#include <exception>
#include <new>
#include <system_error>

#include "api/support/failure.hpp"
#include "api/udat/failure.hpp"

namespace viaduct::dat {

using failure::failed;

constexpr DAT_RETURN error(DAT_RETURN_TYPE type, DAT_RETURN_SUBTYPE subtype = DAT_NO_SUBTYPE) noexcept {
    return DAT_CLASS_ERROR | static_cast<DAT_RETURN>(type) | static_cast<DAT_RETURN>(subtype);
}

// These leave the reason of the failure.
inline DAT_RETURN invalid_handle(DAT_RETURN_SUBTYPE subtype, const char* reason = "the handle is not valid") noexcept {
    return failed(error(DAT_INVALID_HANDLE, subtype), reason);
}
inline DAT_RETURN invalid_parameter(DAT_RETURN_SUBTYPE argument, const char* reason) noexcept {
    return failed(error(DAT_INVALID_PARAMETER, argument), reason);
}

/// Runs the body of an entry point that allocates.
DAT_RETURN guarded(auto&& body) noexcept {
    try {
        return body();
    } catch (const std::bad_alloc&) {
        return failed(error(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY), "out of memory");
    } catch (const std::system_error& problem) {
        return failed(error(DAT_INSUFFICIENT_RESOURCES),
                      Status(Code::NoResources, "no thread or descriptor", problem.code().value()));
    } catch (const std::exception& problem) {
        return failed(error(DAT_INTERNAL_ERROR), problem.what());
    }
}

}  // namespace viaduct::dat
