// SPDX-License-Identifier: BSD-3-Clause
#include "tools/port/context.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "tools/port/call.hpp"
#include "tools/port/text.hpp"

namespace viaduct::port {
namespace {

using Names = std::vector<std::string_view>;
using Definitions = std::map<std::string_view, Names>;  // for each token, the macros in whose definitions it is

/// The macros that are defined with one of these tokens, or with another one of these macros.
std::set<std::string_view> macros_with(Names tokens, const Definitions& definitions) {
    std::set<std::string_view> macros;
    while (!tokens.empty()) {
        const auto found = definitions.find(tokens.back());
        tokens.pop_back();
        if (found == definitions.end()) continue;
        for (const auto macro : found->second)
            if (macros.insert(macro).second) tokens.push_back(macro);
    }
    return macros;
}

}  // namespace

Context::Context(const std::vector<Token>& tokens) : tokens_(tokens) {
    find_functions();
    find_declarations();
    look_around();
}

bool Context::declares_several(std::size_t type) const {
    constexpr std::size_t most_tokens = 100;
    const bool in_for = at(type - 1).is("(") && at(type - 2).is("for");
    const bool argument = at(type - 1).is("(") || at(type - 1).is(",");
    if (argument && !in_for) return false;
    int depth = 0;
    for (std::size_t i = type + 1; i < std::min(tokens_.size(), type + most_tokens); ++i) {
        const Token& token = tokens_[i];
        depth += nesting(token);
        if (depth < 0 || token.is(";")) return false;
        if (depth == 0 && token.is(",")) return true;
    }
    return true;
}

std::string_view Context::why_no_pointer(std::size_t type) const {
    const auto why_not = [this](std::size_t token) -> std::string_view {
        if (is_qualified(token)) return "it is qualified";
        return declares_several(token) ? "several names in one declaration" : "";
    };
    const Token& token = tokens_[type];
    const bool is_body = token.directive != 0 && at(type - 2).is("define") && token.offset > at(type - 1).end &&
                         at(type + 1).directive != token.directive;
    if (!is_body) return why_not(type);
    bool used = false;
    for (std::size_t i = type + 1; i < tokens_.size(); ++i) {
        if (!tokens_[i].is(tokens_[type - 1].text)) continue;
        if (tokens_[i].directive != 0 || begins_conversion(i) || !why_not(i).empty())
            return "the macro is used in other ways";
        used = true;
    }
    return used ? "" : "the macro is for other files";
}

bool Context::is_qualified(std::size_t type) const {
    constexpr std::array<std::string_view, 7> storage = {"static", "extern",       "register", "typedef",
                                                         "inline", "thread_local", "auto"};
    while (among(storage, at(type - 1).text)) --type;
    return at(type - 1).is("const") || at(type - 1).is("volatile");
}

bool Context::begins_conversion(std::size_t type) const { return at(type + 1).is("(") || at(type + 1).is("{"); }

std::string_view Context::why_not_local(std::size_t type) const {
    constexpr std::size_t most_tokens = 100;
    constexpr std::string_view elsewhere = "not a local variable";
    const Token& previous = at(type - 1);
    if (!in_function_[type]) return elsewhere;
    if (!previous.is(";") && !previous.is("{") && !previous.is("}") && !previous.is("const")) return elsewhere;
    bool name_follows = true;
    int depth = 0;
    for (std::size_t i = type + 1; i < std::min(tokens_.size(), type + most_tokens); ++i) {
        const Token& token = tokens_[i];
        if (token.is(";")) return depth == 0 ? "" : elsewhere;
        depth += nesting(token);
        const bool is_name = token.kind == TokenKind::Identifier;
        if (name_follows && !is_name) return elsewhere;
        if (name_follows && (addressed_.contains(token.text) || at(i + 1).is("["))) return "its address is taken";
        if (name_follows && at(i + 1).is("(")) return elsewhere;
        name_follows = depth == 0 && token.is(",");
    }
    return elsewhere;
}

bool Context::is_declared(std::size_t name) const {
    constexpr std::array<std::string_view, 6> tests = {"ifdef", "ifndef", "elifdef", "elifndef", "define", "undef"};
    const Token& previous = at(name - 1);
    if (previous.kind == TokenKind::Directive && among(tests, previous.text)) return true;
    if (previous.is("defined") || (previous.is("(") && at(name - 2).is("defined"))) return true;
    return declared_.contains(name);
}

void Context::find_declarations() {
    for (std::size_t i = 0; i < tokens_.size(); ++i)
        if (tokens_[i].is("typedef")) i = note_typedef(i + 1);
    for (std::size_t i = 0; i < tokens_.size(); ++i)
        if (tokens_[i].is("enum")) i = note_enumerators(i + 1);
}

std::size_t Context::note_typedef(std::size_t i) {
    int depth = 0;
    for (; i + 1 < tokens_.size() && !(depth <= 0 && tokens_[i].is(";")); ++i) {
        const Token& token = tokens_[i];
        depth += nesting(token);
        if (token.kind != TokenKind::Identifier) continue;
        const Token& next = tokens_[i + 1];
        const bool ends = next.is(";") || next.is(",") || next.is("[") || (next.is("(") && !at(i + 2).is("*"));
        const bool pointer = tokens_[i - 1].is("*") && next.is(")");  // to a function
        if (depth == 0 ? ends : depth == 1 && pointer) declared_.insert(i);
    }
    return i;
}

std::size_t Context::note_enumerators(std::size_t i) {
    while (i < tokens_.size() && (tokens_[i].kind == TokenKind::Identifier || tokens_[i].is(":"))) ++i;
    if (i == tokens_.size() || !tokens_[i].is("{")) return i;
    int depth = 0;
    for (; i < tokens_.size() && !tokens_[i].is("}") && !tokens_[i].is(";"); ++i) {
        if (tokens_[i].is("(")) ++depth;
        if (tokens_[i].is(")")) --depth;
        if (depth == 0 && (tokens_[i].is("{") || tokens_[i].is(","))) declared_.insert(i + 1);
    }
    return i;
}

bool Context::is_compared(std::size_t operand) const {
    const auto compares = [](const Token& token) { return token.is("==") || token.is("!="); };
    return compares(at(operand - 1)) || compares(at(operand + 1));
}

void Context::find_functions() {
    std::vector<bool> open;                 // braces, and whether statements are inside of them
    std::vector<std::size_t> conditionals;  // the braces that are open where they begin
    std::vector<bool> in_macro;
    std::uint32_t directive = 0;
    in_function_.reserve(tokens_.size());
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
        const Token& token = tokens_[i];
        if (token.kind == TokenKind::Directive) {
            if (token.text.starts_with("if")) conditionals.push_back(open.size());
            if (token.text.starts_with("el") && !conditionals.empty()) open.resize(conditionals.back(), false);
            if (token.is("endif") && !conditionals.empty()) conditionals.pop_back();
        }
        if (token.directive != std::exchange(directive, token.directive)) in_macro.clear();
        auto& braces = directive != 0 ? in_macro : open;
        if (token.is("}") && !braces.empty()) braces.pop_back();
        const bool inside = !braces.empty() && braces.back();
        in_function_.push_back(inside);
        if (token.is("{")) braces.push_back(inside || directive != 0 ? opens_block(i) : opens_function(i));
    }
}

bool Context::opens_block(std::size_t brace) const {
    constexpr std::array<std::string_view, 8> before = {")", "(", ";", "{", "}", ":", "else", "do"};
    return among(before, at(brace - 1).text);
}

bool Context::opens_function(std::size_t brace) const {
    constexpr std::array<std::string_view, 5> structures = {"struct", "union", "enum", "__attribute__", "_Alignas"};
    constexpr std::size_t most_tokens = 500;
    if (!at(brace - 1).is(")")) return at(brace - 1).is(";");
    int depth = 0;
    for (std::size_t i = brace; i-- > (brace > most_tokens ? brace - most_tokens : 2);) {
        if (tokens_[i].is(")")) ++depth;
        if (tokens_[i].is("(")) --depth;
        if (depth == 0) return !among(structures, tokens_[i - 1].text) && !among(structures, tokens_[i - 2].text);
    }
    return true;
}

void Context::note_addressed(std::size_t operand) {
    constexpr std::array<std::string_view, 7> punctuation = {"(", ")", "->", ".", "[", "]", "*"};
    constexpr std::size_t most_tokens = 20;
    int depth = 0;
    for (std::size_t i = operand; i < std::min(tokens_.size(), operand + most_tokens); ++i) {
        const Token& token = tokens_[i];
        if (token.is("(")) ++depth;
        if (token.is(")") && --depth < 0) return;
        if (token.kind == TokenKind::Identifier)
            addressed_.insert(token.text);
        else if (token.kind != TokenKind::Number && !among(punctuation, token.text))
            return;
    }
}

void Context::look_around() {
    Definitions definitions;
    std::string_view macro;  // whose definition is being read
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
        const Token& token = tokens_[i];
        if (token.is("&")) note_addressed(i + 1);
        if (token.kind == TokenKind::Directive) macro = token.is("define") ? at(i + 1).text : std::string_view();
        if (token.directive != 0 && !macro.empty()) definitions[token.text].push_back(macro);
    }
    const auto stringifying = macros_with({"#", "##"}, definitions);
    const auto addressing = macros_with({"&"}, definitions);
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
        const std::string_view name = tokens_[i].text;
        if (!stringifying.contains(name) && !addressing.contains(name)) continue;
        const auto call = parse_call(tokens_, i);
        if (!call) continue;
        for (const auto argument : call->arguments) {
            const auto start = static_cast<std::size_t>(argument.data() - tokens_.data());
            if (argument.size() == 1 && stringifying.contains(name)) stringified_.insert(start);
            if (addressing.contains(name)) note_addressed(start);
        }
    }
}

}  // namespace viaduct::port
