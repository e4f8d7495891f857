// SPDX-License-Identifier: BSD-3-Clause
#include "core/base/fault_spec.hpp"

#include <algorithm>
#include <utility>

#include "core/base/numbers.hpp"

namespace viaduct {
namespace {

bool parse(std::string_view text, std::uint64_t& number) noexcept { return take_number(text, number) && text.empty(); }

/// The number of a call.
template <std::uint64_t FaultSpec::*member>
bool parse_call(std::string_view text, FaultSpec& spec) noexcept {
    return parse(text, spec.*member) && spec.*member != 0;
}

template <double FaultSpec::*member>
bool parse_share(std::string_view text, FaultSpec& spec) noexcept {
    constexpr double all = 100;
    double percent = 0;
    if (!take_number(text, percent) || text != "%" || !(percent >= 0 && percent <= all)) return false;
    spec.*member = percent / all;
    return true;
}

/// Removes a number and its unit. `unit` is the unit if there is none, and becomes the one that is there.
bool take_duration(std::string_view& text, double& unit, std::chrono::nanoseconds& duration) noexcept {
    constexpr std::pair<std::string_view, double> units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
    constexpr double longest = 3600e9;
    double number = 0;
    if (!take_number(text, number)) return false;
    for (const auto& [name, nanoseconds] : units)
        if (take_text(text, name)) {
            unit = nanoseconds;
            break;
        }
    if (unit == 0 || !(number >= 0 && number * unit <= longest)) return false;
    duration = std::chrono::nanoseconds(static_cast<std::int64_t>(number * unit));
    return true;
}

bool parse_delay(std::string_view text, FaultSpec& spec) noexcept {
    double unit = 0;
    if (!take_duration(text, unit, spec.delay)) return false;
    if (text.empty()) return true;
    if (!take_text(text, "±") && !take_text(text, "+-")) return false;
    return take_duration(text, unit, spec.jitter) && text.empty() && spec.jitter <= spec.delay;
}

bool parse_disconnect(std::string_view text, FaultSpec& spec) noexcept {
    std::uint64_t number = 0;
    if (!take_text(text, "after:") || !parse(text, number)) return false;
    spec.disconnect_after = number;
    return true;
}

struct Kind {
    std::string_view name;
    bool (*parse)(std::string_view text, FaultSpec& spec) noexcept;
};

constexpr Kind kinds[] = {
    {"delay", parse_delay},
    {"drop", parse_share<&FaultSpec::drop>},
    {"no-receive", parse_share<&FaultSpec::no_receive>},
    {"reject", parse_share<&FaultSpec::reject>},
    {"disconnect", parse_disconnect},
    {"alloc", parse_call<&FaultSpec::alloc>},
    {"connect", parse_call<&FaultSpec::connect>},
    {"post", parse_call<&FaultSpec::post>},
    {"register", parse_call<&FaultSpec::registration>},
    {"seed", [](std::string_view text, FaultSpec& spec) noexcept { return parse(text, spec.seed); }},
};

bool parse_one(std::string_view part, FaultSpec& spec) noexcept {
    const std::size_t equals = std::min(part.find('='), part.size());
    const auto* const kind = std::ranges::find(kinds, part.substr(0, equals), &Kind::name);
    return kind != std::end(kinds) && equals != part.size() && kind->parse(part.substr(equals + 1), spec);
}

}  // namespace

std::string_view parse_faults(std::string_view text, FaultSpec& spec) noexcept {
    while (!text.empty()) {
        const std::string_view part = text.substr(0, text.find_first_of(",;"));
        text.remove_prefix(std::min(part.size() + 1, text.size()));
        if (!part.empty() && !parse_one(part, spec)) return part;
    }
    return "";
}

}  // namespace viaduct
