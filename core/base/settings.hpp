// SPDX-License-Identifier: BSD-3-Clause
// Settings in environment variables. An empty variable counts as not set. A value that cannot be used is reported once.
#pragma once

#include <limits>
#include <optional>
#include <string_view>

#include "core/export.hpp"

namespace viaduct {

/// The value of a variable; empty if it is not set.
VIADUCT_EXPORT std::string_view setting(const char* variable) noexcept;

/// The value of a variable that holds a number from `least` to `most`; none if it is not set or cannot be used.
VIADUCT_EXPORT std::optional<unsigned> number_setting(const char* variable, unsigned least = 0,
                                                      unsigned most = std::numeric_limits<unsigned>::max()) noexcept;

/// Logs a warning that quotes the value of a variable and says what can be used. One warning for each variable;
/// `variable` is a string literal.
VIADUCT_EXPORT void warn_of_setting(const char* variable, std::string_view usable) noexcept;

}  // namespace viaduct
