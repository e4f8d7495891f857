// SPDX-License-Identifier: BSD-3-Clause
// The addresses of this host that belong to RDMA devices.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "viaduct/address.hpp"

namespace viaduct::verbs {

struct Interface {
    std::string rdma_device;  ///< the kernel's name: "rxe0", "mlx5_1"
    std::string net_device;   ///< "eth0"
    HostAddress host;
};

/// Returns the name under which users open the device of this interface.
inline std::string name_of(const Interface& interface) { return "viaduct-" + interface.net_device; }

/// Returns the network interfaces of an RDMA device, which has a directory in /sys/class/infiniband. A name may be
/// there several times. Throws as find_interfaces().
std::vector<std::string> interfaces_of(const std::filesystem::path& device);

/// Returns one entry for each address of a network interface with an RDMA device: IPv4 first, then IPv6, each sorted by
/// the name of the RDMA device. Link-local addresses are left out because they are ambiguous without their interface.
/// None if the libraries of rdma-core cannot be loaded. Only reads files, so that children of this process inherit no
/// open descriptors. Throws std::bad_alloc, and std::system_error if descriptors run out.
std::vector<Interface> find_interfaces();

}  // namespace viaduct::verbs
