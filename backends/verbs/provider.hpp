// SPDX-License-Identifier: BSD-3-Clause
// The entry point of the verbs backend.
#pragma once

#include "core/backend.hpp"

namespace viaduct::verbs {

/// The devices are the addresses that find_interfaces() returns at the time of the call.
class Provider final : public backend::Provider {
public:
    std::string_view name() const noexcept override { return "verbs"; }
    Result<std::unique_ptr<backend::Device>> open(std::uint32_t index, DeviceObserver& observer) noexcept override;
    Result<std::uint32_t> find(std::string_view device) noexcept override;
    Result<std::uint32_t> route_to(const HostAddress& host) noexcept override;
    Result<std::vector<backend::DeviceSummary>> devices() const noexcept override;
    Result<std::vector<backend::ProcessListener>> process_listeners(const Service* service) const noexcept override;
};

/// Returns the provider of this process, or null in a build without it.
backend::Provider* verbs_provider() noexcept;

}  // namespace viaduct::verbs
