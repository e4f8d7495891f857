// SPDX-License-Identifier: BSD-3-Clause
// The listeners of the RDMA connection manager on this host.
#pragma once

#include <vector>

#include "core/backend.hpp"

namespace viaduct::verbs {

/// Returns those of all processes and of the kernel, whatever library they use. With `service`, only those at its port.
/// Unsupported: the kernel does not show them, or this build cannot ask. Throws std::bad_alloc.
Result<std::vector<backend::ProcessListener>> find_listeners(const Service* service);

}  // namespace viaduct::verbs
