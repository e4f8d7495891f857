// SPDX-License-Identifier: BSD-3-Clause
#include "backends/verbs/provider.hpp"

#include <infiniband/verbs.h>

#include <new>
#include <system_error>

#include "backends/verbs/device.hpp"

namespace viaduct::verbs {

std::uint32_t Provider::device_count() const noexcept try {
    return static_cast<std::uint32_t>(find_interfaces().size());
} catch (const std::bad_alloc&) {
    return 0;
}

Result<std::unique_ptr<backend::Device>> Provider::open(std::uint32_t index, DeviceObserver& observer) noexcept try {
    // Where the kernel copies registered pages at a fork by itself, this does nothing.
    if (const int error = ibv_fork_init(); error != 0) return Status::from_errno(error, "ibv_fork_init");
    auto device = Device::open(find_interfaces(), index, observer);
    if (!device.ok()) return device.status();
    return std::unique_ptr<backend::Device>(std::move(*device));
} catch (const std::bad_alloc&) {
    return Status(Code::NoResources, "out of memory");
} catch (const std::system_error& error) {
    return Status::from_errno(error.code().value(), "thread of the device");
}

backend::Provider* verbs_provider() noexcept {
    static Provider provider;
    return &provider;
}

}  // namespace viaduct::verbs
