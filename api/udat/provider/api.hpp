// SPDX-License-Identifier: BSD-3-Clause
// The public headers and the results of entry points.
#pragma once

#include <dat2/udat.h>
// udat.h must come first
#include <dat2/dat_ib_extensions.h>
#include <dat2/dat_registry.h>

#include "api/udat/result.hpp"
#include "core/status.hpp"

namespace viaduct::dat {

inline constexpr DAT_RETURN success = DAT_SUCCESS;

constexpr DAT_RETURN invalid_handle(DAT_RETURN_SUBTYPE subtype) noexcept { return error(DAT_INVALID_HANDLE, subtype); }
constexpr DAT_RETURN invalid_state(DAT_RETURN_SUBTYPE subtype) noexcept { return error(DAT_INVALID_STATE, subtype); }

/// Converts the outcome of a core call. `resource` is the subtype for a lack of resources.
[[gnu::cold, gnu::noinline]] DAT_RETURN to_return(Code code,
                                                  DAT_RETURN_SUBTYPE resource = DAT_RESOURCE_MEMORY) noexcept;
inline DAT_RETURN to_return(const Status& status, DAT_RETURN_SUBTYPE resource = DAT_RESOURCE_MEMORY) noexcept {
    return to_return(status.code(), resource);
}

}  // namespace viaduct::dat
