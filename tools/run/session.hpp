// SPDX-License-Identifier: BSD-3-Clause
// Runs a program: under the tracer, with the checker (docs/checker.md), or until its power fails (docs/power-cuts.md).
// vi-run stays its parent, as strace(1) does, to tell how it ended.
#pragma once

#include <filesystem>
#include <string>

#include "tools/run/trace/board.hpp"

namespace viaduct::run {

struct TraceOptions {
    bool records = false;  ///< write the calls
    bool summary = false;
    std::string file;  ///< empty: standard error
    trace::Format format = trace::Format::Text;
};

/// Runs the program to its end. The exit status is that of the program; a signal that ended the program ends this
/// process, too. `preload` is the library of the tracer.
int run_traced(const TraceOptions& options, const std::filesystem::path& preload, const std::filesystem::path& program,
               char** arguments);

/// The exit status of vi-run where the checker has found something.
inline constexpr int mistakes_found = 91;

/// Runs the program to its end, and counts what the checker has found in all its processes. Returns mistakes_found, or
/// ends as the program has ended.
int run_checked(const std::filesystem::path& program, char** arguments, bool quiet);

/// The exit status of vi-run where the power has failed.
inline constexpr int power_was_cut = 90;

/// Returns the value of VIADUCT_PMEM that an argument of --power-cut stands for. Throws tools::UsageError.
std::string pmem_setting(const std::string& argument);

/// Runs the program in a process group of its own, until the power fails or the program ends, and ends what is left of
/// the group. Returns power_was_cut, or the exit status of the program.
int run_until_power_cut(const std::filesystem::path& program, char** arguments, bool quiet);

/// The value of LD_PRELOAD with a library ahead of those that are preloaded already. Throws measure::Error.
std::string preloading(const std::filesystem::path& library);

/// Runs the program to its end, and passes signals on to it. Returns how it ended, as wait(2) does.
int run_to_end(const std::filesystem::path& program, char** arguments);

/// Ends this process as the program ended.
int end_like(int status);

}  // namespace viaduct::run
