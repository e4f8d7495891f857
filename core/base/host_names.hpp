// SPDX-License-Identifier: BSD-3-Clause
// Names and addresses of hosts.
#pragma once

#include <string>
#include <vector>

#include "viaduct/address.hpp"
#include "viaduct/detail/export.hpp"

namespace viaduct {

/// The addresses of a host name or a numeric address. Those that are neither IPv4 nor IPv6 are empty. None: the
/// resolver failed. Throws std::bad_alloc.
VIADUCT_EXPORT std::vector<HostAddress> resolve_host(const std::string& name);

VIADUCT_EXPORT bool is_loopback(const HostAddress& address) noexcept;

/// Whether one of the addresses is a loopback address or belongs to a network interface of this host. Throws
/// std::bad_alloc, also if there are no descriptors to find out.
VIADUCT_EXPORT bool is_this_host(const std::vector<HostAddress>& addresses);

/// As gethostname(2).
VIADUCT_EXPORT std::string own_host_name();

}  // namespace viaduct
