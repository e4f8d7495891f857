// SPDX-License-Identifier: BSD-3-Clause
// The results of DAT 2.0 entry points, for the registry and the provider, and the wrapper for entry points that
// allocate.
#pragma once

#include <dat2/dat_error.h>

#include <exception>
#include <new>
#include <system_error>

namespace viaduct::dat {

constexpr DAT_RETURN error(DAT_RETURN_TYPE type, DAT_RETURN_SUBTYPE subtype = DAT_NO_SUBTYPE) noexcept {
    return DAT_CLASS_ERROR | static_cast<DAT_RETURN>(type) | static_cast<DAT_RETURN>(subtype);
}
constexpr DAT_RETURN invalid_parameter(DAT_RETURN_SUBTYPE argument) noexcept {
    return error(DAT_INVALID_PARAMETER, argument);
}

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
