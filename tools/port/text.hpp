// SPDX-License-Identifier: BSD-3-Clause
// Words and lists for reports.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace viaduct::port {

inline std::string join(const std::vector<std::string>& words, std::string_view separator = ", ") {
    std::string joined;
    for (const auto& word : words) {
        if (!joined.empty()) joined += separator;
        joined += word;
    }
    return joined;
}

/// A text for a terminal: control characters, which a file name may hold, become question marks.
inline std::string printable(std::string_view text) {
    std::string clean(text);
    for (char& c : clean)
        if (static_cast<unsigned char>(c) < ' ' || c == '\x7F') c = '?';
    return clean;
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
