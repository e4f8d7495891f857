// SPDX-License-Identifier: BSD-3-Clause
#include "tools/port/call.hpp"

#include <algorithm>

#include "core/base/numbers.hpp"

namespace viaduct::port {
namespace {

std::optional<std::uint64_t> number_of(std::string_view text) {
    const bool hexadecimal = take_text(text, "0x") || take_text(text, "0X");
    std::uint64_t value = 0;
    if (!take_number(text, value, hexadecimal ? 16 : 10)) return std::nullopt;
    if (text.find_first_not_of("uUlL") != std::string_view::npos) return std::nullopt;  // the suffix
    return value;
}

std::optional<std::uint64_t> operand_value(const Token& token, const Constants& constants) {
    if (token.kind == TokenKind::Number) return number_of(token.text);
    const auto constant = constants.find(token.text);
    if (token.kind != TokenKind::Identifier || constant == constants.end()) return std::nullopt;
    return constant->second;
}

std::span<const Token> without_parentheses(std::span<const Token> tokens) {
    while (tokens.size() > 2 && tokens.front().is("(") && tokens.back().is(")"))
        tokens = tokens.subspan(1, tokens.size() - 2);
    return tokens;
}

}  // namespace

std::optional<Call> parse_call(const std::vector<Token>& tokens, std::size_t name) {
    constexpr std::size_t most_tokens = 500;
    const std::size_t open = name + 1;
    if (!token_at(tokens, open).is("(")) return std::nullopt;
    Call call;
    int depth = 0;
    std::size_t first = open + 1;
    for (std::size_t i = open; i < std::min(tokens.size(), open + most_tokens); ++i) {
        const Token& token = tokens[i];
        if (token.kind != TokenKind::Punctuation) continue;
        depth += nesting(token);
        const bool closes = depth == 0;
        if (closes || (depth == 1 && token.is(","))) {
            if (!closes || i > open + 1) call.arguments.push_back(std::span(tokens).subspan(first, i - first));
            first = i + 1;
        }
        if (closes) return call;
    }
    return std::nullopt;
}

Constants find_constants(const std::vector<Token>& tokens) {
    Constants constants;
    for (std::size_t i = 0; i + 2 < tokens.size(); ++i) {
        if (!tokens[i].is(TokenKind::Directive, "define")) continue;
        std::size_t end = i + 2;
        while (end < tokens.size() && tokens[end].directive == tokens[i].directive) ++end;
        const auto value = value_of(std::span(tokens).subspan(i + 2, end - i - 2), constants);
        if (value) constants[tokens[i + 1].text] = *value;
    }
    return constants;
}

std::optional<std::uint64_t> value_of(std::span<const Token> tokens, const Constants& constants) {
    tokens = without_parentheses(tokens);
    if (tokens.empty()) return std::nullopt;
    auto value = operand_value(tokens.front(), constants);
    std::size_t i = 1;
    while (value && i < tokens.size()) {
        const bool shift = tokens[i].is("<<");
        if (!shift && !tokens[i].is("*")) return std::nullopt;
        const auto right = i + 1 < tokens.size() ? operand_value(tokens[i + 1], constants) : std::nullopt;
        if (!right || (shift && *right > 63)) return std::nullopt;
        value = shift ? *value << *right : *value * *right;
        i += 2;
    }
    return value;
}

}  // namespace viaduct::port
