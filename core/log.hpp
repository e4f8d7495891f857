// SPDX-License-Identifier: BSD-3-Clause
// Diagnostics on standard error. The code that detects a failure logs it; its callers do not.
#pragma once

#include "viaduct/detail/export.hpp"

namespace viaduct {

enum class LogLevel { Error, Warning, Info, Debug };

/// Writes one line; printf-style, without a newline. VIADUCT_LOG (error, warning, info or debug; by default warning) is
/// the lowest level that is written.
/// Of lines with the same format, at most 100 a second are written, unless VIADUCT_LOG is debug. Does not wait: lines
/// for which standard error has no room are dropped. The numbers of both are written later.
VIADUCT_EXPORT void log(LogLevel level, const char* format, ...) noexcept __attribute__((format(printf, 2, 3)));

/// Whether log() writes lines of this level.
VIADUCT_EXPORT bool is_logged(LogLevel level) noexcept;

}  // namespace viaduct
