// SPDX-License-Identifier: BSD-3-Clause
#include "backends/loopback/provider.hpp"

#include "backends/loopback/device.hpp"

namespace viaduct::loopback {

Result<std::uint32_t> Provider::device_count() const noexcept { return std::uint32_t{loopback::device_count}; }

Result<std::unique_ptr<backend::Device>> Provider::open(std::uint32_t index, DeviceObserver& observer) noexcept try {
    auto device = Device::open(index, observer);
    if (!device.ok()) return device.status();
    return std::unique_ptr<backend::Device>(std::move(*device));
} catch (const std::bad_alloc&) {
    return Status(Code::NoResources, "out of memory");
}

Result<std::uint32_t> Provider::find(std::string_view device) noexcept try {
    if (device == name_prefix) return std::uint32_t{0};
    for (std::uint32_t index = 0; index < loopback::device_count; ++index)
        if (device == name_of(index)) return index;
    return Status(Code::InvalidParameter, "no loopback device with that name");
} catch (const std::bad_alloc&) {
    return Status(Code::NoResources, "out of memory");
}

Result<std::uint32_t> Provider::route_to(const HostAddress& host) noexcept try {
    if (const auto index = index_of(host)) return *index;
    return Status(Code::Unreachable, "the address does not belong to this host");
} catch (const std::bad_alloc&) {
    return Status(Code::NoResources, "out of memory");
}

}  // namespace viaduct::loopback
