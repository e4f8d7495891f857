// SPDX-License-Identifier: BSD-3-Clause
// The public headers with exported functions, and the results of entry points.
#pragma once

#pragma GCC visibility push(default)
#include "api/udat/include/dat2/dat_registry.h"

/// Not in the public headers, but called by providers: convert between the number that the registry assigned to an IA
/// and the handle of its provider.
extern "C" DAT_RETURN dats_get_ia_handle(DAT_IA_HANDLE handle, DAT_IA_HANDLE* other);
#pragma GCC visibility pop

#include "api/udat/result.hpp"
