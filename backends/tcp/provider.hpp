// SPDX-License-Identifier: BSD-3-Clause
// The backend over libfabric: ordinary networks, and fabrics that rdma-core does not drive.
#pragma once

#include "core/backend.hpp"

namespace viaduct::tcp {

/// Returns the provider, or null if this build has none.
backend::Provider* tcp_provider() noexcept;

}  // namespace viaduct::tcp
