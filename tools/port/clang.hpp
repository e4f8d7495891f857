// SPDX-License-Identifier: BSD-3-Clause
// What a compiler knows of the names in a source. libclang parses in another process: of a source that makes it crash,
// or work forever, only the tokens are used.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tools/port/compile_commands.hpp"

namespace viaduct::port {

/// A function whose name the operator ## of a macro makes.
struct HiddenUse {
    std::string name;
    std::uint32_t offset = 0;  ///< of the macro's use
};

struct Meanings {
    std::string problem;          ///< why nothing is known; empty: the source was parsed
    std::set<std::uint32_t> own;  ///< offsets of names that mean something of the program, such as a local variable
    std::vector<HiddenUse> hidden;
};

Meanings parse_with_libclang(const std::string& path, std::string_view source, const CompileCommands& commands);

}  // namespace viaduct::port
