// SPDX-License-Identifier: BSD-3-Clause
// Converts textual addresses and ports to those of the core.
#pragma once

#include "core/provider.hpp"
#include "viaduct/address.hpp"
#include "viaduct/attributes.hpp"

namespace viaduct::rpma {

/// Returns the device of an address of this host; the wildcard address means the default device. Unreachable: the text
/// is not an address, or it is an address of another host. Throws std::bad_alloc.
Result<DeviceId> find_local_device(const char* text);

/// As above, for a device that is open: returns the address of the device of the same backend to which the text refers.
/// The wildcard address means the given device.
Result<HostAddress> find_local_host(const char* text, const DeviceId& id, const DeviceAttributes& attributes);

/// Returns the device that reaches a host, which may be this one. Unreachable: the text is not an address, or no device
/// reaches it. Throws std::bad_alloc.
Result<DeviceId> find_device_towards(const char* text);

/// Returns the first address of a host that the backend reaches. Errors as above.
Result<HostAddress> find_host(const char* text, backend::Provider& provider);

/// Returns the service for a port. InvalidParameter: the text is neither a number nor the name of a service.
Result<Bytes<Address::max_service>> find_service(const char* port);

}  // namespace viaduct::rpma
