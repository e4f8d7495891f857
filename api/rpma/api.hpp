// SPDX-License-Identifier: BSD-3-Clause
// The public header with exported functions, and the wrapper for the bodies of entry points.
#pragma once

#pragma GCC visibility push(default)
#include "api/rpma/include/librpma.h"
#pragma GCC visibility pop

#include <exception>
#include <new>

namespace viaduct::rpma {

/// Runs the body of an entry point that allocates.
template <class Body>
int guarded(Body&& body) {
    try {
        return body();
    } catch (const std::bad_alloc&) {
        return RPMA_E_NOMEM;
    } catch (const std::exception&) {
        return RPMA_E_PROVIDER;
    }
}

}  // namespace viaduct::rpma
