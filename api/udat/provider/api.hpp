// SPDX-License-Identifier: BSD-3-Clause
// The public headers, the codes that entry points return, and the frame that those share which allocate.
#pragma once

#include <dat2/udat.h>
// udat.h is to come first
#include <dat2/dat_ib_extensions.h>
#include <dat2/dat_registry.h>

#include <exception>
#include <new>
#include <system_error>

#include "core/status.hpp"

namespace viaduct::dat {

inline constexpr DAT_RETURN success = DAT_SUCCESS;

constexpr DAT_RETURN error(DAT_RETURN_TYPE type, DAT_RETURN_SUBTYPE subtype = DAT_NO_SUBTYPE) noexcept {
    return DAT_CLASS_ERROR | static_cast<DAT_RETURN>(type) | static_cast<DAT_RETURN>(subtype);
}
constexpr DAT_RETURN invalid_handle(DAT_RETURN_SUBTYPE subtype) noexcept { return error(DAT_INVALID_HANDLE, subtype); }
constexpr DAT_RETURN invalid_parameter(DAT_RETURN_SUBTYPE argument) noexcept {
    return error(DAT_INVALID_PARAMETER, argument);
}
constexpr DAT_RETURN invalid_state(DAT_RETURN_SUBTYPE subtype) noexcept { return error(DAT_INVALID_STATE, subtype); }

/// What a call of the core reports. `resource`: what is lacking where resources are.
DAT_RETURN to_return(const Status& status, DAT_RETURN_SUBTYPE resource = DAT_RESOURCE_MEMORY) noexcept;

/// Runs the body of an entry point that allocates.
template <class Body>
DAT_RETURN guarded(Body&& body) noexcept {
    try {
        return body();
    } catch (const std::bad_alloc&) {
        return error(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
    } catch (const std::system_error&) {
        return error(DAT_INSUFFICIENT_RESOURCES);  // of threads or descriptors
    } catch (const std::exception&) {
        return error(DAT_INTERNAL_ERROR);
    }
}

}  // namespace viaduct::dat
