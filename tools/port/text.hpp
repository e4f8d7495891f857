// SPDX-License-Identifier: BSD-3-Clause
// Words and lists for reports.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "tools/text.hpp"

namespace viaduct::port {

using tools::printable;

inline std::string join(const std::vector<std::string>& words, std::string_view separator = ", ") {
    std::string joined;
    for (const auto& word : words) {
        if (!joined.empty()) joined += separator;
        joined += word;
    }
    return joined;
}

/// A text with small letters instead of capital ones.
inline std::string lower(std::string_view text) {
    std::string result(text);
    for (char& c : result)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + ('a' - 'A'));
    return result;
}

template <class Words>
bool among(const Words& words, std::string_view word) {
    return std::ranges::find(words, word) != words.end();
}

}  // namespace viaduct::port
