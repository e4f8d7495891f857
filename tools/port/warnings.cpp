// SPDX-License-Identifier: BSD-3-Clause
// What is legal, but does not work as expected with Viaduct or with a peer of another API.
#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>

#include "tools/port/call.hpp"
#include "tools/port/scan.hpp"
#include "tools/port/text.hpp"

namespace viaduct::port {
namespace {

// The limits of loopback and tcp devices; RDMA devices may have lower ones.
constexpr std::uint64_t max_depth = 65535;
constexpr std::uint64_t max_completions = 1 << 20;
constexpr std::uint64_t max_transfer_bytes = 1 << 30;
constexpr std::uint64_t max_discriminator = 64;
constexpr std::uint64_t max_discriminator_on_devices = 32;
constexpr std::uint64_t bytes_of_a_port = 2;

bool all_digits(std::string_view text) { return text.find_first_not_of("0123456789") == std::string_view::npos; }

/// Whether a text is a name followed by a number.
bool is_numbered(std::string_view text, std::string_view name) {
    return text.starts_with(name) && text.size() > name.size() && all_digits(text.substr(name.size()));
}

/// Whether a string is a name that devices and adapters had.
bool is_device_name(std::string_view literal) {
    constexpr std::array<std::string_view, 4> vipl = {"via", "via_eth", "clanvi", "nic"};
    constexpr std::array<std::string_view, 4> dat = {"openib-", "ofa-v2-", "infinihost", "ro_aware_"};
    std::string name = lower(literal);
    if (name.starts_with("/dev/")) name.erase(0, 5);
    if (name == "vinic" || is_numbered(name, "vinic") || name == "via_lo" || is_numbered(name, "ibd")) return true;
    return std::ranges::any_of(vipl, [&](auto prefix) { return is_numbered(name, prefix); }) ||
           std::ranges::any_of(dat, [&](auto prefix) { return name.starts_with(prefix); });
}

std::string_view content_of(const Token& string) {
    std::string_view text = string.text;
    text.remove_prefix(std::min(text.find('"'), text.size()));
    if (text.size() < 2) return {};
    return text.substr(1, text.size() - 2);
}

bool opens_device(const Use& use) {
    constexpr std::array<std::string_view, 4> calls = {"VipOpenNic", "dat_ia_open", "dat_ia_openv",
                                                       "rpma_utils_get_ibv_context"};
    return (use.kind == UseKind::Call || use.kind == UseKind::Member) && among(calls, use.name);
}

class WarningFinder {
public:
    WarningFinder(const Tokens& tokens, const std::vector<Use>& uses, std::vector<Warning>& warnings)
        : tokens_(tokens.all), uses_(uses), warnings_(warnings), constants_(find_constants(tokens.all)) {
        with_librpma_ =
            std::ranges::any_of(uses, [](const Use& use) { return use.entry != nullptr && use.entry->api == "rpma"; });
    }

    void run() {
        for (const auto& use : uses_) check_use(use);
        if (!uses_an_api(uses_)) return;
        for (std::size_t i = 0; i < tokens_.size(); ++i)
            if (!tokens_[i].disabled) check_token(i);
        check_polling();
    }

private:
    void warn(Rule rule, const Token& token, std::string text) {
        warnings_.push_back({.rule = rule, .position = {token.line, token.column}, .text = std::move(text)});
    }

    // ---- Uses of an API ----

    void check_use(const Use& use) {
        const Token& token = tokens_[use.token];
        if (use.name == "VIP_SERVICE_UNRELIABLE")
            warn(Rule::Unreliable, token,
                 "an unreliable VI cannot be connected to DAT and librpma programs, whose connections are reliable");
        if (use.name == "VIP_SERVICE_RELIABLE_RECEPTION")
            warn(Rule::ReliableReception, token,
                 "VipConnectWait reports Reliable Delivery for clients of DAT and librpma, which join a VI with "
                 "Reliable Reception: do not compare the levels");
        if (use.kind != UseKind::Call) return;
        const auto call = parse_call(tokens_, use.token);
        if (!call) return;
        check_depth(use, *call);
        check_name_of_device(use, *call);
    }

    void check_depth(const Use& use, const Call& call) {
        constexpr std::array<std::string_view, 7> of_completions = {"VipCreateCQ",
                                                                    "VipResizeCQ",
                                                                    "dat_evd_create",
                                                                    "dat_evd_resize",
                                                                    "rpma_conn_cfg_set_cq_size",
                                                                    "rpma_conn_cfg_set_rcq_size",
                                                                    "rpma_srq_cfg_set_rcq_size"};
        constexpr std::array<std::string_view, 3> of_requests = {
            "rpma_conn_cfg_set_sq_size", "rpma_conn_cfg_set_rq_size", "rpma_srq_cfg_set_rq_size"};
        const bool counts_completions = among(of_completions, use.name);
        if (call.arguments.size() > 1 && (counts_completions || among(of_requests, use.name)))
            check_limit(tokens_[use.token], call.arguments[1], counts_completions ? max_completions : max_depth);
    }

    void check_limit(const Token& token, std::span<const Token> expression, std::uint64_t most) {
        const auto value = value_of(expression, constants_);
        if (value && *value > most)
            warn(Rule::DepthLimit, token,
                 fmt::format("{} is above {}, the limit of Viaduct's loopback and tcp devices; RDMA devices may allow "
                             "less",
                             *value, most));
    }

    void check_name_of_device(const Use& use, const Call& call) {
        if (!opens_device(use) || call.arguments.empty()) return;
        for (const Token& token : call.arguments.front())
            if (token.kind == TokenKind::String && !is_device_name(content_of(token)))
                warn(Rule::DeviceName, token,
                     fmt::format("{} opens {}, which is compiled into the program", use.name, token.text));
    }

    // ---- Anything else ----

    const Token& at(std::size_t index) const { return token_at(tokens_, index); }

    void check_token(std::size_t i) {
        const Token& token = tokens_[i];
        if (token.kind == TokenKind::String && is_device_name(content_of(token)))
            warn(Rule::DeviceName, token,
                 fmt::format("the name of a device, {}, is compiled into the program", token.text));
        if (token.kind == TokenKind::Identifier) check_identifier(i);
        if (token.is("(")) check_cast(i);
    }

    void check_identifier(std::size_t i) {
        const Token& token = tokens_[i];
        const bool assigned = at(i + 1).is("=");
        if (token.is("DiscriminatorLen") && assigned) check_discriminator(i);
        if ((token.is("max_recv_dtos") || token.is("max_request_dtos")) && assigned)
            check_limit(token, value_after(i), max_depth);
        if (token.is("MaxTransferSize") && assigned) check_limit(token, value_after(i), max_transfer_bytes);
        if (token.text.starts_with("ibv_") && at(i + 1).is("(") && with_librpma_ && !token.is("ibv_wc_status_str") &&
            precedes_a_use(at(i - 1)))
            warn(Rule::VerbsCall, token,
                 fmt::format("{} is called in a program of librpma: without an RDMA device, no object of libibverbs is "
                             "behind those of librpma, and a struct ibv_context is opaque",
                             token.text));
    }

    /// The tokens of the value that is assigned to a token.
    std::span<const Token> value_after(std::size_t i) const {
        constexpr std::size_t most_tokens = 16;
        std::size_t end = i + 2;
        while (end < tokens_.size() && end - i < most_tokens && !tokens_[end].is(";") && !tokens_[end].is(",") &&
               !tokens_[end].is("}"))
            ++end;
        return std::span(tokens_).subspan(i + 2, end - i - 2);
    }

    void check_discriminator(std::size_t i) {
        const auto length = value_of(value_after(i), constants_);
        const Token& token = tokens_[i];
        if (!length)
            warn(Rule::Discriminator, token,
                 "the length of the discriminator is computed: clients of DAT and librpma reach only discriminators of "
                 "two bytes, and RDMA devices have at most 32");
        else if (*length > max_discriminator)
            warn(Rule::Discriminator, token, fmt::format("{} bytes are above the limit of 64", *length));
        else if (*length > max_discriminator_on_devices)
            warn(Rule::Discriminator, token, fmt::format("{} bytes are above 32, the limit of RDMA devices", *length));
        else if (*length != bytes_of_a_port)
            warn(
                Rule::Discriminator, token,
                fmt::format("clients of DAT and librpma reach only discriminators of two bytes, the port in big-endian "
                            "order, not of {}",
                            *length));
    }

    // ---- Casts of pointers to 32 bits ----

    void check_cast(std::size_t open) {
        constexpr std::array<std::string_view, 9> narrow = {
            "VIP_UINT32", "DAT_UINT32", "DAT_COUNT", "uint32_t", "int32_t", "u_int32_t", "UINT32", "unsigned", "int"};
        std::size_t i = open + 1;
        while (at(i).kind == TokenKind::Identifier && among(narrow, at(i).text)) ++i;
        if (i == open + 1 || !at(i).is(")")) return;
        const Token& previous = at(open - 1);
        const bool keyword = previous.is("return") || previous.is("else");
        if (previous.kind == TokenKind::Identifier && !keyword) return;  // sizeof (int), a declaration of a function
        if (is_pointer(i + 1))
            warn(Rule::PointerIn32Bits, tokens_[open],
                 fmt::format("a pointer is converted to {}, which has 32 bits", tokens_[i - 1].text));
    }

    /// Whether the operand that begins here is an address, a pointer of this source, or allocated memory.
    bool is_pointer(std::size_t i) {
        constexpr std::array<std::string_view, 4> allocators = {"malloc", "calloc", "valloc", "memalign"};
        constexpr int most_casts = 4;
        for (int casts = 0; casts < most_casts; ++casts) i = operand_of_cast(i);
        if (at(i).is("&")) return true;
        if (at(i).is("(") && at(i + 2).is(")")) ++i;
        const Token& token = at(i);
        if (token.kind != TokenKind::Identifier) return false;
        if (among(allocators, token.text)) return at(i + 1).is("(");
        if (at(i + 1).is("->") || at(i + 1).is(".") || at(i + 1).is("[") || at(i + 1).is("(")) return false;
        return pointers().contains(token.text);
    }

    /// Where the operand of a cast to a number begins: behind "(unsigned long)". Without a cast, the same index.
    std::size_t operand_of_cast(std::size_t open) const {
        constexpr std::array<std::string_view, 11> types = {"unsigned",  "long",       "int",       "size_t",
                                                            "intptr_t",  "uintptr_t",  "uint64_t",  "ULONG_PTR",
                                                            "VIP_ULONG", "VIP_UINT64", "DAT_UINT64"};
        std::size_t i = open + 1;
        while (among(types, at(i).text)) ++i;
        return at(open).is("(") && i > open + 1 && at(i).is(")") ? i + 1 : open;
    }

    /// Names that this source declares as pointers, and never as anything else.
    const std::set<std::string_view>& pointers() {
        if (!pointers_.empty() || searched_) return pointers_;
        searched_ = true;
        constexpr std::array<std::string_view, 4> ends = {";", ",", "=", ")"};  // of a declarator
        std::set<std::string_view> others;
        for (std::size_t i = 1; i + 1 < tokens_.size(); ++i) {
            const Token& token = tokens_[i];
            const Token& previous = tokens_[i - 1];
            if (token.kind != TokenKind::Identifier || !among(ends, tokens_[i + 1].text)) continue;
            if (previous.is("VIP_PVOID") || previous.is("DAT_PVOID") || is_declared_pointer(i))
                pointers_.insert(token.text);
            else if (previous.kind == TokenKind::Identifier && !previous.is("return"))
                others.insert(token.text);
        }
        for (const auto name : others) pointers_.erase(name);
        return pointers_;
    }

    bool is_declared_pointer(std::size_t i) const {
        if (i < 2 || !tokens_[i - 1].is("*") || tokens_[i - 2].kind != TokenKind::Identifier) return false;
        if (i == 2 || tokens_[i - 3].directive != tokens_[i - 2].directive) return true;  // a line of its own
        const Token& before = tokens_[i - 3];  // of the type, or of an operand
        if (before.kind == TokenKind::Identifier) return !before.is("return");
        return before.is(";") || before.is("{") || before.is("}") || before.is("(") || before.is(",");
    }

    // ---- Polling and handlers ----

    bool calls(std::string_view name) const {
        return std::ranges::any_of(uses_,
                                   [&](const Use& use) { return use.name == name && use.kind == UseKind::Call; });
    }

    void check_polling() {
        constexpr std::array<std::array<std::string_view, 2>, 4> pairs = {
            {{"VipSendDone", "VipSendNotify"},
             {"VipRecvDone", "VipRecvNotify"},
             {"VipCQDone", "VipCQNotify"},
             {"dat_evd_dequeue", "dat_cno_modify_agent"}}};
        for (const auto& [poll, notify] : pairs) {
            if (!calls(poll) || !calls(notify)) continue;
            for (const auto& use : uses_)
                if (use.name == poll && is_polled(use.token))
                    warn(Rule::PollAndNotify, tokens_[use.token],
                         fmt::format("{} polls in a loop, and {} asks for handlers: a completion goes to only one of "
                                     "them",
                                     poll, notify));
        }
    }

    /// Whether a call is in the head or the body of a loop.
    bool is_polled(std::size_t call) const {
        constexpr std::size_t most_tokens = 500;
        int depth = 0;
        bool ended = false;  // a statement: a head before it has another body
        const std::size_t last = call < most_tokens ? 0 : call - most_tokens + 1;
        for (std::size_t after = call; after > last; --after) {
            const std::size_t i = after - 1;
            const Token& token = tokens_[i];
            const bool opens = token.is("(") || token.is("{");
            const bool head = token.is("(") && i > 0 && (tokens_[i - 1].is("while") || tokens_[i - 1].is("for"));
            if (token.is(")") || token.is("}")) {
                ended = ended || (depth == 0 && token.is("}"));
                ++depth;
            } else if (opens && depth > 0) {
                if (--depth == 0 && head && !ended) return true;
            } else if (depth == 0) {
                if (head || (token.is("do") && !ended)) return true;
                ended = !opens && (ended || token.is(";"));
            }
        }
        return false;
    }

    const std::vector<Token>& tokens_;
    const std::vector<Use>& uses_;
    std::vector<Warning>& warnings_;
    Constants constants_;
    std::set<std::string_view> pointers_;
    bool searched_ = false;
    bool with_librpma_ = false;
};

}  // namespace

void find_warnings(const Tokens& tokens, const std::vector<Use>& uses, std::vector<Warning>& warnings) {
    WarningFinder(tokens, uses, warnings).run();
}

std::vector<Opening> find_openings(const Tokens& tokens, const std::vector<Use>& uses) {
    std::vector<Opening> openings;
    for (const auto& use : uses) {
        const auto call = opens_device(use) ? parse_call(tokens.all, use.token) : std::nullopt;
        if (!call || call->arguments.empty()) continue;
        for (const Token& token : call->arguments.front())
            if (token.kind == TokenKind::Identifier)
                openings.push_back(
                    {.call = use.name, .name = std::string(token.text), .position = {token.line, token.column}});
    }
    return openings;
}

void find_strings(const Tokens& tokens, Strings& strings) {
    constexpr std::size_t longest_bound = 4;  // as in "name[8] ="
    const auto at = [&](std::size_t i) -> const Token& { return token_at(tokens.all, i); };
    for (std::size_t name = 1; name < tokens.all.size(); ++name) {
        if (at(name).kind != TokenKind::Identifier) continue;
        const bool macro = at(name - 1).is(TokenKind::Directive, "define");
        std::size_t value = name + 1;
        while (macro && at(value).is("(")) ++value;
        if (!macro && at(value).is("["))
            while (value < name + longest_bound && !at(value).is("=")) ++value;
        if (!macro && !at(value++).is("=")) continue;
        const bool possible = at(value).kind == TokenKind::String || (macro && at(value).kind == TokenKind::Identifier);
        if (possible && at(value).directive == at(name).directive) strings.emplace(at(name).text, at(value).text);
    }
}

const std::vector<RuleText> rules = {
    {Rule::Unreliable, "unreliable", "an unreliable VI, which DAT and librpma do not join"},
    {Rule::ReliableReception, "reliable-reception", "Reliable Reception, which DAT and librpma join, but do not name"},
    {Rule::Discriminator, "discriminator", "a discriminator that DAT and librpma cannot name, or that is too long"},
    {Rule::DeviceName, "device-name", "the name of a device or adapter in the program"},
    {Rule::DepthLimit, "depth-limit", "a size above the limits"},
    {Rule::PointerIn32Bits, "pointer-in-32-bits", "a pointer that is kept in 32 bits"},
    {Rule::NoRetry, "no-retry", "a client that does not try again if there is no listener"},
    {Rule::PollAndNotify, "poll-and-notify", "a queue that is polled and has handlers"},
    {Rule::VerbsCall, "verbs-call", "a call of libibverbs in a program of librpma"},
    {Rule::LinkLine, "link-line", "a library in a build file"},
    {Rule::Dat12, "dat-1.2", "a name of DAT 1.2 that is different in DAT 2.0"},
    {Rule::UnknownName, "unknown-name", "a name that looks like one of an API, but is not known"},
};

const RuleText& about(Rule rule) { return *std::ranges::find(rules, rule, &RuleText::rule); }

}  // namespace viaduct::port
