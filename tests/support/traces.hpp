// SPDX-License-Identifier: BSD-3-Clause
// The resources of this process and on this machine, so that a test can detect leaks.
#pragma once

#include <string>
#include <vector>

namespace viaduct::testing {

struct Traces {
    std::vector<std::string> descriptors;  ///< what the open descriptors of this process refer to
    std::vector<std::string> mappings;     ///< mappings of this process that refer to a file or a memfd
    std::vector<std::string> files;        ///< in /dev/shm and the directories for runtime files
};

/// Finds the current resources of this process and the machine.
Traces find_traces();

/// Returns new resources that did not exist before, one per line. Repeats the check for some time, because backends may
/// release resources on their own threads.
std::string leaked_since(const Traces& before);

}  // namespace viaduct::testing
