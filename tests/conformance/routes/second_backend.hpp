// SPDX-License-Identifier: BSD-3-Clause
// A second backend besides loopback. Its devices viaduct-memory0 to viaduct-memory7 have the addresses 198.51.100.1
// to 198.51.100.8.
#pragma once

#include <array>

#include "core/provider.hpp"
#include "tests/support/memory_backend.hpp"

namespace viaduct::testing {

class SecondProvider final : public backend::Provider {
public:
    std::string_view name() const noexcept override { return "second"; }
    Result<std::unique_ptr<backend::Device>> open(std::uint32_t index, DeviceObserver &observer) noexcept override {
        return memory_.open(index, observer);
    }
    Result<std::uint32_t> find(std::string_view device) noexcept override;
    Result<std::uint32_t> route_to(const HostAddress &host) noexcept override { return memory_.route_to(host); }
    Result<std::vector<backend::DeviceSummary>> devices() const noexcept override;

private:
    MemoryProvider memory_;
};

/// While it exists, the backends are loopback and the second one, and no environment variable selects one of them.
class TwoBackends {
public:
    TwoBackends();
    ~TwoBackends();

private:
    SecondProvider second_;
    std::array<backend::Provider *, 2> list_;
};

}  // namespace viaduct::testing
