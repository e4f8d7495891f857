// SPDX-License-Identifier: BSD-3-Clause
// Devices, and what programs know them by: a struct ibv_context.
#pragma once

#include <memory>
#include <optional>

#include "api/rpma/api.hpp"
#include "core/device.hpp"

namespace viaduct::rpma {

/// The number of the device that a context stands for; nothing where it is not one of ours.
std::optional<std::uint32_t> device_number(const ibv_context* context) noexcept;

/// Opens a device, or shares it with those who have it open. Throws std::bad_alloc.
Result<std::shared_ptr<Device>> open_device(std::uint32_t number);

}  // namespace viaduct::rpma
