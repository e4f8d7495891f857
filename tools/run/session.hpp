// SPDX-License-Identifier: BSD-3-Clause
// Runs a program under the tracer: vi-run stays its parent, as strace(1) does, to tell how it ended.
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

/// Runs the program to its end, and passes signals on to it. Returns how it ended, as wait(2) does.
int run_to_end(const std::filesystem::path& program, char** arguments);

/// Ends this process as the program ended.
int end_like(int status);

}  // namespace viaduct::run
