// SPDX-License-Identifier: BSD-3-Clause
// A backend that takes everything and moves nothing, about the least that core/backend.hpp asks for. Every connect() to
// its own host is Established at once, with nobody at the other end; listeners hear of nobody. Sends complete as
// Flushed when they are posted, receives when the connection is ended. What takes a peer is missing in its
// capabilities.
#pragma once

#include <memory>

#include "core/backend.hpp"

namespace viaduct::testing {

std::shared_ptr<backend::Provider> make_null_provider();

}  // namespace viaduct::testing
