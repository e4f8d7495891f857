// SPDX-License-Identifier: BSD-3-Clause
// What the processes of a user tell about themselves: each process with an open device answers questions about its
// devices, endpoints and listeners. docs/introspection.md describes the answers.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

#include "viaduct/detail/export.hpp"
#include "viaduct/status.hpp"

namespace viaduct {

/// A process that can be asked.
struct ProcessInfo {
    pid_t pid = 0;     ///< in the PID namespace of the process
    std::string name;  ///< of its socket, in the abstract namespace
};

/// The processes of this user that have a device open, in this network namespace, by number. None if /proc cannot be
/// read. Throws std::bad_alloc.
VIADUCT_EXPORT std::vector<ProcessInfo> find_processes();

/// Asks a process about itself. The answer is a JSON document. NoListener: there is no such process, or it has no open
/// device. PermissionDenied: the socket belongs to another user. TimedOut: the process does not answer within
/// `at_most`; it may be stopped. Throws std::bad_alloc.
VIADUCT_EXPORT Result<std::string> ask_process(const ProcessInfo& process,
                                               std::chrono::milliseconds at_most = std::chrono::seconds(2));

/// As above, for the first process that answers to this number: several may have it, in different PID namespaces.
VIADUCT_EXPORT Result<std::string> ask_process(pid_t pid, std::chrono::milliseconds at_most = std::chrono::seconds(2));

/// What this process would answer. Throws std::bad_alloc.
VIADUCT_EXPORT std::string describe_this_process();

}  // namespace viaduct
