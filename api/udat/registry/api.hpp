// SPDX-License-Identifier: BSD-3-Clause
// The public headers with their functions marked for export, and the codes that entry points return.
#pragma once

#pragma GCC visibility push(default)
#include "api/udat/include/dat2/dat_registry.h"

/// Not in the public headers, and called by providers: from the number that the registry gave an IA to the handle that
/// its provider gave it, and back.
extern "C" DAT_RETURN dats_get_ia_handle(DAT_IA_HANDLE handle, DAT_IA_HANDLE* other);
#pragma GCC visibility pop

#include "api/udat/result.hpp"
