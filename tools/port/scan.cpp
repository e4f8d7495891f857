// SPDX-License-Identifier: BSD-3-Clause
#include "tools/port/scan.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "tools/port/context.hpp"
#include "tools/port/text.hpp"

namespace viaduct::port {
namespace {

/// Names that are too common to belong to an API wherever they occur.
bool is_common(std::string_view name) { return name == "IN" || name == "OUT" || name == "INOUT"; }

/// Names of libibverbs are those of librpma only in sources that use it.
bool is_of_verbs(std::string_view name) { return name.starts_with("ibv_") || name.starts_with("IBV_"); }

/// What a name looks like that no API has.
struct Likeness {
    std::string_view api;      // empty: like nothing
    bool distinct = false;     // enough to look for it in every source, not only in those that use the API
    bool only_called = false;  // other names like it are too common
};

Likeness likeness_of(std::string_view name) {
    constexpr std::array<std::string_view, 13> objects = {"ia",  "ep",  "evd", "cno", "pz",  "lmr",     "rmr",
                                                          "psp", "rsp", "csp", "cr",  "srq", "registry"};
    if (name.size() > 4 && name.starts_with("Vip") && name[3] >= 'A' && name[3] <= 'Z')
        return {.api = "vipl", .distinct = true};
    if (name.starts_with("VIP_")) return {.api = "vipl"};
    if (name.starts_with("DAT_")) return {.api = "dat"};
    if (name.starts_with("RPMA_")) return {.api = "rpma"};
    if (name.starts_with("rpma_")) return {.api = "rpma", .distinct = true, .only_called = true};
    if (!name.starts_with("dat_")) return {};
    const std::string_view rest = name.substr(4);
    const std::string_view object = rest.substr(0, rest.find('_'));
    return {.api = "dat", .distinct = object.size() < rest.size() && among(objects, object), .only_called = true};
}

class UseFinder {
public:
    explicit UseFinder(const Tokens& tokens) : tokens_(tokens.all), context_(tokens.all) {}

    std::vector<Use> run(std::uint32_t& disabled) {
        const bool with_verbs = uses_librpma();
        for (index_ = 0; index_ < tokens_.size(); ++index_) {
            const Token& token = tokens_[index_];
            if (token.kind == TokenKind::Directive) last_directive_ = index_;
            const std::string_view name = name_of(token);
            if (name.empty() || is_common(name) || (is_of_verbs(name) && !with_verbs)) continue;
            const Entry* entry = Mapping::get().find(name);
            if (entry == nullptr) {
                if (!token.disabled) add_unknown(name);
                continue;
            }
            const bool member = is_member();
            if (member && (entry->kind != "function" || !next_is("("))) continue;
            if (token.disabled)
                ++disabled;
            else
                add(entry, name, member ? UseKind::Member : kind_of(token, entry));
        }
        std::set<std::string_view> used;
        for (const auto& use : uses_)
            if (use.entry != nullptr) used.insert(use.entry->api);
        std::erase_if(uses_, [&](const Use& use) {
            const Likeness like = likeness_of(use.name);
            return use.entry == nullptr && use.kind != UseKind::Declaration && !like.distinct &&
                   !used.contains(like.api);
        });
        return std::move(uses_);
    }

private:
    /// The name that a token can use, or nothing. Headers are known by their last names.
    static std::string_view name_of(const Token& token) {
        if (token.kind == TokenKind::Identifier) return token.text;
        if (token.kind != TokenKind::Header || token.text.size() < 2) return {};
        const std::string_view path = token.text.substr(1, token.text.size() - 2);
        return path.substr(path.rfind('/') + 1);
    }

    bool uses_librpma() const {
        return std::ranges::any_of(tokens_, [](const Token& token) {
            return (token.kind == TokenKind::Identifier && token.text.starts_with("rpma_")) ||
                   (token.kind == TokenKind::Header && token.text.find("librpma.h") != std::string_view::npos);
        });
    }

    /// A token before this one, or an empty one if a directive ends between them.
    const Token& before(std::size_t distance = 1) const {
        const Token& token = token_at(tokens_, index_ - distance);
        return token.directive == tokens_[index_].directive ? token : token_at(tokens_, tokens_.size());
    }
    bool next_is(std::string_view text) const { return token_at(tokens_, index_ + 1).is(text); }
    bool is_member() const { return before().is("->") || before().is("."); }

    /// Whether the previous tokens are the head of a #define: "define NAME" or "define NAME(...)".
    bool begins_replacement(const Token& token) const {
        return token.directive != 0 && before(2).is(TokenKind::Directive, "define");
    }

    UseKind kind_of(const Token& token, const Entry* entry) const {
        if (token.kind == TokenKind::Header) return UseKind::Include;
        if (before().is(TokenKind::Directive, "define")) return UseKind::Declaration;
        if (!next_is("(")) return UseKind::Reference;
        // Inside a function, what looks like a type is rather a macro that stands for a statement.
        const bool declarable = (entry == nullptr || entry->kind == "function") && !context_.is_in_function(index_);
        const bool declared = declarable && !begins_replacement(token) && follows_type();
        return declared ? UseKind::Declaration : UseKind::Call;
    }

    bool follows_type() const {
        if (precedes_a_use(before())) return false;
        if (before().kind == TokenKind::Identifier) return true;
        // An asterisk or ampersand is an operator, unless a type is before it.
        const bool typed = before(2).kind == TokenKind::Identifier && !precedes_a_use(before(2));
        return typed && !precedes_operand(before(3));
    }

    /// Whether the program declares the name here, or asks whether it is defined.
    bool is_declared() const {
        constexpr std::array<std::string_view, 6> tags = {"struct", "union", "enum", "class", "namespace", "using"};
        constexpr std::array<std::string_view, 6> ends = {";", "=", ",", "[", ")", "{"};
        if (context_.is_declared(index_)) return true;
        if (among(tags, before().text)) return next_is("{") || next_is(":") || next_is(";") || next_is("=");
        const bool pointer = before().is("*") && before(2).kind == TokenKind::Identifier;
        return (pointer || follows_type()) && std::ranges::any_of(ends, [this](auto end) { return next_is(end); });
    }

    /// Whether a name is in a condition of the preprocessor, in which a name that nothing defines counts as 0.
    bool is_in_condition() const {
        const Token& directive = tokens_[last_directive_];
        return directive.directive != 0 && directive.directive == tokens_[index_].directive &&
               (directive.is("if") || directive.is("elif"));
    }

    void add_unknown(std::string_view name) {
        const Token& token = tokens_[index_];
        const Likeness like = likeness_of(name);
        if (like.api.empty() || token.kind == TokenKind::Header || is_member() || is_in_condition()) return;
        if (next_is("##") || before().is("##") || before().is("#")) return;  // a part of a name
        const UseKind kind = is_declared() ? UseKind::Declaration : kind_of(token, nullptr);
        if (kind != UseKind::Reference || !like.only_called) add(nullptr, name, kind);
    }

    /// Whether an identifier after this token is an operand, as in "= a * f()" and "return a * f()".
    static bool precedes_operand(const Token& previous) {
        constexpr std::array<std::string_view, 4> starts = {"", ";", "}", "{"};
        if (previous.kind == TokenKind::Identifier) return precedes_a_use(previous);
        return previous.kind == TokenKind::Punctuation && !among(starts, previous.text);
    }

    void add(const Entry* entry, std::string_view name, UseKind kind) {
        const Token& token = tokens_[index_];
        uses_.push_back({.entry = entry,
                         .name = std::string(name),
                         .kind = kind,
                         .position = {token.line, token.column},
                         .token = index_});
    }

    const std::vector<Token>& tokens_;
    Context context_;
    std::vector<Use> uses_;
    std::size_t index_ = 0;
    std::size_t last_directive_ = 0;
};

/// The API whose header a file is a copy of, or nothing: it has the name of one, and names of many functions.
std::string copied_api(std::string_view path, const std::vector<Use>& uses) {
    constexpr std::size_t many = 10;
    const Entry* const header = Mapping::get().find(path.substr(path.rfind('/') + 1));
    if (header == nullptr || header->kind != "header") return {};
    std::set<std::string_view> functions;
    for (const auto& use : uses)
        if (use.entry != nullptr && use.entry->api == header->api && use.entry->kind == "function")
            functions.insert(use.name);
    return functions.size() < many ? std::string() : header->api;
}

std::uint32_t count_lines(std::string_view content) {
    const bool ends_inside = !content.empty() && !content.ends_with('\n');
    return static_cast<std::uint32_t>(std::ranges::count(content, '\n') + (ends_inside ? 1 : 0));
}

}  // namespace

bool uses_an_api(const std::vector<Use>& uses) {
    return std::ranges::any_of(uses, [](const Use& use) { return use.entry != nullptr; });
}

bool precedes_a_use(const Token& token) {
    constexpr std::array<std::string_view, 12> words = {"return", "else",     "do",       "case", "throw", "sizeof",
                                                        "and",    "co_await", "co_yield", "not",  "or",    "co_return"};
    if (token.kind == TokenKind::Identifier) return among(words, token.text);
    return !token.is("*") && !token.is("&");
}

std::string_view text_of(UseKind kind) {
    constexpr std::array<std::string_view, 5> texts = {"call", "reference", "declaration", "include", "member call"};
    return texts[static_cast<std::size_t>(kind)];
}

std::vector<Use> find_uses(const Tokens& tokens, std::uint32_t& disabled) { return UseFinder(tokens).run(disabled); }

void Totals::add(const FileReport& file, std::string_view target) {
    ++(file.problem.empty() ? scanned : skipped);
    lines += file.lines;
    warnings += file.warnings.size();
    for (const auto& use : file.uses) {
        if (use.entry == nullptr) continue;
        ApiTotals& api = apis[use.entry->api];
        ++api.uses;
        const auto* counterpart = translation_of(use, target);
        if (counterpart == nullptr) continue;
        for (const auto how : all_hows) api.how.try_emplace(how);
        ++api.how[counterpart->how].uses;
        api.how[counterpart->how].decisions.insert(counterpart->advice());
    }
}

void correct_uses(const Tokens& tokens, const Meanings& meanings, std::vector<Use>& uses) {
    std::erase_if(uses, [&](const Use& use) {  // a member is the program's own, but may stand for the function
        return use.kind != UseKind::Member && meanings.own.contains(tokens.all[use.token].offset);
    });
    for (const auto& hidden : meanings.hidden) {
        const auto token = std::ranges::lower_bound(tokens.all, hidden.offset, {}, &Token::offset);
        const Entry* entry = Mapping::get().find(hidden.name);
        if (token == tokens.all.end() || token->offset != hidden.offset || entry == nullptr) continue;
        uses.push_back({.entry = entry,
                        .name = hidden.name,
                        .kind = UseKind::Call,
                        .position = {token->line, token->column},
                        .token = static_cast<std::size_t>(token - tokens.all.begin())});
    }
    std::ranges::stable_sort(uses, {}, &Use::token);
}

void Scanner::scan(SourceFile file) {
    const std::string content = read_source(file);
    FileReport report{.path = file.path.string(), .problem = file.problem, .lines = count_lines(content)};
    if (report.problem.empty() && file.kind == FileKind::Build) {
        report.parser = "lines";
        find_link_lines(content, report.warnings);
    } else if (report.problem.empty()) {
        scan_source(content, report);
    }
    files_.push_back(std::move(report));
}

void Scanner::scan_source(const std::string& content, FileReport& report) {
    const Tokens tokens = tokenize(content);
    report.parser = "tokenizer";
    report.uses = find_uses(tokens, report.disabled);
    report.copied = copied_api(report.path, report.uses);
    if (!report.copied.empty()) return report.uses.clear();
    if (commands_ && uses_an_api(report.uses)) {
        const Meanings meanings = parse_with_libclang(report.path, content, *commands_);
        report.reason = meanings.problem;
        if (meanings.problem.empty()) {
            report.parser = "libclang";
            correct_uses(tokens, meanings, report.uses);
        }
    }
    find_warnings(tokens, report.uses, report.warnings);
    find_strings(tokens, strings_);
    openings_[files_.size()] = find_openings(tokens, report.uses);
    includes_dat2_ = includes_dat2_ || std::ranges::any_of(tokens.all, [](const Token& token) {
                         return token.kind == TokenKind::Header && token.text.find("dat2/") != std::string_view::npos;
                     });
    for (const auto& use : report.uses) {
        used_.insert(use.name);
        if (use.entry == nullptr && use.kind == UseKind::Declaration) declared_.insert(use.name);
    }
}

std::vector<FileReport> Scanner::finish(std::string_view target) {
    warn_of_missing_retries();
    warn_of_device_names();
    if (target == "dat" && !includes_dat2_) warn_of_dat_1_2();
    for (auto& file : files_) {
        std::erase_if(file.uses, [&](const Use& use) { return use.entry == nullptr && declared_.contains(use.name); });
        for (const auto& use : file.uses)
            if (use.entry == nullptr)
                file.warnings.emplace_back(
                    Rule::UnknownName, use.position,
                    fmt::format("{} is not known: Viaduct does not have it, and no scanned file declares it",
                                use.name));
        std::ranges::stable_sort(file.warnings, {}, [](const Warning& warning) { return warning.position.line; });
    }
    return std::move(files_);
}

/// Programs that connect, and nowhere mention what a client gets if nobody listens.
void Scanner::warn_of_missing_retries() {
    struct Client {
        std::string_view call;
        std::string_view outcome;
        std::string_view text;
    };
    constexpr std::array<Client, 3> clients = {{
        {"VipConnectRequest", "VIP_NO_MATCH",
         "nothing tests for VIP_NO_MATCH, which a client gets at once if the server does not wait at this moment"},
        {"dat_ep_connect", "DAT_CONNECTION_EVENT_NON_PEER_REJECTED",
         "nothing tests for DAT_CONNECTION_EVENT_NON_PEER_REJECTED, which a client gets if nobody listens for 50 ms; a "
         "VIPL server listens only now and then"},
        {"rpma_conn_req_new", "RPMA_CONN_REJECTED",
         "nothing tests for RPMA_CONN_REJECTED, which a client gets if nobody listens for 50 ms; a VIPL server listens "
         "only now and then"},
    }};
    for (auto& file : files_)
        for (const auto& use : file.uses)
            for (const auto& client : clients)
                if (use.name == client.call && use.kind == UseKind::Call && !used_.contains(client.outcome))
                    file.warnings.emplace_back(Rule::NoRetry, use.position, std::string(client.text));
}

/// Calls that open the device of a macro or a variable of any of the files.
void Scanner::warn_of_device_names() {
    constexpr int most_steps = 8;  // macros may name each other
    for (const auto& [file, openings] : openings_)
        for (const auto& opening : openings) {
            auto found = strings_.find(opening.name);
            for (int i = 0; i < most_steps && found != strings_.end() && !found->second.starts_with('"'); ++i)
                found = strings_.find(found->second);
            if (found == strings_.end() || !found->second.starts_with('"')) continue;
            files_[file].warnings.emplace_back(Rule::DeviceName, opening.position,
                                               fmt::format("{} opens {}, {}, which is compiled into the program",
                                                           opening.call, opening.name, found->second));
        }
}

/// Names whose meaning is another in DAT 2.0, the first use in each file.
void Scanner::warn_of_dat_1_2() {
    for (auto& file : files_) {
        std::set<std::string_view> warned;
        for (const auto& use : file.uses) {
            if (use.entry == nullptr || use.name != use.entry->name || !use.entry->differs_in_dat_1_2()) continue;
            if (!warned.insert(use.name).second) continue;
            file.warnings.emplace_back(
                Rule::Dat12, use.position,
                fmt::format("{} is different in DAT 2.0. In DAT 1.2: {}", use.name, use.entry->dat_1_2));
        }
    }
}

}  // namespace viaduct::port
