// SPDX-License-Identifier: BSD-3-Clause
// Where a measurement ran, so that results can be told apart later.
#pragma once

#include <string>
#include <string_view>

namespace viaduct::measure {

/// Replaces all but printable ASCII, for a terminal or a file: texts of a peer may have any characters.
std::string plain_ascii(std::string text);

struct Machine {
    std::string version;  ///< of the tool
    std::string host;
    std::string processor;

    /// As servers send it: a line each.
    std::string text() const { return version + "\n" + host + "\n" + processor; }
    static Machine of_text(std::string_view text);
};

/// This host, and the version that the tool says it has.
Machine this_machine(std::string version);

}  // namespace viaduct::measure
