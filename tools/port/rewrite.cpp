// SPDX-License-Identifier: BSD-3-Clause
#include "tools/port/rewrite.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <boost/algorithm/string.hpp>

#include "tools/port/call.hpp"
#include "tools/port/context.hpp"
#include "tools/port/scan.hpp"
#include "tools/port/text.hpp"

namespace viaduct::port {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t comment_width = 100;
constexpr std::size_t deepest_comment = 60;
constexpr std::string_view mark = "TODO(vi-port): ";

/// A range of the source and what replaces it.
struct Edit {
    std::size_t offset = 0;
    std::size_t end = 0;
    std::string text;
};

using Words = std::vector<std::string>;

Words split_arguments(const std::string& pattern) {
    Words parts;
    boost::split(parts, pattern, boost::is_any_of(","));
    for (auto& part : parts) boost::trim(part);
    return parts;
}

/// Whether an expression can be the operand of & and does nothing.
bool is_plain_lvalue(std::span<const Token> tokens) {
    int depth = 0;
    for (const Token& token : tokens) {
        if (token.is("[")) ++depth;
        if (token.is("]")) --depth;
        const bool member = token.is("->") || token.is(".") || token.is("[") || token.is("]");
        if (token.kind != TokenKind::Identifier && !member && !(depth > 0 && token.kind == TokenKind::Number))
            return false;
    }
    return !tokens.empty() && tokens.front().kind == TokenKind::Identifier && tokens.front().text != "NULL";
}

std::string_view suffix_of(std::string_view path) { return path.substr(path.rfind('.') + 1); }

bool is_in_c(std::string_view path) {
    constexpr std::array<std::string_view, 3> suffixes = {"c", "h", "inc"};
    return among(suffixes, suffix_of(path));
}

/// Whether other sources may include it.
bool is_header(std::string_view path) {
    constexpr std::array<std::string_view, 6> suffixes = {"c", "C", "cc", "cpp", "cxx", "c++"};
    return !among(suffixes, suffix_of(path));
}

class Rewriter {
public:
    Rewriter(std::string_view source, std::string_view target, const Meanings& meanings, std::string_view path)
        : source_(source), target_(target), path_(path), tokens_(tokenize(source)), context_(tokens_.all) {
        std::uint32_t disabled = 0;
        uses_ = find_uses(tokens_, disabled);
        correct_uses(tokens_, meanings, uses_);
        newline_ = source.find("\r\n") == std::string_view::npos ? "\n" : "\r\n";
    }

    Rewriting run() {
        for (const bool calls : {false, true})  // which show the new names
            for (const auto& use : uses_)
                if (is_moved(use) && has_call_rule(use) == calls) translate(use);
        translate_includes();
        remove_comments();
        write_comments();
        Rewriting result{.text = apply(), .replaced = replaced_, .todos = {}};
        for (auto& [token, todo] : todos_) result.todos.push_back(std::move(todo));
        return result;
    }

private:
    const std::vector<Token>& all() const { return tokens_.all; }

    // ---- Uses ----

    bool is_moved(const Use& use) const {
        return use.kind != UseKind::Declaration && use.kind != UseKind::Include &&
               translation_of(use, target_) != nullptr;
    }

    bool has_call_rule(const Use& use) const {
        const auto* rule = translation_of(use, target_)->rule_for(use.name);
        return rule != nullptr && !rule->calls.empty();
    }

    void translate(const Use& use) {
        const Counterpart& counterpart = *translation_of(use, target_);
        const auto* rule = counterpart.rule_for(use.name);
        std::string reason;
        if (use.kind == UseKind::Member)
            reason = "called through a member";
        else if (rule != nullptr)
            reason = rule->calls.empty() ? std::string(replace_name(use, *rule)) : suggest_call(use, *rule);
        if (rule != nullptr && reason.empty()) {
            ++replaced_;
            return;
        }
        apis_left_.insert(use.entry->api);
        todos_.emplace(use.token, Todo{.line = use.position.line,
                                       .name = use.name,
                                       .advice = counterpart.advice(),
                                       .reason = std::move(reason)});
    }

    /// Why a name cannot be replaced, or nothing.
    std::string_view why_left(const Use& use, const RewriteRule& rule) const {
        const std::size_t token = use.token;
        if (!all()[token].is(use.name)) return "a macro makes its name";
        if (rule.to.ends_with('*')) {
            if (const auto reason = context_.why_no_pointer(token); !reason.empty()) return reason;
        }
        if (rule.to.find(' ') != std::string::npos && context_.begins_conversion(token)) return "a conversion of C++";
        if (rule.local) {
            if (!is_in_c(path_)) return "the types of variables change only in C";
            if (const auto reason = context_.why_not_local(token); !reason.empty()) return reason;
        }
        if (rule.compared && token_at(all(), token - 1).is("case")) return "used in a switch";
        if (rule.compared && !context_.is_compared(token)) return "not an operand of == or !=";
        if (context_.is_stringified(token)) return "a macro makes a string of it";
        return context_.is_declared(token) ? "the program declares it, or asks whether it is defined" : "";
    }

    /// Returns why not, or nothing.
    std::string_view replace_name(const Use& use, const RewriteRule& rule) {
        const Token& token = all()[use.token];
        if (const auto reason = why_left(use, rule); !reason.empty()) return reason;
        // "VIP_PVOID p" becomes "void *p".
        const bool joins = rule.to.ends_with('*') && source_.substr(token.end, 1) == " " &&
                           token_at(all(), use.token + 1).offset == token.end + 1;
        edits_.push_back({.offset = token.offset, .end = token.end + (joins ? 1 : 0), .text = rule.to});
        renamed_.emplace(use.token, rule.to);
        needs_header_ = needs_header_ || Mapping::get().find(rule.to) != nullptr;
        return {};
    }

    /// What replaces a call once its objects are those of the other API: until then, even a call of the same arguments
    /// would be wrong. Or why nothing is known to replace it.
    std::string suggest_call(const Use& use, const RewriteRule& rule) {
        if (!all()[use.token].is(use.name)) return "a macro makes its name";
        if (use.kind != UseKind::Call) return "not called here";
        const auto call = parse_call(all(), use.token);
        for (const auto& pattern : rule.calls) {
            const auto arguments = call ? match(*call, split_arguments(pattern), rule.to) : std::nullopt;
            if (!arguments) continue;
            needs_header_ = true;
            return "when its objects have been moved: " + fill_in(rule.to, *arguments);
        }
        return "not with these arguments";
    }

    using Arguments = std::map<char, std::span<const Token>>;  // by the digit after $

    /// The arguments of a call for a pattern such as "&$1, NULL, $2". Nothing if it is another call, or if an argument
    /// that does something would be lost.
    static std::optional<Arguments> match(const Call& call, const Words& pattern, std::string_view to) {
        if (call.arguments.size() != pattern.size()) return std::nullopt;
        Arguments arguments;
        for (std::size_t i = 0; i < pattern.size(); ++i) {
            auto argument = call.arguments[i];
            std::string_view wanted = pattern[i];
            if (!argument.empty() && wanted.starts_with('&') && argument.front().is("&")) {
                argument = argument.subspan(1);
                wanted.remove_prefix(1);
                if (!is_plain_lvalue(argument)) return std::nullopt;
            }
            if (argument.empty()) return std::nullopt;
            const bool any = wanted.starts_with('$');
            if (!any && (argument.size() != 1 || !argument.front().is(wanted))) return std::nullopt;
            if (any && to.find(wanted) == std::string_view::npos && !is_plain_lvalue(argument)) return std::nullopt;
            const bool address = any && to.find("&" + std::string(wanted)) != std::string_view::npos;
            if (address && !is_plain_lvalue(argument)) return std::nullopt;
            if (any) arguments[wanted[1]] = argument;
        }
        return arguments;
    }

    std::string fill_in(std::string_view pattern, const Arguments& arguments) const {
        std::string text;
        for (std::size_t i = 0; i < pattern.size(); ++i) {
            if (pattern[i] != '$')
                text += pattern[i];
            else
                for (const Token& token : arguments.at(pattern[++i])) {
                    const auto renamed = renamed_.find(static_cast<std::size_t>(&token - all().data()));
                    const std::string_view word = renamed == renamed_.end() ? token.text : renamed->second;
                    const bool words = !text.empty() && is_word(text.back()) && is_word(word.front());
                    text += (words || text.ends_with(',') ? " " : "") + std::string(word);
                }
        }
        return text;
    }

    // ---- Headers ----

    using Branch = std::uint32_t;  ///< of a conditional: the number of the directive that begins it; 0: in none

    void translate_includes() {
        find_includes();
        for (const auto& use : uses_)
            if (use.kind == UseKind::Include && use.entry->api == target_ && !may_be_own(use))
                includes(header(), branches_.at(use.token));
        for (const auto& use : uses_)
            if (use.kind == UseKind::Include && translation_of(use, target_) != nullptr)
                replace_include(use, is_needed(use.entry->api) || may_be_own(use));
        if (needs_header_ && included_[header()].empty()) add_include();
    }

    void find_includes() {
        Branch open = 0;
        for (std::size_t i = 0; i < all().size(); ++i) {
            const Token& token = all()[i];
            if (token.kind == TokenKind::Header && !token.disabled) {
                included_[std::string(token.text.substr(1, token.text.size() - 2))].insert(open);
                branches_[i] = open;
            }
            if (token.kind != TokenKind::Directive) continue;
            const bool begins_else = token.text.starts_with("el");
            if (begins_else || token.is("endif")) open = around_[open];
            if (begins_else || token.text.starts_with("if"))
                around_[token.directive] = std::exchange(open, token.directive);
        }
    }

    /// Whether a header is included in a branch or in one around it. From now on it is.
    bool includes(const std::string& name, Branch branch) {
        auto& branches = included_[name];
        Branch place = branch;
        while (place != 0 && !branches.contains(place)) place = around_[place];
        const bool found = branches.contains(place);
        branches.insert(branch);
        return found;
    }

    const std::string& header() const { return Mapping::get().api(target_).headers.front(); }

    static std::string include_of(std::string_view header) { return fmt::format("#include <{}>", header); }

    void replace_include(const Use& use, bool needed) {
        const Token& token = all()[use.token];
        const std::size_t hash = source_.rfind('#', all()[use.token - 1].offset);
        const std::size_t line = line_of(hash);
        const bool begins_line = !tokens_.starts_inside[line];
        const std::size_t start = begins_line ? tokens_.line_starts[line] : hash;
        const std::size_t end = end_of_line(token.end);
        const Branch here = branches_.at(use.token);
        Words lines = needed ? Words() : missing_headers(use.entry->api, here);
        if (target_ != "core" && !includes(header(), here)) lines.push_back(include_of(header()));  // the core is no C
        const std::string replacement = join(lines, newline_);
        const std::string with_newline = replacement.empty() ? "" : replacement + newline_;
        if (needed) {
            todos_.emplace(use.token, Todo{.line = use.position.line,
                                           .name = use.name,
                                           .advice = "remove this header when nothing uses it any more"});
            edits_.push_back({.offset = start, .end = start, .text = with_newline});
            return;
        }
        ++replaced_;
        if (begins_line && is_blank(start, hash) && is_blank(token.end, end))
            edits_.push_back({.offset = start, .end = end, .text = with_newline});
        else
            edits_.push_back({.offset = hash, .end = token.end, .text = replacement});
    }

    /// What the headers of an API include, those of the target do not, and this source does not, either.
    Words missing_headers(const std::string& api, Branch here) {
        Words lines;
        for (const auto& name : Mapping::get().api(api).brings)
            if (!among(Mapping::get().api(target_).brings, name) && !includes(name, here))
                lines.push_back(include_of(name));
        return lines;
    }

    /// Whether something still needs the headers of an API: what includes a header may.
    bool is_needed(const std::string& api) const {
        return target_ == "core" || is_header(path_) || apis_left_.contains(api) ||
               (api != "rpma" && has_directions()) || pastes_names(api);
    }

    /// Whether a header may be the program's, and only have the name of one of an API: it is in quotes, and stands
    /// beside the source, or the source uses nothing else of the API.
    bool may_be_own(const Use& use) const {
        const std::string_view header = all()[use.token].text;
        const auto is_other = [&](const Use& other) {
            return other.kind != UseKind::Include && other.entry != nullptr && other.entry->api == use.entry->api;
        };
        std::error_code error;
        return header.starts_with('"') &&
               (fs::exists(fs::path(path_).parent_path() / header.substr(1, header.size() - 2), error) ||
                std::ranges::none_of(uses_, is_other));
    }

    /// Whether a macro makes names of an API, as in "VIP_##name".
    bool pastes_names(const std::string& api) const {
        const std::string prefix = api == "vipl" ? "vip" : api;
        for (std::size_t i = 1; i + 1 < all().size(); ++i)
            if (all()[i].is("##") && all()[i].directive != 0 && lower(all()[i - 1].text).starts_with(prefix))
                return true;
        return false;
    }

    /// The number of the line, from 0.
    std::size_t line_of(std::size_t offset) const {
        const auto next = std::ranges::upper_bound(tokens_.line_starts, offset);
        return static_cast<std::size_t>(std::max<std::ptrdiff_t>(next - tokens_.line_starts.begin() - 1, 0));
    }

    bool is_blank(std::size_t offset, std::size_t end) const {
        return source_.substr(offset, end - offset).find_first_not_of(" \t\r\n") == std::string_view::npos;
    }

    /// IN and OUT, which the headers of VIPL and DAT define.
    bool has_directions() const {
        return std::ranges::any_of(all(), [](const Token& token) {
            return token.kind == TokenKind::Identifier && (token.is("IN") || token.is("OUT") || token.is("INOUT"));
        });
    }

    std::size_t end_of_line(std::size_t offset) const {
        const std::size_t newline = source_.find('\n', offset);
        return newline == std::string_view::npos ? source_.size() : newline + 1;
    }

    /// For sources that include the API through a header of their own: behind the other headers, which may define what
    /// it depends on.
    void add_include() {
        const std::size_t start = place_for_include();
        edits_.push_back({.offset = start, .end = start, .text = include_of(header()) + newline_});
    }

    /// Behind the last #include before the API is used, and behind the conditional that it is in, except that of
    /// a header against being read twice.
    std::size_t place_for_include() const {
        const auto is_directive = [&](std::size_t i, std::string_view name) {
            return all()[i].is(TokenKind::Directive, name);
        };
        const bool guarded =
            all().size() > 3 && is_directive(0, "ifndef") && is_directive(2, "define") && all()[1].is(all()[3].text);
        int depth = guarded ? -1 : 0;
        const auto first = std::ranges::find_if(uses_, [&](const Use& use) { return is_moved(use); });
        bool included = false;  // in a conditional that is open
        std::size_t place = tokens_.line_starts.front();
        for (std::size_t i = 0; i < all().size(); ++i) {
            const Token& token = all()[i];
            if (depth == 0 && first != uses_.end() && i >= first->token) break;
            if (token.kind == TokenKind::Directive && token.text.starts_with("if")) ++depth;
            if (is_directive(i, "endif")) --depth;
            included = included || (token.kind == TokenKind::Header && !token.disabled);
            const std::size_t end = end_of_line(token.end);
            if (depth == 0 && std::exchange(included, included && depth != 0) && !tokens_.starts_inside[line_of(end)])
                place = end;
        }
        return place;
    }

    // ---- Comments ----

    /// Removes the comments of an earlier run: each use that is still left gets its comment again.
    void remove_comments() {
        constexpr std::string_view start = "/* TODO(vi-port):";
        std::size_t end = 0;
        for (std::size_t i = source_.find(start); i != std::string_view::npos; i = source_.find(start, end)) {
            end = source_.find("*/", i);
            if (end == std::string_view::npos) return;
            end += 2;
            const std::size_t line = line_of(i);
            const std::size_t line_start = tokens_.line_starts[line];
            const std::size_t line_end = end_of_line(end);
            if (!tokens_.starts_inside[line] && is_blank(line_start, i) && is_blank(end, line_end)) {
                edits_.push_back({.offset = line_start, .end = line_end, .text = {}});
            } else if (line_of(end) == line && source_.substr(end, 1) == " " &&
                       std::ranges::binary_search(all(), end + 1, {}, &Token::offset)) {
                edits_.push_back({.offset = i, .end = end + 1, .text = {}});
                inline_.insert(end + 1);
            }
        }
    }

    void write_comments() {
        std::map<std::string_view, std::string_view> explained;  // by the advice, for which name first
        std::map<std::string_view, std::string> reasons;         // by the name, the last one
        std::pair<std::uint32_t, std::string_view> last;
        std::map<std::size_t, std::vector<std::string>> comments;  // by the offset of the line below them
        std::vector<Edit> inline_comments;
        sort_edits();
        for (const auto& [index, todo] : todos_) {
            const Token& token = all()[index];
            const auto [reason, is_first] = reasons.emplace(todo.name, todo.reason);
            const bool same_reason = !is_first && reason->second == todo.reason;
            reason->second = todo.reason;
            if (!is_first && last == std::pair<std::uint32_t, std::string_view>(todo.line, todo.name)) continue;
            last = {todo.line, todo.name};
            const auto [same, is_new] = explained.emplace(todo.advice, todo.name);
            const std::string text = fmt::format("{}{}: {}{}", mark, todo.name,
                                                 !is_first ? "as above"
                                                 : is_new  ? todo.advice
                                                           : fmt::format("as for {}", same->second),
                                                 same_reason ? "" : todo.remark());
            const std::size_t line_start = tokens_.line_starts[token.line - 1];
            if (tokens_.starts_inside[token.line - 1] || is_replaced(line_start) || inline_.contains(token.offset))
                inline_comments.push_back(
                    {.offset = token.offset, .end = token.offset, .text = "/* " + safe(text) + " */ "});
            else
                comments[line_start].push_back(text);
        }
        for (const auto& [start, texts] : comments) {
            std::string block;
            for (const auto& text : texts) block += comment(text, indentation(start));
            edits_.push_back({.offset = start, .end = start, .text = std::move(block)});
        }
        std::ranges::move(inline_comments, std::back_inserter(edits_));
    }

    /// Whether a place is in the middle of something that is replaced, as the second line of a call may be.
    bool is_replaced(std::size_t offset) const {
        const auto after = std::ranges::lower_bound(edits_, offset, {}, &Edit::offset);  // they are sorted
        return after != edits_.begin() && std::prev(after)->end > offset;
    }

    static std::string safe(const std::string& text) { return boost::replace_all_copy(text, "*/", "* /"); }

    std::string indentation(std::size_t start) const {
        const std::size_t end = std::min(source_.find_first_not_of(" \t", start), source_.size());
        return std::string(source_.substr(start, std::min(end - start, deepest_comment)));
    }

    /// A block comment, wrapped.
    std::string comment(const std::string& text, const std::string& indent) const {
        std::string block = indent + "/*";
        std::size_t width = block.size();
        for (std::size_t start = 0; start < text.size();) {
            const std::size_t end = std::min(text.find(' ', start), text.size());
            const std::string word = safe(text.substr(start, end - start));
            if (width + word.size() + 1 > comment_width) {
                block += newline_ + indent + "  ";
                width = indent.size() + 2;
            }
            block += " " + word;
            width += word.size() + 1;
            start = end + 1;
        }
        return block + " */" + newline_;
    }

    // ---- The result ----

    void sort_edits() {
        // Insertions first.
        std::ranges::stable_sort(edits_, {}, [](const Edit& edit) { return std::pair(edit.offset, edit.end); });
    }

    std::string apply() {
        sort_edits();
        std::string text;
        std::size_t position = 0;
        for (const auto& edit : edits_) {
            if (edit.offset < position || edit.end < edit.offset) throw std::logic_error("replacements overlap");
            text += source_.substr(position, edit.offset - position);
            text += edit.text;
            position = edit.end;
        }
        return text += source_.substr(position);
    }

    std::string_view source_;
    std::string_view target_;
    std::string_view path_;
    Tokens tokens_;
    Context context_;
    std::vector<Use> uses_;
    std::string newline_;
    std::vector<Edit> edits_;
    std::map<std::size_t, Todo> todos_;                 // by token
    std::map<std::size_t, std::string_view> renamed_;   // by token
    std::map<Branch, Branch> around_;                   // which one a branch is in
    std::map<std::size_t, Branch> branches_;            // by the token of a header that is included there
    std::map<std::string, std::set<Branch>> included_;  // by the header
    std::set<std::size_t> inline_;                      // offsets of tokens that had a comment in their line
    std::set<std::string, std::less<>> apis_left_;
    std::size_t replaced_ = 0;
    bool needs_header_ = false;
};

}  // namespace

Rewriting rewrite(std::string_view source, std::string_view target, const Meanings& meanings, std::string_view path) {
    return Rewriter(source, target, meanings, path).run();
}

}  // namespace viaduct::port
