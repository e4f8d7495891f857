// SPDX-License-Identifier: BSD-3-Clause
// Wraps the backend of another provider, to find latent mistakes of the program (docs/checker.md).
#pragma once

#include <span>

#include "backends/check/tracker.hpp"
#include "backends/support/forwarding.hpp"

namespace viaduct::check {

class Provider final : public forwarding::Provider {
public:
    /// Both outlive the provider and all that it opens.
    Provider(backend::Provider& inner, Tracker& tracker) noexcept : forwarding::Provider(inner), tracker_(tracker) {}

    Result<std::unique_ptr<backend::Device>> open(std::uint32_t index, DeviceObserver& observer) noexcept override;

private:
    Tracker& tracker_;
};

/// Wraps each provider of the list if VIADUCT_CHECK is set. If it cannot be used, no device can be opened.
void wrap_if_wanted(std::span<backend::Provider*> providers) noexcept;

}  // namespace viaduct::check
