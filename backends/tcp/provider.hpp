// SPDX-License-Identifier: BSD-3-Clause
// The backend for ordinary networks: sockets and TLS.
#pragma once

#include "core/backend.hpp"

namespace viaduct::tcp {

/// Returns the provider, or null if this build has none.
backend::Provider* tcp_provider() noexcept;

}  // namespace viaduct::tcp
