// SPDX-License-Identifier: BSD-3-Clause
// The public headers with exported functions, and the results of entry points.
#pragma once

#pragma GCC visibility push(default)
#include "api/udat/include/dat2/dat_registry.h"
#pragma GCC visibility pop

#include "api/udat/result.hpp"
