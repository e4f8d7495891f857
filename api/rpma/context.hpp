// SPDX-License-Identifier: BSD-3-Clause
// Devices and the struct ibv_context by which programs refer to them.
#pragma once

#include <memory>
#include <optional>

#include "api/rpma/api.hpp"
#include "core/provider.hpp"
#include "viaduct/device.hpp"

namespace viaduct::rpma {

/// Returns the device of a context, or nothing if the context is not from this library.
std::optional<DeviceId> device_of(const ibv_context* context) noexcept;

/// Opens a device, or shares it if it is already open. Throws std::bad_alloc.
Result<std::shared_ptr<Device>> open_device(const DeviceId& id);

}  // namespace viaduct::rpma
