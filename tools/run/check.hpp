// SPDX-License-Identifier: BSD-3-Clause
// Runs a program with the checker (docs/checker.md).
#pragma once

#include <filesystem>

namespace viaduct::run {

/// The exit status of vi-run where the checker has found something.
inline constexpr int mistakes_found = 91;

/// Runs the program to its end, and counts what the checker has found in all its processes. Returns mistakes_found, or
/// ends as the program has ended.
int run_checked(const std::filesystem::path& program, char** arguments, bool quiet);

}  // namespace viaduct::run
