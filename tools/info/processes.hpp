// SPDX-License-Identifier: BSD-3-Clause
// What /proc tells about processes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace viaduct::info {

/// A process that has loaded Viaduct.
struct Process {
    int number = 0;
    std::uint32_t user = 0;
    std::string program;
    std::vector<std::string> apis;       ///< "vipl", "dat", "rpma": what it has loaded
    std::uint64_t network = 0;           ///< the inode number of its network namespace
    std::vector<std::uint64_t> sockets;  ///< inode numbers
};

/// The processes that have loaded Viaduct, without those that this user may not look into.
std::vector<Process> find_processes();

/// Reads the sockets of a process again.
void refresh(Process& process);

/// The network namespace of this process.
std::uint64_t own_network();

/// The name of a user, or the number if there is no such user.
std::string user_name(std::uint32_t user);

}  // namespace viaduct::info
