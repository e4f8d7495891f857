// SPDX-License-Identifier: BSD-3-Clause
// Wraps the backend of another provider, so that a plan can make its calls and requests fail.
#pragma once

#include <memory>
#include <span>

#include "backends/faults/plan.hpp"
#include "backends/support/forwarding.hpp"

namespace viaduct::faults {

/// What is only for diagnostics, and calls without a status, do not fail.
class Provider final : public forwarding::Provider {
public:
    /// Both outlive the provider and all that it opens.
    Provider(backend::Provider& inner, Plan& plan) noexcept : forwarding::Provider(inner), plan_(plan) {}

    Result<std::unique_ptr<backend::Device>> open(std::uint32_t index, DeviceObserver& observer) noexcept override;
    Result<std::uint32_t> find(std::string_view device) noexcept override {
        if (const Status failure = plan_.before(Call::Other, ""); !failure.ok()) return failure;
        return forwarding::Provider::find(device);
    }
    Result<std::uint32_t> route_to(const HostAddress& host) noexcept override {
        if (const Status failure = plan_.before(Call::Other, ""); !failure.ok()) return failure;
        return forwarding::Provider::route_to(host);
    }

private:
    Plan& plan_;
};

/// Wraps each provider of the list if VIADUCT_FAULTS is set. If it cannot be used, no device can be opened.
void wrap_if_wanted(std::span<backend::Provider*> providers) noexcept;

}  // namespace viaduct::faults
