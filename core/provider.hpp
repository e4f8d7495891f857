// SPDX-License-Identifier: BSD-3-Clause
// The backends of this build, and which of them is used. For front-ends, tools and tests.
#pragma once

#include <memory>
#include <string_view>

#include "core/backend.hpp"
#include "core/export.hpp"

namespace viaduct {

class Device;

/// The provider named "loopback" or "verbs"; if the name is empty, the first one that has a device. InvalidParameter:
/// there is none. NoResources: the devices could not be counted.
VIADUCT_EXPORT Result<backend::Provider*> find_provider(std::string_view name) noexcept;

/// The provider that has a device with this name. Errors as find_provider().
VIADUCT_EXPORT Result<backend::Provider*> find_provider_of(std::string_view device) noexcept;

/// The provider that Device::open() uses: the one that VIADUCT_BACKEND names, otherwise the one of VIADUCT_DEVICE,
/// otherwise the first one that has a device. InvalidParameter: the variables name none. NoResources: as
/// find_provider().
VIADUCT_EXPORT Result<backend::Provider*> selected_provider() noexcept;

/// Opens a device of the given provider. Errors and ownership as Device::open().
VIADUCT_EXPORT Result<std::shared_ptr<Device>> open_device(backend::Provider& provider, std::uint32_t index,
                                                           DeviceObserver& observer);

}  // namespace viaduct
