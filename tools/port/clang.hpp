// SPDX-License-Identifier: BSD-3-Clause
// What a compiler knows of the names in a source. libclang parses in another process: of a source that makes it crash,
// or work forever, only the tokens are used.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace viaduct::port {

/// The flags with which sources are compiled.
class CompileCommands {
public:
    /// Reads compile_commands.json in a directory. Returns why that is not possible, or nothing.
    std::string read(const std::filesystem::path& directory);

    /// The flags that decide what a source means: macros, directories and the language. Those of a header are the flags
    /// of a source beside it. Without any, the default ones.
    std::vector<std::string> flags_for(const std::filesystem::path& source) const;

private:
    void add(const nlohmann::json& command);

    std::map<std::filesystem::path, std::vector<std::string>> flags_;
};

/// The words of a command line, as a shell divides it.
std::vector<std::string> split_command(std::string_view command);

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
