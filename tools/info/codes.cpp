// SPDX-License-Identifier: BSD-3-Clause
#include <strings.h>

#include <limits>
#include <optional>

#include <fmt/format.h>
#include <boost/algorithm/string/case_conv.hpp>

#include "core/base/numbers.hpp"
#include "tools/info/errors.hpp"
#include "tools/info/info.hpp"
#include "tools/measure/error.hpp"

namespace viaduct::info {
namespace {

constexpr std::uint32_t dat_class_error = 0x80000000;
constexpr std::uint32_t dat_class_warning = 0x40000000;
constexpr std::uint32_t dat_type_mask = 0x3fff0000;
constexpr std::uint32_t dat_subtype_mask = 0xffff;

/// Decimal or hexadecimal, with or without a sign.
std::optional<std::int64_t> parse_number(std::string_view text) {
    const bool negative = take_text(text, "-");
    const bool hexadecimal = take_text(text, "0x") || take_text(text, "0X");
    const auto number = whole_number<std::int64_t>(text, hexadecimal ? 16 : 10);
    return number && negative ? -*number : number;
}

Json describe(const Explanation& code) {
    Json described = {{"name", code.name}, {"code", code.code}, {"kind", code.kind}, {"meaning", code.meaning}};
    if (*code.causes != '\0') described["causes"] = code.causes;
    described["section"] = code.section;
    return described;
}

std::span<const Explanation> codes_of(const std::string& api) {
    if (api == "vipl") return vipl_codes();
    if (api == "dat") return dat2_codes();
    if (api == "dat1") return dat1_codes();
    if (api == "rpma") return rpma_codes();
    throw measure::Error("unknown API '" + api + "': choose vipl, dat, dat1 (DAT 1.2) or rpma");
}

template <class Predicate>
void add_if(std::span<const Explanation> codes, Json& found, Predicate fits) {
    for (const Explanation& code : codes)
        if (fits(code)) found.push_back(describe(code));
}

/// The parts of a DAT_RETURN, or the event and the status of a completion with that number. A DAT_RETURN is a class, a
/// type and a subtype; the codes of types have no subtype, and vice versa.
Json find_in_dat(std::span<const Explanation> codes, std::uint32_t number) {
    Json found = Json::array();
    const auto add = [&](std::string_view kind, std::uint32_t part) {
        add_if(codes, found, [=](const Explanation& code) { return code.kind == kind && code.code == part; });
    };
    const std::uint32_t type = number & dat_type_mask;
    const std::uint32_t subtype = number & dat_subtype_mask;
    add("event", number);
    add("completion status", number);
    if (type == 0 && subtype != 0) return found;  // a subtype needs a type
    add("return type", type);
    if (subtype != 0 && !found.empty()) add("return subtype", subtype);
    return found;
}

/// Adds the bits of a status word of VIPL, in which the lowest one says that the descriptor is complete.
void add_bits(std::span<const Explanation> codes, Json& found, std::int64_t number) {
    constexpr std::string_view status_kind = "descriptor status";
    constexpr std::string_view operation_kind = "descriptor operation";
    constexpr std::int64_t done = 1;
    constexpr std::int64_t operation = 0x70000;
    constexpr std::int64_t all = 0xf01ff;
    if ((number & done) == 0 || (number & ~all) != 0) return;
    add_if(codes, found,
           [=](const Explanation& code) { return code.kind == status_kind && (number & code.code) != 0; });
    add_if(codes, found,
           [=](const Explanation& code) { return code.kind == operation_kind && (number & operation) == code.code; });
}

[[noreturn]] void complain(const std::string& api, const std::string& code,
                           const std::vector<std::string_view>& names) {
    const std::string upper = boost::to_upper_copy(code);
    const std::string_view similar = most_similar(upper, names);
    throw measure::Error(fmt::format("{} has no code '{}'{}", api, code,
                                     similar.empty() ? "" : fmt::format("; did you mean {}?", similar)));
}

}  // namespace

Json describe_code(const std::string& api, const std::string& code) {
    const bool is_dat = api == "dat" || api == "dat1";
    const std::span<const Explanation> codes = codes_of(api);
    Json found = Json::array();
    const auto number = parse_number(code);
    if (number && is_dat && *number >= std::numeric_limits<std::int32_t>::min() &&
        *number <= std::numeric_limits<std::uint32_t>::max())
        found = find_in_dat(codes, static_cast<std::uint32_t>(*number));
    else if (number && !is_dat)
        add_if(codes, found, [&](const Explanation& each) { return each.code == *number; });
    else if (!number)
        add_if(codes, found, [&](const Explanation& each) { return strcasecmp(each.name, code.c_str()) == 0; });
    // Several bits are no code; one that is written in hexadecimal may be a status word, too.
    if (number && api == "vipl" && (found.empty() || (code.starts_with("0x") && *number != 1)))
        add_bits(codes, found, *number);
    if (found.empty()) {
        std::vector<std::string_view> names;
        if (!number)
            for (const Explanation& each : codes) names.emplace_back(each.name);
        complain(api, code, names);
    }
    Json described = {{"tool", "vi-info"}, {"api", api}, {"code", code}};
    if (number && is_dat && found[0]["kind"] == "return type")
        described["class"] = (*number & dat_class_error) != 0     ? "DAT_CLASS_ERROR"
                             : (*number & dat_class_warning) != 0 ? "DAT_CLASS_WARNING"
                                                                  : "DAT_CLASS_SUCCESS";
    described["explanations"] = found;
    return described;
}

void print_code(const Json& code) {
    if (code.contains("class")) fmt::print("class {}\n\n", text(code["class"]));
    bool first = true;
    for (const Json& each : code["explanations"]) {
        const auto number = each["code"].get<std::int64_t>();
        if (!first) fmt::print("\n");
        first = false;
        fmt::print("{} ({}", text(each["name"]), number);
        if (number > 9) fmt::print(", {:#x}", number);
        fmt::print("), {}\n  {}\n", text(each["kind"]), text(each["meaning"]));
        if (each.contains("causes")) fmt::print("  Usual causes: {}\n", text(each["causes"]));
        fmt::print("  See: {}\n", text(each["section"]));
    }
}

}  // namespace viaduct::info
