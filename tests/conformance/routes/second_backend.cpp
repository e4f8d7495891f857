// SPDX-License-Identifier: BSD-3-Clause
#include "tests/conformance/routes/second_backend.hpp"

#include <cstdlib>
#include <string>

#include "tests/support/rig.hpp"

namespace viaduct::testing {
namespace {

constexpr std::string_view prefix = "viaduct-";

}  // namespace

Result<std::uint32_t> SecondProvider::find(std::string_view device) noexcept {
    return memory_.find(device.starts_with(prefix) ? device.substr(prefix.size()) : device);
}

Result<std::vector<backend::DeviceSummary>> SecondProvider::devices() const noexcept {
    auto devices = memory_.devices();
    if (!devices.ok()) return devices;
    for (backend::DeviceSummary &device : *devices) device.name.insert(0, prefix);
    return devices;
}

TwoBackends::TwoBackends() : list_{must(find_provider("loopback")), &second_} {
    unsetenv("VIADUCT_BACKEND");
    unsetenv("VIADUCT_DEVICE");
    use_providers(list_);
}

TwoBackends::~TwoBackends() { use_providers({}); }

}  // namespace viaduct::testing
