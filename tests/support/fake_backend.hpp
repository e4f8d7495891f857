// SPDX-License-Identifier: BSD-3-Clause
// A complete backend within one process, for tests. It uses no threads and no files, and executes every operation
// immediately under one mutex.
#pragma once

#include <cstddef>
#include <memory>

#include "core/backend.hpp"

namespace viaduct::testing {

namespace fake {
class World;
}

/// Devices of one provider can connect only to each other. Deadlines are checked during calls: while a test waits for
/// an event, none expire unless it calls check_deadlines().
class FakeProvider final : public backend::Provider {
public:
    FakeProvider();
    ~FakeProvider() override;

    std::string_view name() const noexcept override { return "fake"; }
    Result<std::uint32_t> device_count() const noexcept override;
    Result<std::unique_ptr<backend::Device>> open(std::uint32_t index, DeviceObserver& observer) noexcept override;
    Result<std::uint32_t> find(std::string_view device) noexcept override;
    Result<std::uint32_t> route_to(const HostAddress& host) noexcept override;
    Result<std::vector<backend::DeviceSummary>> devices() const noexcept override;

    /// Of devices opened later. Features that are turned off still work, but are not offered.
    Capabilities capabilities;

    /// Ends the connection attempts whose deadlines have passed.
    void check_deadlines() noexcept;

    /// Returns the number of existing backend objects: 0 after a test has cleaned up.
    std::size_t live_objects() const noexcept;

private:
    std::shared_ptr<fake::World> world_;
};

}  // namespace viaduct::testing
