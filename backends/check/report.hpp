// SPDX-License-Identifier: BSD-3-Clause
// How mistakes are told: a line of the log and, if a file is wanted, a line of JSON.
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

/// Counts mistakes; the caller has to tell each only once.
void tell(const Report& report) noexcept;

}  // namespace viaduct::check
