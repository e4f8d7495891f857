// SPDX-License-Identifier: BSD-3-Clause
// The addresses of this host's network interfaces, and the routes of the system.
#pragma once

#include <string>
#include <vector>

#include "viaduct/address.hpp"
#include "viaduct/status.hpp"

namespace viaduct::support {

struct NetworkAddress {
    std::string interface;  ///< such as "eth0"
    HostAddress host;
    bool loopback = false;  ///< belongs to the loopback interface; this need not be 127.0.0.1
};

/// Returns one entry for each IPv4 or IPv6 address of a network interface that is up. Loopback
/// interfaces come last, and IPv4 comes before IPv6; otherwise the order is that of the system. Link-local IPv6
/// addresses are left out because they are ambiguous without their interface. Throws std::bad_alloc, and
/// std::system_error if descriptors run out.
std::vector<NetworkAddress> find_network_addresses();

/// Returns the local address that the system uses for connections to a host. For an address of this host that is
/// usually the address itself. Sends nothing. Unreachable: there is no route, or the address is not that of a host.
Result<HostAddress> source_for(const HostAddress& host) noexcept;

}  // namespace viaduct::support
