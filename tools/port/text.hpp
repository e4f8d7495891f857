// SPDX-License-Identifier: BSD-3-Clause
// Words and lists for reports.
#pragma once

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <boost/algorithm/string/case_conv.hpp>

#include "tools/text.hpp"

namespace viaduct::port {

using tools::printable;

inline std::string join(const std::vector<std::string>& words, std::string_view separator = ", ") {
    return fmt::format("{}", fmt::join(words, separator));
}

/// A text with small letters instead of capital ones.
inline std::string lower(std::string_view text) { return boost::to_lower_copy(std::string(text)); }

/// Whether names in C have a character.
inline bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

/// Whether a byte of UTF-8 continues a character.
inline bool continues_character(char c) { return (c & 0xC0) == 0x80; }

bool among(const auto& values, const auto& value) { return std::ranges::find(values, value) != values.end(); }

}  // namespace viaduct::port
