// SPDX-License-Identifier: BSD-3-Clause
// The addresses of this host at which devices can be opened.
#pragma once

#include <vector>

#include "core/backend.hpp"

namespace viaduct::tcp {

/// Returns them in order of device numbers. Throws std::bad_alloc and std::system_error.
std::vector<backend::DeviceSummary> find_places();

}  // namespace viaduct::tcp
