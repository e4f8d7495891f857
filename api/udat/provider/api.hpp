// SPDX-License-Identifier: BSD-3-Clause
// The public headers and the results of entry points.
#pragma once

#include <dat2/udat.h>
// udat.h must come first
#include <dat2/dat_ib_extensions.h>
#include <dat2/dat_registry.h>

#include "api/udat/result.hpp"
#include "core/explain.hpp"
#include "viaduct/status.hpp"

namespace viaduct::dat {

inline constexpr DAT_RETURN success = DAT_SUCCESS;

inline DAT_RETURN invalid_state(DAT_RETURN_SUBTYPE subtype, const char* reason) noexcept {
    return failed(error(DAT_INVALID_STATE, subtype), reason);
}

/// Converts the outcome of a core call and leaves its reason. `resource` is the subtype for a lack of resources.
[[gnu::cold, gnu::noinline]] DAT_RETURN to_failure(Status status, DAT_RETURN_SUBTYPE resource) noexcept;
inline DAT_RETURN to_return(const Status& status, DAT_RETURN_SUBTYPE resource = DAT_RESOURCE_MEMORY) noexcept {
    return status.ok() ? success : to_failure(status, resource);
}

/// Reports the failure of a call on an object of this provider, and returns the result of the call.
[[gnu::cold, gnu::noinline]] DAT_RETURN report_failure(const char* call, DAT_HANDLE handle, DAT_RETURN result) noexcept;

}  // namespace viaduct::dat
