// SPDX-License-Identifier: BSD-3-Clause
#include "tools/run/trace/text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

namespace viaduct::trace {

void Text::append(std::string_view text) {
    if (overflowed_ || text.size() > buffer_.size() - length_) {
        overflowed_ = true;
        return;
    }
    std::memcpy(buffer_.data() + length_, text.data(), text.size());
    length_ += text.size();
}

void Text::decimal(std::uint64_t value, int digits) {
    std::array<char, 24> text{};
    const auto end = std::to_chars(text.begin(), text.end(), value).ptr;
    for (auto missing = digits - (end - text.begin()); missing > 0; --missing) raw("0");
    append({text.begin(), end});
}

void Text::seconds(std::uint64_t nanoseconds, int decimals) {
    constexpr std::uint64_t second = 1'000'000'000;
    std::uint64_t fraction = nanoseconds % second;
    constexpr int all_decimals = 9;
    for (int left_out = decimals; left_out < all_decimals; ++left_out) fraction /= 10;
    raw(nanoseconds / second, ".", Digits{fraction, decimals});
}

void Text::next() {
    if (!first_) raw(is_json() ? "," : ", ");
    first_ = false;
}

Text& Text::field(std::string_view name) {
    next();
    quote();
    raw(name, is_json() ? "\":" : "=");
    return *this;
}

void Text::open(char bracket) {
    append({&bracket, 1});
    first_ = true;
}

void Text::close(char bracket) {
    append({&bracket, 1});
    first_ = false;
}

void Text::number(std::int64_t value) {
    if (value < 0) raw("-");
    decimal(value < 0 ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value));
}

void Text::hexadecimal_digits(std::uint64_t value) {
    std::array<char, 24> text{};
    constexpr int base = 16;
    raw("0x", std::string_view(text.begin(), std::to_chars(text.begin(), text.end(), value, base).ptr));
}

void Text::two_digits(unsigned char byte) {
    constexpr std::string_view digits = "0123456789abcdef";
    constexpr unsigned base = 16;
    raw(digits.substr(byte / base, 1), digits.substr(byte % base, 1));
}

void Text::hexadecimal(std::uint64_t value) {
    quote();
    hexadecimal_digits(value);
    quote();
}

void Text::boolean(bool value) { raw(value ? "true" : "false"); }

void Text::null() { raw(is_json() ? "null" : "NULL"); }

void Text::string(std::string_view text, bool complete) {
    raw("\"");
    for (const char character : text) {
        const auto byte = static_cast<unsigned char>(character);
        constexpr unsigned char first_printable = 0x20;
        constexpr unsigned char last_printable = 0x7e;
        if (character == '"' || character == '\\') {
            raw("\\", std::string_view(&character, 1));
        } else if (byte >= first_printable && byte <= last_printable) {
            append({&character, 1});
        } else {
            raw(is_json() ? "\\u00" : "\\x");
            two_digits(byte);
        }
    }
    raw(complete ? "\"" : is_json() ? "...\"" : "\"...");
}

void Text::bytes(std::span<const unsigned char> shown, std::size_t all) {
    quote();
    for (const unsigned char byte : shown) two_digits(byte);
    if (shown.size() < all) raw("...(", all, " bytes)");
    quote();
}

void Text::constant(std::span<const Constant> constants, std::uint64_t value) {
    const auto found = std::ranges::find(constants, value, &Constant::value);
    if (found != constants.end())
        word(found->name);
    else
        number(static_cast<std::int64_t>(value));
}

void Text::flags(std::span<const Constant> constants, std::uint64_t value) {
    const auto exact = std::ranges::find(constants, value, &Constant::value);
    if (exact != constants.end()) return word(exact->name);
    if (value == 0) return word("0");
    quote();
    bool first = true;
    while (value != 0) {
        const Constant* widest = nullptr;
        for (const auto& each : constants)
            if (each.value != 0 && (value & each.value) == each.value &&
                (widest == nullptr || each.value > widest->value))
                widest = &each;
        if (!first) raw("|");
        first = false;
        if (widest == nullptr) {
            hexadecimal_digits(value);
            break;
        }
        raw(widest->name);
        value &= ~widest->value;
    }
    quote();
}

}  // namespace viaduct::trace
