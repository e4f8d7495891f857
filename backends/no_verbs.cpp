// SPDX-License-Identifier: BSD-3-Clause
// Replaces the verbs backend in builds without it.
#include "backends/verbs/provider.hpp"

namespace viaduct::verbs {

backend::Provider* verbs_provider() noexcept { return nullptr; }

}  // namespace viaduct::verbs
