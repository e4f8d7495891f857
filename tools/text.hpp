// SPDX-License-Identifier: BSD-3-Clause
// Texts that the tools print and compare.
#pragma once

#include <string>
#include <string_view>

namespace viaduct::tools {

/// A text for a terminal: control characters, which the name of a file or program may hold, become question marks.
inline std::string printable(std::string_view text) {
    std::string clean(text);
    for (char& c : clean)
        if (static_cast<unsigned char>(c) < ' ' || c == '\x7F') c = '?';
    return clean;
}

}  // namespace viaduct::tools
