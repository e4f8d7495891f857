// SPDX-License-Identifier: BSD-3-Clause
// The checks against the attributes of a device, which the core makes for all backends.
#pragma once

#include <cstdint>

#include "core/backend.hpp"
#include "viaduct/attributes.hpp"
#include "viaduct/status.hpp"

namespace viaduct {

/// InvalidReliability, InvalidTransferSize, InvalidQos, InvalidRdmaRead: not supported by the device.
Status check_attributes(const EndpointAttributes& attributes, const DeviceAttributes& device) noexcept;

/// As check_attributes(). InvalidParameter: a depth or the number of pieces is above the limit.
Status check_endpoint(const backend::EndpointInit& init, const DeviceAttributes& device) noexcept;

/// InvalidParameter: not the address of the device.
Status check_local_host(const HostAddress& host, const DeviceAttributes& device) noexcept;

/// InvalidParameter: 0 or above the limit.
Status check_completions(std::uint32_t capacity, const DeviceAttributes& device) noexcept;
Status check_shared_depth(std::uint32_t depth, const DeviceAttributes& device) noexcept;

/// InvalidParameter: an empty range, or one that wraps around.
Status check_range(const void* address, std::uint64_t length) noexcept;

/// Unsupported: the device has no windows of that scope.
Status check_window(WindowScope scope, const Capabilities& able) noexcept;

}  // namespace viaduct
