// SPDX-License-Identifier: BSD-3-Clause
// The public headers with their functions marked for export, and the codes that entry points return.
#pragma once

#pragma GCC visibility push(default)
#include "api/udat/include/dat2/dat_registry.h"

/// Not in the public headers, and called by providers: from the number that the registry gave an IA to the handle that
/// its provider gave it, and back.
extern "C" DAT_RETURN dats_get_ia_handle(DAT_IA_HANDLE handle, DAT_IA_HANDLE* other);
#pragma GCC visibility pop

#include <exception>
#include <new>

namespace viaduct::dat {

constexpr DAT_RETURN error(DAT_RETURN_TYPE type, DAT_RETURN_SUBTYPE subtype = DAT_NO_SUBTYPE) noexcept {
    return DAT_CLASS_ERROR | static_cast<DAT_RETURN>(type) | static_cast<DAT_RETURN>(subtype);
}

/// Runs the body of an entry point that allocates.
template <class Body>
DAT_RETURN guarded(Body&& body) noexcept {
    try {
        return body();
    } catch (const std::bad_alloc&) {
        return error(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
    } catch (const std::exception&) {
        return error(DAT_INTERNAL_ERROR);
    }
}

}  // namespace viaduct::dat
