// SPDX-License-Identifier: BSD-3-Clause
// The backend over libfabric: ordinary networks, and fabrics that rdma-core does not drive.
#pragma once

#include "core/backend.hpp"

namespace viaduct::ofi {

/// Returns the provider, or null if this build has none.
backend::Provider* ofi_provider() noexcept;

}  // namespace viaduct::ofi
