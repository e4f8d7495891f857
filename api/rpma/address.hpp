// SPDX-License-Identifier: BSD-3-Clause
// Addresses and ports in text, as the core knows them.
#pragma once

#include "core/address.hpp"
#include "core/attributes.hpp"

namespace viaduct::rpma {

/// Which of the addresses of this host's devices is meant; the one for any means that of `device`. Unreachable: the
/// text is no address, or that of another host. Throws std::bad_alloc.
Result<HostAddress> find_local_host(const char* text, const DeviceAttributes& device);

struct Route {
    HostAddress host;
    std::uint32_t device = 0;  ///< the number of the device by which the host is reached
};

/// The way to a host, maybe this one. Unreachable: the text is no address, or no device leads there.
/// Throws std::bad_alloc.
Result<Route> find_route(const char* text);

/// A port as a service. InvalidParameter: neither a number nor the name of a service.
Result<Bytes<Address::max_service>> find_service(const char* port);

}  // namespace viaduct::rpma
