// SPDX-License-Identifier: BSD-3-Clause
// Compares two results of vi-perf.
#pragma once

#include <cstdio>
#include <string>

namespace viaduct::measure {

/// Prints how the results in one file of vi-perf's JSON differ from those in another, and a verdict. What changed by at
/// most `tolerance` percent is the same. Returns whether nothing became worse. Throws Error.
bool compare(const std::string& before_path, const std::string& after_path, double tolerance, std::FILE* out = stdout);

}  // namespace viaduct::measure
