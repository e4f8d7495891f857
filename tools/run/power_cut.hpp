// SPDX-License-Identifier: BSD-3-Clause
// Runs a program until its power fails (docs/power-cuts.md).
#pragma once

#include <filesystem>
#include <string>

namespace viaduct::run {

/// The exit status of vi-run where the power has failed.
inline constexpr int power_was_cut = 90;

/// Returns the value of VIADUCT_PMEM that an argument of --power-cut stands for. Throws tools::UsageError.
std::string pmem_setting(const std::string& argument);

/// The value of LD_PRELOAD with a library ahead of those that are preloaded already. Throws measure::Error.
std::string preloading(const std::filesystem::path& library);

/// Runs the program in a process group of its own, until the power fails or the program ends, and ends what is left of
/// the group. Returns power_was_cut, or the exit status of the program.
int run_until_power_cut(const std::filesystem::path& program, char** arguments, bool quiet);

}  // namespace viaduct::run
