// SPDX-License-Identifier: BSD-3-Clause
// Numbers in environment variables.
#pragma once

#include <charconv>
#include <cstdlib>
#include <cstring>

namespace viaduct {

/// The value of a variable; `otherwise` if it is not set or not a number.
inline unsigned number_setting(const char* variable, unsigned otherwise) noexcept {
    if (const char* value = std::getenv(variable); value != nullptr)
        std::from_chars(value, value + std::strlen(value), otherwise);
    return otherwise;
}

}  // namespace viaduct
