// SPDX-License-Identifier: BSD-3-Clause
// Renders records of a trace into a buffer, without allocating.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace viaduct::trace {

enum class Format : std::uint32_t { Text, Json, Perfetto };

/// A value and its constant.
struct Constant {
    std::uint64_t value;
    const char* name;
};

/// A number that begins with zeros if it has fewer digits.
struct Digits {
    std::uint64_t value;
    int least;
};

/// Appends values to a buffer: as JSON, or as people read them. What does not fit is left out.
class Text {
public:
    Text(std::span<char> buffer, Format format) : buffer_(buffer), format_(format) {}

    std::string_view view() const { return {buffer_.data(), length_}; }
    std::size_t length() const { return length_; }

    /// Continues after bytes that are in the buffer already.
    void resume(std::size_t length) {
        length_ = length;
        first_ = length > 0 && (buffer_[length - 1] == '{' || buffer_[length - 1] == '(');
    }
    bool is_json() const { return format_ != Format::Text; }
    Format format() const { return format_; }
    bool overflowed() const { return overflowed_; }

    /// Texts and numbers as they are, one behind the other.
    template <class... Parts>
    void raw(const Parts&... parts) {
        (append(parts), ...);
    }
    void decimal(std::uint64_t value, int digits = 1);
    void seconds(std::uint64_t nanoseconds, int decimals);

    /// The name of the next value. Returns this text, for the value.
    Text& field(std::string_view name);
    void open(char bracket);
    void close(char bracket);

    /// The next value of a list, or a field.
    void next();

    /// A value was appended as raw text.
    void after_value() { first_ = false; }

    void number(std::int64_t value);
    void hexadecimal(std::uint64_t value);
    void boolean(bool value);
    void null();
    void address(const void* pointer) {
        pointer == nullptr ? null() : hexadecimal(reinterpret_cast<std::uintptr_t>(pointer));
    }

    /// A word that needs no escaping, of parts as in raw().
    template <class... Parts>
    void word(const Parts&... parts) {
        quote();
        raw(parts...);
        quote();
    }
    void string(std::string_view text, bool complete = true);

    /// Hexadecimal digits of bytes, and how many there were if they are not all.
    void bytes(std::span<const unsigned char> shown, std::size_t all);

    /// The constant with this value, or the number.
    void constant(std::span<const Constant> constants, std::uint64_t value);

    /// Constants joined by "|", and a number for unknown bits.
    void flags(std::span<const Constant> constants, std::uint64_t value);

private:
    void quote() {
        if (is_json()) raw("\"");
    }
    void append(std::string_view text);
    void append(std::uint64_t value) { decimal(value); }
    void append(Digits number) { decimal(number.value, number.least); }
    void hexadecimal_digits(std::uint64_t value);
    void two_digits(unsigned char byte);

    std::span<char> buffer_;
    Format format_;
    std::size_t length_ = 0;
    bool first_ = true;
    bool overflowed_ = false;
};

}  // namespace viaduct::trace
