// SPDX-License-Identifier: BSD-3-Clause
// Wraps the backends of other providers, to find latent mistakes of the program (docs/checker.md).
#pragma once

#include <span>

#include "core/backend.hpp"

namespace viaduct::check {

/// Wraps each provider of the list if VIADUCT_CHECK is set. If it cannot be used, no device can be opened.
void wrap_if_wanted(std::span<backend::Provider*> providers) noexcept;

}  // namespace viaduct::check
