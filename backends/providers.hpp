// SPDX-License-Identifier: BSD-3-Clause
// The entry points of the backends. Those of verbs and tcp exist only in builds with them.
#pragma once

#include <span>

#include "core/backend.hpp"

namespace viaduct::loopback {
backend::Provider& provider() noexcept;
}

namespace viaduct::verbs {
backend::Provider& provider() noexcept;
}

namespace viaduct::tcp {
backend::Provider& provider() noexcept;
}

namespace viaduct::check {
/// Wraps each provider of the list if VIADUCT_CHECK is set. If it cannot be used, no device can be opened.
void wrap_if_wanted(std::span<backend::Provider*> providers) noexcept;
}  // namespace viaduct::check
