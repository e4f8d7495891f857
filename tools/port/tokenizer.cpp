// SPDX-License-Identifier: BSD-3-Clause
#include "tools/port/tokenizer.hpp"

#include <clang-c/Index.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <boost/algorithm/string/erase.hpp>

#include "tools/port/text.hpp"

namespace viaduct::port {
namespace {

/// A token or a comment, as libclang finds it.
struct Piece {
    CXTokenKind kind = CXToken_Punctuation;
    std::size_t offset = 0;
    std::size_t end = 0;
};

/// libclang divides any range of a source that it has parsed. It gets this one behind the start of a raw string, which
/// it parses at once whatever follows: without including a file, or expanding a macro.
std::vector<Piece> divide(std::string_view source) {
    constexpr const char* name = "source.cpp";  // of C++, which has all tokens of C
    constexpr std::array<const char*, 5> command = {"clang", "-std=gnu++20", "-nostdinc", "-w", name};
    std::string text = fmt::format("R\"{:x}(", std::random_device()());  // which no source can end
    const auto start = static_cast<unsigned>(text.size());
    text += source;
    CXUnsavedFile file{.Filename = name, .Contents = text.c_str(), .Length = text.size()};
    const std::unique_ptr<void, decltype(&clang_disposeIndex)> index(clang_createIndex(0, 0), clang_disposeIndex);
    CXTranslationUnit unit = nullptr;
    clang_parseTranslationUnit2FullArgv(index.get(), nullptr, command.data(), command.size(), &file, 1, 0, &unit);
    if (unit == nullptr) throw std::runtime_error("libclang cannot read a source");
    const std::unique_ptr<CXTranslationUnitImpl, decltype(&clang_disposeTranslationUnit)> owner(
        unit, clang_disposeTranslationUnit);

    CXFile main_file = clang_getFile(unit, name);
    const auto place = [&](std::size_t offset) {
        return clang_getLocationForOffset(unit, main_file, static_cast<unsigned>(offset));
    };
    const auto offset_of = [start](CXSourceLocation location) {
        unsigned offset = 0;
        clang_getFileLocation(location, nullptr, nullptr, nullptr, &offset);
        return static_cast<std::size_t>(offset - start);
    };
    CXToken* tokens = nullptr;
    unsigned count = 0;
    clang_tokenize(unit, clang_getRange(place(start), place(text.size())), &tokens, &count);
    std::vector<Piece> pieces;
    for (const CXToken token : std::span(tokens, count)) {
        const CXSourceRange extent = clang_getTokenExtent(unit, token);
        pieces.push_back({.kind = clang_getTokenKind(token),
                          .offset = offset_of(clang_getRangeStart(extent)),
                          .end = offset_of(clang_getRangeEnd(extent))});
    }
    clang_disposeTokens(unit, tokens, count);
    return pieces;
}

TokenKind kind_of(CXTokenKind kind, std::string_view text) {
    if (kind == CXToken_Identifier || kind == CXToken_Keyword) return TokenKind::Identifier;
    const bool digit = text.front() >= '0' && text.front() <= '9';
    if (digit || (kind == CXToken_Literal && text.front() == '.')) return TokenKind::Number;
    const std::size_t quote =
        text.find_first_of("\"'");  // behind a prefix; what is not closed is no literal for libclang
    if (quote == std::string_view::npos) return TokenKind::Punctuation;
    return text[quote] == '"' ? TokenKind::String : TokenKind::Character;
}

/// One level of #if. Only 0 and 1 as conditions are understood.
struct Condition {
    bool disabled = false;  // the part between here and the next #else
    bool disabled_after_else = false;
};

/// Adds lines and directives to what libclang finds.
class Tokenizer {
public:
    explicit Tokenizer(std::string_view source) : source_(source) {
        constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
        if (source.starts_with(byte_order_mark)) position_ = byte_order_mark.size();
        start_line(position_, false);
    }

    Tokens run() {
        for (const Piece& piece : divide(source_)) {
            if (piece.offset < position_) continue;  // the byte order mark, or in the name of a header
            advance(piece.offset, false);
            advance(piece.kind == CXToken_Comment ? piece.end : add(piece), true);
        }
        advance(source_.size(), false);
        end_directive();
        return std::move(tokens_);
    }

private:
    /// What a token may be because of those before it.
    enum class Expected { Anything, Hash, Directive, Header };

    /// Counts lines and columns up to an offset. Whether lines begin inside a token is known; those that are continued
    /// end with a backslash.
    void advance(std::size_t offset, bool inside) {
        for (; position_ < offset; ++position_) {
            const char c = source_[position_];
            if (c == '\n')
                start_line(position_ + 1, inside || source_.substr(0, position_).ends_with('\\') ||
                                              source_.substr(0, position_).ends_with("\\\r"));
            else if (!continues_character(c))
                ++column_;
        }
    }

    void start_line(std::size_t offset, bool inside) {
        tokens_.line_starts.push_back(static_cast<std::uint32_t>(offset));
        tokens_.starts_inside.push_back(inside);
        column_ = 1;
        if (inside) return;
        end_directive();
        expected_ = Expected::Hash;
    }

    /// Returns where the token ends.
    std::size_t add(const Piece& piece) {
        std::size_t end = piece.end;
        std::string_view text = source_.substr(piece.offset, end - piece.offset);
        const Expected expected = std::exchange(expected_, Expected::Anything);
        TokenKind kind = kind_of(piece.kind, text);
        if (expected == Expected::Hash && text == "#") {
            directive_ = ++directives_;
            expected_ = Expected::Directive;
            return end;
        }
        if (expected == Expected::Directive && kind == TokenKind::Identifier) {
            constexpr std::array<std::string_view, 3> includes = {"include", "include_next", "import"};
            kind = TokenKind::Directive;
            directive_token_ = tokens_.all.size();
            if (among(includes, without_continuations(text))) expected_ = Expected::Header;
        } else if (expected == Expected::Header && (kind == TokenKind::String || text.front() == '<')) {
            kind = TokenKind::Header;
            if (text.front() == '<') end = std::min(source_.find_first_of(">\n", piece.offset), source_.size());
            if (source_.substr(end, 1) == ">") ++end;
            text = source_.substr(piece.offset, end - piece.offset);
        }
        tokens_.all.push_back({.kind = kind,
                               .text = without_continuations(text),
                               .offset = static_cast<std::uint32_t>(piece.offset),
                               .end = static_cast<std::uint32_t>(end),
                               .line = static_cast<std::uint32_t>(tokens_.line_starts.size()),
                               .column = column_,
                               .directive = directive_,
                               .disabled = disabled_levels_ != 0 && (directive_ == 0 || kind == TokenKind::Header)});
        return end;
    }

    std::string_view without_continuations(std::string_view text) {
        if (text.find('\\') == std::string_view::npos) return text;
        std::string clean(text);
        for (const char* const continuation : {"\\\r\n", "\\\n"}) boost::erase_all(clean, continuation);
        return clean.size() == text.size() ? text : tokens_.spliced.emplace_back(std::move(clean));
    }

    // ---- Directives ----

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
    std::uint32_t column_ = 1;
    Tokens tokens_;
    Expected expected_ = Expected::Hash;
    std::uint32_t directive_ = 0;
    std::uint32_t directives_ = 0;
    std::optional<std::size_t> directive_token_;
    std::vector<Condition> conditions_;
    std::size_t disabled_levels_ = 0;
};

}  // namespace

Tokens tokenize(std::string_view source) { return Tokenizer(source).run(); }

}  // namespace viaduct::port
