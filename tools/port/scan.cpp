// SPDX-License-Identifier: BSD-3-Clause
#include "tools/port/scan.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "tools/port/text.hpp"

namespace viaduct::port {
namespace {

/// Names that are too common to belong to an API wherever they occur.
bool is_common(std::string_view name) { return name == "IN" || name == "OUT" || name == "INOUT"; }

/// Names of libibverbs are those of librpma only in sources that use it.
bool is_of_verbs(std::string_view name) { return name.starts_with("ibv_") || name.starts_with("IBV_"); }

/// The API that a name looks like, or nothing.
std::string_view api_like(std::string_view name) {
    constexpr std::array<std::string_view, 13> objects = {"ia",  "ep",  "evd", "cno", "pz",  "lmr",     "rmr",
                                                          "psp", "rsp", "csp", "cr",  "srq", "registry"};
    if (name.size() > 4 && name.starts_with("Vip") && name[3] >= 'A' && name[3] <= 'Z') return "vipl";
    if (name.starts_with("rpma_")) return "rpma";
    if (!name.starts_with("dat_")) return {};
    const std::string_view rest = name.substr(4);
    const std::string_view object = rest.substr(0, rest.find('_'));
    return object.size() < rest.size() && std::ranges::find(objects, object) != objects.end() ? "dat" : "";
}

class UseFinder {
public:
    explicit UseFinder(const Tokens& tokens) : tokens_(tokens.all) {}

    std::vector<Use> run(std::uint32_t& disabled) {
        const bool with_verbs = uses_librpma();
        for (index_ = 0; index_ < tokens_.size(); ++index_) {
            const Token& token = tokens_[index_];
            const std::string_view name = name_of(token);
            if (name.empty() || is_common(name) || (is_of_verbs(name) && !with_verbs)) continue;
            const Entry* entry = Mapping::get().find(name);
            if (entry == nullptr && api_like(name).empty()) continue;
            if (is_member()) continue;
            if (token.disabled)
                ++disabled;
            else
                add(entry, name);
        }
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

    const Token* before(std::size_t distance = 1) const {
        return index_ >= distance ? &tokens_[index_ - distance] : nullptr;
    }
    const Token* after() const { return index_ + 1 < tokens_.size() ? &tokens_[index_ + 1] : nullptr; }

    bool is_member() const {
        const Token* previous = before();
        if (previous == nullptr || !(previous->is("->") || previous->is("."))) return false;
        const Token* second = before(2);  // a dot, too, in "case 1 ... 9"
        return !(second != nullptr && previous->is(".") && second->is(".") && second->end == previous->offset);
    }

    /// Whether the previous tokens are the head of a #define: "define NAME" or "define NAME(...)".
    bool begins_replacement(const Token& token) const {
        const Token* previous = before();
        if (token.directive == 0 || previous == nullptr || previous->directive != token.directive) return false;
        const Token* second = before(2);
        return second != nullptr && second->is(TokenKind::Directive, "define");
    }

    UseKind kind_of(const Token& token) const {
        if (token.kind == TokenKind::Header) return UseKind::Include;
        const Token* previous = before();
        if (previous != nullptr && previous->is(TokenKind::Directive, "define")) return UseKind::Declaration;
        const Token* next = after();
        if (next == nullptr || !next->is("(")) return UseKind::Reference;
        if (previous == nullptr) return UseKind::Call;
        if (begins_replacement(token) || precedes_a_use(*previous)) return UseKind::Call;
        if (previous->kind == TokenKind::Identifier) return UseKind::Declaration;
        // An asterisk or ampersand is an operator, unless a type is before it.
        const Token* second = before(2);
        const bool typed = second != nullptr && second->kind == TokenKind::Identifier && !precedes_a_use(*second);
        return typed && !is_operand(index_ - 2) ? UseKind::Declaration : UseKind::Call;
    }

    /// Whether an identifier is an operand, as in "= a * f()" and "return a * f()".
    bool is_operand(std::size_t index) const {
        if (index == 0) return false;
        const Token& previous = tokens_[index - 1];
        if (previous.kind == TokenKind::Identifier) return precedes_a_use(previous);
        return previous.kind == TokenKind::Punctuation && !previous.is(";") && !previous.is("}") && !previous.is("{");
    }

    void add(const Entry* entry, std::string_view name) {
        const Token& token = tokens_[index_];
        const UseKind kind = kind_of(token);
        if (entry == nullptr && (kind == UseKind::Reference || kind == UseKind::Include)) return;
        uses_.push_back({.entry = entry,
                         .name = std::string(name),
                         .kind = kind,
                         .position = {token.line, token.column},
                         .token = index_});
    }

    const std::vector<Token>& tokens_;
    std::vector<Use> uses_;
    std::size_t index_ = 0;
};

}  // namespace

bool precedes_a_use(const Token& token) {
    constexpr std::array<std::string_view, 12> words = {"return", "else",     "do",       "case", "throw", "sizeof",
                                                        "and",    "co_await", "co_yield", "not",  "or",    "co_return"};
    if (token.kind == TokenKind::Identifier) return among(words, token.text);
    return !token.is("*") && !token.is("&");
}

std::string_view text_of(UseKind kind) {
    switch (kind) {
        case UseKind::Call: return "call";
        case UseKind::Reference: return "reference";
        case UseKind::Declaration: return "declaration";
        case UseKind::Include: return "include";
    }
    return "";
}

std::vector<Use> find_uses(const Tokens& tokens, std::uint32_t& disabled) { return UseFinder(tokens).run(disabled); }

void Totals::add(const FileReport& file, std::string_view target) {
    ++(file.problem.empty() ? scanned : skipped);
    lines += file.lines;
    warnings += file.warnings.size();
    for (const auto& use : file.uses) {
        if (use.entry == nullptr) continue;
        ++uses[use.entry->api];
        if (concerns(use, target)) ++how[use.entry->api][use.entry->to.find(target)->second.how];
    }
}

void correct_uses(const Tokens& tokens, const Meanings& meanings, std::vector<Use>& uses) {
    std::erase_if(uses, [&](const Use& use) { return meanings.own.contains(tokens.all[use.token].offset); });
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
    FileReport report{
        .path = file.path.string(), .problem = {}, .parser = {}, .reason = {}, .lines = 0, .uses = {}, .warnings = {}};
    const std::string content = read_source(file);
    report.problem = file.problem;
    if (report.problem.empty() && file.kind == FileKind::Build) {
        report.parser = "lines";
        report.lines = static_cast<std::uint32_t>(std::ranges::count(content, '\n'));
        find_link_lines(content, report.warnings);
    } else if (report.problem.empty()) {
        scan_source(content, report);
    }
    files_.push_back(std::move(report));
}

void Scanner::scan_source(const std::string& content, FileReport& report) {
    const Tokens tokens = tokenize(content);
    report.parser = "tokenizer";
    report.lines = tokens.lines;
    report.uses = find_uses(tokens, report.disabled);
    if (commands_ && !report.uses.empty()) {
        const Meanings meanings = parse_with_libclang(report.path, content, *commands_);
        report.reason = meanings.problem;
        if (meanings.problem.empty()) {
            report.parser = "libclang";
            correct_uses(tokens, meanings, report.uses);
        }
    }
    find_warnings(tokens, report.uses, report.warnings);
    for (const auto& use : report.uses) {
        used_.insert(use.name);
        if (use.entry == nullptr && use.kind == UseKind::Declaration) declared_.insert(use.name);
    }
}

std::vector<FileReport> Scanner::finish() {
    warn_of_missing_retries();
    for (auto& file : files_) {
        std::erase_if(file.uses, [&](const Use& use) { return use.entry == nullptr && declared_.contains(use.name); });
        for (const auto& use : file.uses)
            if (use.entry == nullptr)
                file.warnings.push_back(
                    {.rule = Rule::UnknownName,
                     .position = use.position,
                     .text = fmt::format("{} is not known: Viaduct does not have it, and no scanned file declares it",
                                         use.name)});
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
                    file.warnings.push_back(
                        {.rule = Rule::NoRetry, .position = use.position, .text = std::string(client.text)});
}

}  // namespace viaduct::port
