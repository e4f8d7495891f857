// SPDX-License-Identifier: BSD-3-Clause
// The arguments of calls, and constants.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "tools/port/tokenizer.hpp"

namespace viaduct::port {

struct Call {
    std::vector<std::span<const Token>> arguments;
};

/// The call whose name is the token with this index. Nothing if the parentheses do not match within a reasonable
/// distance.
std::optional<Call> parse_call(const std::vector<Token>& tokens, std::size_t name);

/// Macros of a source that stand for a number.
using Constants = std::map<std::string_view, std::uint64_t>;
Constants find_constants(const std::vector<Token>& tokens);

/// The value of a number, a constant, or a product or shift of them.
std::optional<std::uint64_t> value_of(std::span<const Token> tokens, const Constants& constants);

}  // namespace viaduct::port
