// SPDX-License-Identifier: BSD-3-Clause
// Names and addresses of hosts, as the system's resolver and its network interfaces know them.
#pragma once

#include <string>
#include <vector>

#include "core/address.hpp"
#include "core/export.hpp"

namespace viaduct {

/// The addresses of a name or of a numeric address in text (empty ones for what is neither IPv4 nor IPv6); none where
/// the resolver fails. Throws std::bad_alloc.
VIADUCT_EXPORT std::vector<HostAddress> resolve_host(const std::string& name);

/// Whether any of the addresses is a loopback address or that of one of this host's network interfaces.
VIADUCT_EXPORT bool is_this_host(const std::vector<HostAddress>& addresses);

/// As gethostname(2).
VIADUCT_EXPORT std::string own_host_name();

}  // namespace viaduct
