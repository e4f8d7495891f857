// SPDX-License-Identifier: BSD-3-Clause
#include "tools/port/tokenizer.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace viaduct::port {
namespace {

constexpr char end_of_source = '\0';  // binary files are not read, and a zero elsewhere ends nothing important

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool starts_identifier(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || (c & 0x80) != 0;
}

bool continues_identifier(char c) { return starts_identifier(c) || is_digit(c); }

bool is_raw_prefix(std::string_view text) {
    constexpr std::array<std::string_view, 5> prefixes = {"R", "LR", "uR", "UR", "u8R"};
    return std::ranges::find(prefixes, text) != prefixes.end();
}

bool is_string_prefix(std::string_view text) {
    constexpr std::array<std::string_view, 4> prefixes = {"L", "u", "U", "u8"};
    return std::ranges::find(prefixes, text) != prefixes.end();
}

/// One level of #if. Only 0 and 1 as conditions are understood.
struct Condition {
    bool disabled = false;  // the part between here and the next #else
    bool disabled_after_else = false;
};

class Tokenizer {
public:
    explicit Tokenizer(std::string_view source) : source_(source) {
        constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
        if (source.starts_with(byte_order_mark)) position_ = byte_order_mark.size();
        start_line(position_, false);
    }

    Tokens run() {
        skip_continuations();
        while (position_ < source_.size()) step();
        end_directive();
        tokens_.lines = static_cast<std::uint32_t>(tokens_.line_starts.size());
        return std::move(tokens_);
    }

private:
    // ---- Characters. Line continuations are invisible above this level. ----

    char at(std::size_t position) const { return position < source_.size() ? source_[position] : end_of_source; }
    char now() const { return at(position_); }

    /// The character after this one, behind line continuations.
    char next() const {
        std::size_t position = position_ + 1;
        while (const std::size_t length = continuation(position)) position += length;
        return at(position);
    }

    /// The length of the line continuation at a position, or 0.
    std::size_t continuation(std::size_t position) const {
        if (at(position) != '\\') return 0;
        if (at(position + 1) == '\n') return 2;
        return at(position + 1) == '\r' && at(position + 2) == '\n' ? 3 : 0;
    }

    void skip_continuations() {
        while (const std::size_t length = continuation(position_)) {
            position_ += length;
            spliced_ = true;
            start_line(position_, true);
        }
    }

    /// Consumes a character, and the line continuations behind it.
    void advance(bool inside = false) {
        const char c = source_[position_++];
        if ((c & 0xC0) == 0x80) ++trailing_bytes_;
        if (c == '\n') start_line(position_, inside);
        if (!raw_) skip_continuations();
    }

    void start_line(std::size_t offset, bool inside) {
        tokens_.line_starts.push_back(static_cast<std::uint32_t>(offset));
        tokens_.starts_inside.push_back(inside);
        trailing_bytes_ = 0;
    }

    // ---- Tokens ----

    void step() {
        const char c = now();
        if (c == '\n') return end_line();
        if (c == ' ' || (c >= '\t' && c <= '\r') || c == end_of_source) return advance();
        if (c == '/' && next() == '*') return skip_block_comment();
        if (c == '/' && next() == '/') return skip_line_comment();
        if (c == '#' && first_on_line_) return read_directive();
        first_on_line_ = false;
        if (expects_header_ && (c == '<' || c == '"')) return read_header(c == '<' ? '>' : '"');
        expects_header_ = false;
        if (starts_identifier(c)) return read_word();
        if (is_digit(c) || (c == '.' && is_digit(next()))) return read_number();
        if (c == '"') return read_quoted(TokenKind::String);
        if (c == '\'') return read_quoted(TokenKind::Character);
        read_punctuation();
    }

    void end_line() {
        advance();
        end_directive();
        first_on_line_ = true;
        expects_header_ = false;
    }

    void skip_block_comment() {
        advance(true);
        advance(true);
        while (position_ < source_.size() && !(now() == '*' && next() == '/')) advance(true);
        if (position_ < source_.size()) advance(true);
        if (position_ < source_.size()) advance(false);
    }

    void skip_line_comment() {
        while (position_ < source_.size() && now() != '\n') advance();
    }

    void begin() {
        start_ = position_;
        line_ = static_cast<std::uint32_t>(tokens_.line_starts.size());
        column_ = static_cast<std::uint32_t>(position_ - tokens_.line_starts.back() - trailing_bytes_) + 1;
        spliced_ = false;
    }

    /// Ends the token before the current character. Continuations behind it do not belong to it.
    void finish(TokenKind kind, std::size_t end) {
        std::string_view text = source_.substr(start_, end - start_);
        if (spliced_ && text.find('\\') != std::string_view::npos) text = without_continuations(text);
        tokens_.all.push_back({.kind = kind,
                               .text = text,
                               .offset = static_cast<std::uint32_t>(start_),
                               .end = static_cast<std::uint32_t>(end),
                               .line = line_,
                               .column = column_,
                               .directive = directive_,
                               .disabled = disabled_levels_ != 0 && (directive_ == 0 || kind == TokenKind::Header)});
    }

    std::string_view without_continuations(std::string_view text) {
        std::string& clean = tokens_.spliced.emplace_back();
        for (std::size_t i = 0; i < text.size(); ++i) {
            const bool windows = text.substr(i, 3) == "\\\r\n";
            if (text.substr(i, 2) == "\\\n" || windows)
                i += windows ? 2 : 1;
            else
                clean += text[i];
        }
        return clean;
    }

    /// Consumes a character of a token; returns the offset behind it.
    std::size_t take(bool inside = false) {
        const std::size_t end = position_ + 1;
        advance(inside);
        return end;
    }

    void read_word() {
        begin();
        std::size_t end = take();
        while (continues_identifier(now())) end = take();
        const std::string_view text = source_.substr(start_, end - start_);
        if (now() == '"' && is_raw_prefix(text) && read_raw_string()) return;
        if ((now() == '"' || now() == '\'') && is_string_prefix(text))
            return read_quoted_rest(now() == '"' ? TokenKind::String : TokenKind::Character);
        finish(TokenKind::Identifier, end);
    }

    /// Reads from the opening quote on. False: it is no raw string.
    bool read_raw_string() {
        constexpr std::size_t longest_delimiter = 16;
        constexpr std::size_t most_open_raw_strings = 16;  // each one takes a search to the end of the source
        const std::string_view rest = source_.substr(position_ + 1);
        const std::string_view delimiter = rest.substr(0, rest.substr(0, longest_delimiter + 1).find('('));
        if (delimiter.size() > longest_delimiter || open_raw_strings_ == most_open_raw_strings) return false;
        if (delimiter.find_first_of(" \t\r\n\v\f\\\")") != std::string_view::npos) return false;
        const std::size_t close = rest.find(")" + std::string(delimiter) + "\"", delimiter.size());
        if (close == std::string_view::npos) {
            ++open_raw_strings_;
            return false;
        }
        const std::size_t end = position_ + 1 + close + delimiter.size() + 2;
        raw_ = true;
        while (position_ < end) advance(true);
        raw_ = false;
        finish(TokenKind::String, end);
        skip_continuations();
        return true;
    }

    void read_number() {
        begin();
        std::size_t end = take();
        char last = source_[start_];
        for (char c = now();; c = now()) {
            const bool exponent =
                (c == '+' || c == '-') && std::string_view("eEpP").find(last) != std::string_view::npos;
            const bool separator = c == '\'' && continues_identifier(next());
            if (!continues_identifier(c) && c != '.' && !exponent && !separator) break;
            last = c;
            end = take();
        }
        finish(TokenKind::Number, end);
    }

    void read_quoted(TokenKind kind) {
        begin();
        read_quoted_rest(kind);
    }

    /// A literal that is not closed ends with its line, as an apostrophe in an #error does.
    void read_quoted_rest(TokenKind kind) {
        const char quote = now();
        std::size_t end = take();
        while (position_ < source_.size() && now() != quote && now() != '\n') {
            if (now() == '\\' && position_ + 1 < source_.size() && next() != '\n') take(true);
            if (position_ < source_.size() && now() != '\n') end = take(true);
        }
        if (position_ < source_.size() && now() == quote) end = take();
        finish(kind, end);
    }

    void read_punctuation() {
        begin();
        const bool arrow = now() == '-' && next() == '>';
        const bool scope = now() == ':' && next() == ':';
        std::size_t end = take();
        if (arrow || scope) end = take();
        finish(TokenKind::Punctuation, end);
    }

    // ---- Directives ----

    void read_directive() {
        first_on_line_ = false;
        advance();
        directive_ = ++directives_;
        while (now() == ' ' || now() == '\t') advance();
        if (!starts_identifier(now())) return;
        begin();
        std::size_t end = take();
        while (continues_identifier(now())) end = take();
        finish(TokenKind::Directive, end);
        const std::string_view name = tokens_.all.back().text;
        expects_header_ = name == "include" || name == "include_next" || name == "import";
        directive_token_ = tokens_.all.size() - 1;
    }

    void read_header(char close) {
        begin();
        std::size_t end = take();
        while (position_ < source_.size() && now() != close && now() != '\n') end = take();
        if (now() == close) end = take();
        expects_header_ = false;
        finish(TokenKind::Header, end);
    }

    void end_directive() {
        directive_ = 0;
        if (!directive_token_) return;
        const std::size_t index = *std::exchange(directive_token_, std::nullopt);
        const std::string_view name = tokens_.all[index].text;
        const bool single = tokens_.all.size() == index + 2;
        const std::string_view value = single ? tokens_.all[index + 1].text : "";
        if (name == "if")
            enter({.disabled = value == "0", .disabled_after_else = value == "1"});
        else if (name == "ifdef" || name == "ifndef")
            enter({});
        else if (name == "endif")
            leave();
        else if (name == "else" || name == "elif") {
            const bool after = leave().disabled_after_else;
            enter({.disabled = after, .disabled_after_else = after});
        }
    }

    void enter(Condition condition) {
        conditions_.push_back(condition);
        if (condition.disabled) ++disabled_levels_;
    }

    Condition leave() {
        if (conditions_.empty()) return {};
        const Condition condition = conditions_.back();
        conditions_.pop_back();
        if (condition.disabled) --disabled_levels_;
        return condition;
    }

    std::string_view source_;
    std::size_t position_ = 0;
    std::size_t trailing_bytes_ = 0;  // of UTF-8, in this line before the position
    Tokens tokens_;
    std::vector<Condition> conditions_;
    std::size_t disabled_levels_ = 0;
    std::size_t open_raw_strings_ = 0;
    std::size_t start_ = 0;  // of the current token
    std::uint32_t line_ = 0;
    std::uint32_t column_ = 0;
    std::uint32_t directive_ = 0;
    std::uint32_t directives_ = 0;
    std::optional<std::size_t> directive_token_;
    bool spliced_ = false;
    bool raw_ = false;
    bool first_on_line_ = true;
    bool expects_header_ = false;
};

}  // namespace

Tokens tokenize(std::string_view source) { return Tokenizer(source).run(); }

}  // namespace viaduct::port
