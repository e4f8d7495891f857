// SPDX-License-Identifier: BSD-3-Clause
// A program that vi-run starts: where it is, and which libraries it loads.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tools/run/installation.hpp"

namespace viaduct::run {

/// Searches PATH as execvp() does. Throws measure::Error, also if there is no such program.
std::filesystem::path find_program(const std::string& name);

/// What is known before the program starts, in sentences for the user.
struct Findings {
    std::vector<std::string> notes;     ///< which libraries are replaced
    std::vector<std::string> warnings;  ///< what is not replaced, and why
};

/// Asks the dynamic linker which libraries a program loads with the library path of this installation. For a script,
/// the program is its interpreter.
Findings examine(const std::filesystem::path& program, const Installation& installation);

}  // namespace viaduct::run
