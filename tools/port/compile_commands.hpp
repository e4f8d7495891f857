// SPDX-License-Identifier: BSD-3-Clause
// The flags with which sources are compiled.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace viaduct::port {

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

}  // namespace viaduct::port
