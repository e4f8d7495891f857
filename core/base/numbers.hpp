// SPDX-License-Identifier: BSD-3-Clause
// Numbers in texts, and what is around them.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace viaduct {

/// Removes a number from the front of the text. Returns false if there is none, or if it does not fit.
template <class Number, class... Base>
bool take_number(std::string_view& text, Number& number, Base... base) noexcept {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base...);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return error == std::errc();
}

/// Removes a prefix. Returns false if the text does not start with it.
inline bool take_text(std::string_view& text, std::string_view prefix) noexcept {
    if (!text.starts_with(prefix)) return false;
    text.remove_prefix(prefix.size());
    return true;
}

/// The number that the text is, from the first letter to the last one.
template <class Number, class... Base>
std::optional<Number> whole_number(std::string_view text, Base... base) noexcept {
    Number number{};
    return take_number(text, number, base...) && text.empty() ? std::optional(number) : std::nullopt;
}

}  // namespace viaduct
