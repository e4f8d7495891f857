// SPDX-License-Identifier: BSD-3-Clause
// Diagnostics to standard error. The first part that detects a failure logs it; its callers stay silent.
#pragma once

#include "core/export.hpp"

namespace viaduct {

enum class LogLevel { Error, Warning, Info, Debug };

/// printf-style, one line, no newline needed. Lines below VIADUCT_LOG (error, warning, info, debug; by default
/// warning) are dropped.
VIADUCT_EXPORT void log(LogLevel level, const char* format, ...) noexcept __attribute__((format(printf, 2, 3)));

}  // namespace viaduct
