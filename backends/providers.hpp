// SPDX-License-Identifier: BSD-3-Clause
// The entry points of the backends. Those of verbs and tcp exist only in builds with them.
#pragma once

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
