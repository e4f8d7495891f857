// SPDX-License-Identifier: BSD-3-Clause
// A backend within one process: the queues of backends/software over a transport that copies frames in memory.
#pragma once

#include <memory>

#include "core/backend.hpp"

namespace viaduct::testing {

/// Devices of one provider can connect only to each other.
class MemoryProvider final : public backend::Provider {
public:
    MemoryProvider();
    ~MemoryProvider() override;

    std::string_view name() const noexcept override { return "memory"; }
    Result<std::unique_ptr<backend::Device>> open(std::uint32_t index, DeviceObserver& observer) noexcept override;
    Result<std::uint32_t> find(std::string_view device) noexcept override;
    Result<std::uint32_t> route_to(const HostAddress& host) noexcept override;
    Result<std::vector<backend::DeviceSummary>> devices() const noexcept override;

    /// Of devices opened later. Features that are turned off still work, but are not offered.
    Capabilities capabilities;

    /// Whether any object of the backend exists: not after a test has cleaned up.
    bool is_in_use() const noexcept;

private:
    struct World;
    const std::unique_ptr<World> world_;
};

}  // namespace viaduct::testing
