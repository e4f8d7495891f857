// SPDX-License-Identifier: BSD-3-Clause
// What /proc tells about processes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace viaduct::info {

struct Process {
    int number = 0;
    std::uint32_t user = 0;
    std::string program;
    std::vector<std::string> apis;       ///< "vipl", "dat", "rpma": what it has loaded, of Viaduct or stock
    bool uses_viaduct = false;           ///< has loaded it
    std::uint64_t network = 0;           ///< the inode number of its network namespace
    std::vector<std::uint64_t> sockets;  ///< inode numbers
};

/// The processes that have loaded Viaduct, without those that this user may not look into.
std::vector<Process> find_processes();

/// The process of a thread, whatever it has loaded. Nothing: it has ended. What this user may not look into is empty.
std::optional<Process> find_process_of(int thread);

/// Whether a signal or a debugger has stopped a process.
bool is_stopped(int number);

/// Reads the sockets of a process again.
void refresh(Process& process);

/// The network namespace of this process.
std::uint64_t own_network();

/// The name of a user, or the number if there is no such user.
std::string user_name(std::uint32_t user);

}  // namespace viaduct::info
