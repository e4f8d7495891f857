// SPDX-License-Identifier: BSD-3-Clause
// Converts textual addresses and ports to those of the core.
#pragma once

#include "core/address.hpp"
#include "core/attributes.hpp"

namespace viaduct::rpma {

/// Returns the address of one of this host's devices; the wildcard address means the address of `device`. Unreachable:
/// the text is not an address, or it is an address of another host. Throws std::bad_alloc.
Result<HostAddress> find_local_host(const char* text, const DeviceAttributes& device);

struct Route {
    HostAddress host;
    std::uint32_t device = 0;  ///< the number of the device that reaches the host
};

/// Returns the route to a host, which may be this one. Unreachable: the text is not an address, or no device reaches
/// it. Throws std::bad_alloc.
Result<Route> find_route(const char* text);

/// Returns the service for a port. InvalidParameter: the text is neither a number nor the name of a service.
Result<Bytes<Address::max_service>> find_service(const char* port);

}  // namespace viaduct::rpma
