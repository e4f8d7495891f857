// SPDX-License-Identifier: BSD-3-Clause
// Divides C and C++ sources of any age into tokens. Never fails: what is not C, is still divided into something.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace viaduct::port {

enum class TokenKind : std::uint8_t {
    Identifier,
    Number,
    String,
    Character,
    Punctuation,
    Header,     ///< of #include, with its brackets or quotes
    Directive,  ///< the name after #, such as define
};

struct Token {
    TokenKind kind = TokenKind::Punctuation;
    std::string_view text;        ///< without line continuations
    std::uint32_t offset = 0;     ///< of the first byte in the source
    std::uint32_t end = 0;        ///< of the byte after the last one
    std::uint32_t line = 0;       ///< from 1
    std::uint32_t column = 0;     ///< from 1, in characters of UTF-8
    std::uint32_t directive = 0;  ///< the number of the directive that the token is in, from 1; 0: none
    bool disabled = false;        ///< between #if 0 and its end, where of directives only headers count

    bool is(std::string_view wanted) const { return text == wanted; }
    bool is(TokenKind wanted, std::string_view wanted_text) const { return kind == wanted && text == wanted_text; }
};

struct Tokens {
    std::vector<Token> all;
    std::vector<std::uint32_t> line_starts;  ///< offsets
    std::vector<bool> starts_inside;         ///< whether a line begins inside a comment, a string or a continued line
    std::deque<std::string> spliced;         ///< texts of tokens that contain line continuations

    Tokens() = default;
    Tokens(Tokens&&) noexcept = default;  // a copy would refer to the texts of the other one
};

/// A token, or an empty one where there is none: an index may be one of a neighbor.
inline const Token& token_at(const std::vector<Token>& tokens, std::size_t index) {
    static const Token none;
    return index < tokens.size() ? tokens[index] : none;
}

/// By how much a token changes the depth of brackets.
inline int nesting(const Token& token) {
    if (token.is("(") || token.is("[") || token.is("{")) return 1;
    return token.is(")") || token.is("]") || token.is("}") ? -1 : 0;
}

/// The source must outlive the tokens.
Tokens tokenize(std::string_view source);

}  // namespace viaduct::port
