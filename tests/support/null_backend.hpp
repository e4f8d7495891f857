// SPDX-License-Identifier: BSD-3-Clause
// A backend that accepts all requests and transfers nothing: about the minimum that core/backend.hpp requires.
// connect() to its own host is Established immediately, without a peer, and listeners get no requests. Sends complete
// as Flushed when they are posted, receives when the connection ends. Its capabilities exclude everything that needs a
// peer.
#pragma once

#include <memory>

#include "core/backend.hpp"

namespace viaduct::testing {

std::shared_ptr<backend::Provider> make_null_provider();

}  // namespace viaduct::testing
