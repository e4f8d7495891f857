// SPDX-License-Identifier: BSD-3-Clause
// A complete backend inside one process, for tests: no threads, no files, every operation done at once under one mutex.
#pragma once

#include <cstddef>
#include <memory>

#include "core/backend.hpp"

namespace viaduct::testing {

namespace fake {
class World;
}

/// Devices of one provider reach each other and no others. Deadlines are looked at whenever somebody calls in: waiting
/// for an event alone does not make time pass, check_deadlines() does.
class FakeProvider final : public backend::Provider {
public:
    FakeProvider();
    ~FakeProvider() override;

    std::string_view name() const noexcept override { return "fake"; }
    Result<std::uint32_t> device_count() const noexcept override;
    Result<std::unique_ptr<backend::Device>> open(std::uint32_t index, DeviceObserver& observer) noexcept override;
    Result<std::uint32_t> find(std::string_view device) noexcept override;
    Result<std::uint32_t> route_to(const HostAddress& host) noexcept override;

    /// Of the devices opened from now on: those that they lack, they have all the same, and do not offer.
    Capabilities capabilities;

    /// Ends the connection attempts whose time is up.
    void check_deadlines() noexcept;

    /// Backend objects that exist now, of every kind: 0 once a test has cleaned up.
    std::size_t live_objects() const noexcept;

private:
    std::shared_ptr<fake::World> world_;
};

}  // namespace viaduct::testing
