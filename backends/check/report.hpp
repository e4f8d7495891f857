// SPDX-License-Identifier: BSD-3-Clause
// How mistakes are told: a line of the log and, if a file is wanted, a line of JSON. Both say where in the program.
#pragma once

#include <array>
#include <cstdarg>
#include <cstddef>
#include <string_view>

#include "core/base/check_spec.hpp"

namespace viaduct::check {

/// A line of text, which is cut off where it has no room.
class Text {
public:
    Text() noexcept = default;
    explicit Text(const char* format, ...) noexcept __attribute__((format(printf, 2, 3)));

    void add(const char* format, ...) noexcept __attribute__((format(printf, 2, 3)));
    const char* c_str() const noexcept { return text_.data(); }

private:
    void add_list(const char* format, std::va_list arguments) noexcept;

    std::array<char, 400> text_{};
    std::size_t size_ = 0;
};

struct Report {
    Check check;
    Text object;                   ///< such as "VI 0x1200000001000010"; may be empty
    Text what;                     ///< without the places
    const void* posted = nullptr;  ///< see find_place()
    bool was_posted = false;       ///< whether `posted` means something
    bool is_found_here = true;     ///< whether the caller's place is part of the report
};

/// The return address of the call that has led into the libraries of Viaduct; null: none is known, as in a thread of
/// the library. Takes tens of nanoseconds where the way here is known already.
const void* find_place() noexcept;

/// In words, such as "hello+0x11f3 (main)". The offset is what addr2line(1) takes.
std::array<char, 160> describe_place(const void* place) noexcept;

/// Counts mistakes; the caller has to tell each only once.
void tell(const Report& report) noexcept;

}  // namespace viaduct::check
