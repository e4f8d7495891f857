// SPDX-License-Identifier: BSD-3-Clause
// Replaces what maps one to one, and marks the rest.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/port/clang.hpp"

namespace viaduct::port {

struct Todo {
    std::uint32_t line = 0;  ///< in the source
    std::string name;
    std::string advice;
    std::string reason = {};  ///< why a name with a direct replacement is left, or what replaces a call

    /// What is behind a text.
    std::string remark() const { return reason.empty() ? "" : " (" + reason + ")"; }
};

struct Rewriting {
    std::string text;
    std::size_t replaced = 0;
    std::vector<Todo> todos;  ///< the uses that are left, in the order of the source
};

/// The suffix of the path says whether the source is in C, as .h does, and whether others may include it. To the core,
/// which has no counterparts in C, everything is left with a comment.
Rewriting rewrite(std::string_view source, std::string_view target, const Meanings& meanings = {},
                  std::string_view path = "a.c");

}  // namespace viaduct::port
