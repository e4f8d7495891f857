// SPDX-License-Identifier: BSD-3-Clause
// Replaces the tcp backend in builds without it.
#include "backends/tcp/provider.hpp"

namespace viaduct::tcp {

backend::Provider* tcp_provider() noexcept { return nullptr; }

}  // namespace viaduct::tcp
