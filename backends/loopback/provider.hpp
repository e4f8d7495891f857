// SPDX-License-Identifier: BSD-3-Clause
// The entry point of the loopback backend.
#pragma once

#include "core/backend.hpp"

namespace viaduct::loopback {

class Provider final : public backend::Provider {
public:
    std::string_view name() const noexcept override { return "loopback"; }
    Result<std::unique_ptr<backend::Device>> open(std::uint32_t index, DeviceObserver& observer) noexcept override;
    Result<std::uint32_t> find(std::string_view device) noexcept override;
    Result<std::uint32_t> route_to(const HostAddress& host) noexcept override;
    Result<std::vector<backend::DeviceSummary>> devices() const noexcept override;
    Result<std::vector<backend::ListenerSummary>> listeners(const char* tables,
                                                            const Service* service) const noexcept override;
    Status probe(std::uint32_t index, const Address& listener, const Deadline& deadline) noexcept override;
};

}  // namespace viaduct::loopback
