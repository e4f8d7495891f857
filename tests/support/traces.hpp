// SPDX-License-Identifier: BSD-3-Clause
// What a process holds and what it has left on the machine, so that a test can tell whether something leaked.
#pragma once

#include <string>
#include <vector>

namespace viaduct::testing {

struct Traces {
    std::vector<std::string> descriptors;  ///< what the open file descriptors of this process refer to
    std::vector<std::string> mappings;     ///< mappings of this process that have a file or a memfd behind them
    std::vector<std::string> files;        ///< in /dev/shm and the directories for run-time files
};

/// Looks at this process and the machine.
Traces find_traces();

/// What there is now and was not there before, one item a line; empty where nothing leaked. Looks for a while before it
/// calls something a leak, as backends may let go of it on a thread of their own.
std::string leaked_since(const Traces& before);

}  // namespace viaduct::testing
