// SPDX-License-Identifier: BSD-3-Clause
// The addresses of this host that lead to RDMA devices.
#pragma once

#include <string>
#include <vector>

#include "core/address.hpp"

namespace viaduct::verbs {

struct Interface {
    std::string rdma_device;  ///< as the kernel names it: "rxe0", "mlx5_1"
    std::string net_device;   ///< "eth0"
    HostAddress host;
};

/// As users name the device that is made of it.
inline std::string name_of(const Interface& interface) { return "viaduct-" + interface.net_device; }

/// One for each address of a network interface with an RDMA device behind it: IPv4 first, then IPv6, each by the
/// name of the RDMA device. Link-local addresses mean nothing without their interface and are left out. Reads files
/// only: nothing stays open that a child of this process would inherit. Throws std::bad_alloc, and std::system_error
/// where descriptors are lacking.
std::vector<Interface> find_interfaces();

}  // namespace viaduct::verbs
